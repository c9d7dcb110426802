const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/** How long after failed attempt N the next one is due: the N-th of these, and the last one from there on. */
export const retryDelaysMs: readonly number[] = [
  minuteMs,
  5 * minuteMs,
  15 * minuteMs,
  30 * minuteMs,
  hourMs,
  2 * hourMs,
  4 * hourMs,
  8 * hourMs,
  12 * hourMs,
];

/** How long after the change it describes an event is sent at most. Afterwards it is in the feed only. */
export const sentForMs = 28 * hourMs + 51 * minuteMs;

/** After so many failures of the endpoint in a row, in the order in which they ended, it is paused. */
export const failuresToPause = 3;

/** How often a paused endpoint is tried with one event. */
export const probeEveryMs = minuteMs;

/** A probe that is to come later than this was put off by a clock that was ahead, and is due. */
export const longestProbeWaitMs = 2 * probeEveryMs;

/** The same of an event that is sent again. */
export const longestRetryWaitMs = 13 * hourMs;

/** How long after a rotation events are signed with the old secret too: up to that instant, and not at it. */
export const rotationMs = 24 * hourMs;

/**
 * How long the row of an endpoint serves for attempts after it was asked for, in real time. An operator's call that changes
 * the row waits so long for a process that says nothing: after that the process begins no attempt by the earlier row.
 */
export const rowServesMs = 3_000;

/** How long attempts are kept. */
export const attemptsKeptMs = 30 * 24 * hourMs;

/**
 * What an attempt came to. `endpoint-failed`: no answer in time, unreachable (TLS, DNS and a blocked address too), a
 * redirect, 408, 429 or 5xx; it counts against the endpoint. `event-failed`: any other 4xx; it says something about the
 * event only.
 */
export type Outcome = 'delivered' | 'endpoint-failed' | 'event-failed';

/** How an endpoint fares. Instants are business time in milliseconds. */
export interface Health {
  /** Failures of the endpoint in a row. */
  readonly streak: number;
  /** Since when it is paused because of them; null when it is not. */
  readonly pausedAt: number | null;
  /** When it is tried next while it is paused. */
  readonly probeAt: number | null;
  /** The version the last probe was made with: the next one takes the next. */
  readonly probedVersion: bigint;
}

/** How a new endpoint fares, and one that was moved. */
export const freshHealth: Health = { streak: 0, pausedAt: null, probeAt: null, probedVersion: 0n };

/** An attempt that ended. */
export interface EndedAttempt {
  readonly version: bigint;
  readonly outcome: Outcome;
  /** Whether it was made while the endpoint was paused, to see whether it is back. */
  readonly isProbe: boolean;
  /** When it ended. */
  readonly endedAt: number;
}

/** How an endpoint fares after an attempt. To be asked in the order in which attempts ended. */
export function healthAfter(health: Health, attempt: EndedAttempt): Health {
  if (attempt.outcome === 'delivered') return freshHealth;
  const streak = attempt.outcome === 'endpoint-failed' ? health.streak + 1 : 0;
  if (health.pausedAt !== null) {
    if (!attempt.isProbe) return { ...health, streak };
    return { ...health, streak, probeAt: attempt.endedAt + probeEveryMs, probedVersion: attempt.version };
  }
  if (streak < failuresToPause) return { ...health, streak };
  return { streak, pausedAt: attempt.endedAt, probeAt: attempt.endedAt + probeEveryMs, probedVersion: 0n };
}

/** What becomes of an event at its endpoint. `expired`: it was not delivered within the time it is sent for. */
export type DeliveryState = 'waiting' | 'delivered' | 'expired';

/** How the delivery of an event stands. */
export interface Progress {
  readonly state: DeliveryState;
  /** Attempts the schedule counts. A probe that fails because of the endpoint is none. */
  readonly attempts: number;
  /** When it is sent next; null: at once, or never when it is over. */
  readonly dueAt: number | null;
}

/** How a delivery stands after an attempt. One that is over stays so, unless it had failed and was delivered late. */
export function progressAfter(progress: Progress, attempt: EndedAttempt): Progress {
  if (attempt.outcome === 'delivered') {
    return { state: 'delivered', attempts: progress.attempts + 1, dueAt: null };
  }
  if (attempt.isProbe && attempt.outcome === 'endpoint-failed') return progress;
  const attempts = progress.attempts + 1;
  if (progress.state !== 'waiting') return { ...progress, attempts };
  return { state: 'waiting', attempts, dueAt: attempt.endedAt + retryDelayMs(attempts) };
}

/** How long after so many failed attempts the next one is due. */
export function retryDelayMs(failedAttempts: number): number {
  const last = retryDelaysMs.length - 1;
  return retryDelaysMs[Math.min(Math.max(failedAttempts - 1, 0), last)] ?? 0;
}

/** Whether an event of a change at an instant is no longer sent. */
export function isTooOld(occurredAt: number, now: number): boolean {
  return now - occurredAt >= sentForMs;
}

/** Whether events are still signed with the secret from before a rotation. */
export function signsWithOld(oldSecretUntil: number | null, now: number): boolean {
  return oldSecretUntil !== null && now < oldSecretUntil;
}

/** What waits in the queue of an endpoint. */
export interface Waiting {
  /** Whether something is to be sent at once. */
  readonly isReady: boolean;
  /** When the first of what is to be sent again is due; null when there is none. */
  readonly retryAt: number | null;
}

/** From when on there is something to do for an endpoint; null when there is nothing until it or its queue changes. */
export function nextDue(
  { health, heldAt, draining }: { health: Health; heldAt: number | null; draining: boolean },
  { isReady, retryAt }: Waiting,
  now: number,
): number | null {
  if (heldAt !== null || (!isReady && retryAt === null)) return null;
  if (health.pausedAt !== null) return health.probeAt;
  return isReady || draining ? now : retryAt;
}
