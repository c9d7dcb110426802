const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/** How long after failed attempt N the next one is due: the N-th of these, and the last one from there on. */
const retryDelaysMs: readonly number[] = [
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

/**
 * Why an attempt failed: no whole head of an answer in 10 seconds; no address; an address that may not be dialled; no
 * connection, or one that broke; TLS that failed; a URL that cannot be used; an answer that is no HTTP; a redirect; any
 * other status; an error in the gateway itself, which sent nothing.
 */
export type ErrorClass =
  | 'timeout'
  | 'dns'
  | 'blocked_address'
  | 'unreachable'
  | 'tls'
  | 'invalid_url'
  | 'invalid_response'
  | 'redirect'
  | 'status'
  | 'internal';

/** One attempt to deliver an event, as it is recorded. */
export interface Attempt {
  readonly partnerId: string;
  readonly version: bigint;
  /** 1 for the first attempt of the event. */
  readonly number: number;
  /** When it began, in business time. */
  readonly at: number;
  /** Whether it was made while the endpoint was paused, to see whether it is back. */
  readonly isProbe: boolean;
  readonly outcome: Outcome;
  /** The status of the answer; null when there was none. */
  readonly status: number | null;
  /** Null when the event was delivered. */
  readonly errorClass: string | null;
  /** From the start of the attempt until its outcome was known, in milliseconds of real time. */
  readonly durationMs: number;
}

/** What became of sending something once. */
export interface SendResult extends Pick<Attempt, 'outcome' | 'status' | 'durationMs'> {
  readonly errorClass: ErrorClass | null;
}

/** What becomes of an event at its endpoint. `expired`: it was not delivered within the time it is sent for. */
export type DeliveryState = 'waiting' | 'delivered' | 'expired';

/** An event on its way to its endpoint, as stored. Instants are business time unless they say otherwise. */
export interface Delivery {
  readonly partnerId: string;
  readonly version: bigint;
  readonly eventId: string;
  readonly type: string;
  readonly occurredAt: number;
  /** When the change was committed, in real time. */
  readonly committedAt: number;
  /** When it was queued. */
  readonly takenAt: number;
  readonly state: DeliveryState;
  /** 1: sent at once, in the order of versions. 2: sent again at `dueAt`. Null: over. */
  readonly queue: number | null;
  /** When it is sent next; null: at once, or never when it is over. */
  readonly dueAt: number | null;
  /** Attempts that the schedule counts. A probe that fails because of the endpoint is none. */
  readonly attempts: number;
  /** All attempts. */
  readonly tries: number;
  /** Grows when an operator asks for the event again. */
  readonly round: number;
  readonly endedAt: number | null;
}

/** What of an endpoint says whether it is well. */
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

/** A partner's endpoint as stored. Instants are business time. */
export interface Endpoint extends Health {
  readonly partnerId: string;
  readonly url: string;
  /** Sealed, as is the old one. */
  readonly secret: Buffer;
  readonly oldSecret: Buffer | null;
  /** Until when events are signed with the old secret too. */
  readonly oldSecretUntil: number | null;
  /** Events with a higher version are delivered. */
  readonly afterVersion: bigint;
  readonly registeredAt: number;
  /** Grows with a move. */
  readonly generation: number;
  /** Since when an operator holds it; null when none does. */
  readonly heldAt: number | null;
  /** Whether all that waits must still be moved to the front, because a pause ended. */
  readonly draining: boolean;
  /** From when on it may have something to be sent: never later than that is so. Null: nothing waits. */
  readonly dueAt: number | null;
  /** Grows with each process that sends to it. */
  readonly fence: bigint;
  /** Grows with every change of the row: of two reads of it, the one with the higher revision is the newer. */
  readonly revision: bigint;
  /** The revision of the last change an operator made. */
  readonly changedRevision: bigint;
  /** The last revision of which the sending process has said that it works by it. */
  readonly seenRevision: bigint;
}

/** The health of a new endpoint, and of one that was moved or resumed. */
export const freshHealth: Health = { streak: 0, pausedAt: null, probeAt: null, probedVersion: 0n };

/** The health of an endpoint after an attempt. To be asked in the order in which attempts ended. */
export function healthAfter({ streak, pausedAt, probeAt, probedVersion }: Health, attempt: Attempt): Health {
  const { outcome, version, isProbe } = attempt;
  if (outcome === 'delivered') return freshHealth;
  const failures = outcome === 'endpoint-failed' ? streak + 1 : 0;
  const endedAt = endOf(attempt);
  if (pausedAt !== null) {
    if (!isProbe) return { streak: failures, pausedAt, probeAt, probedVersion };
    return { streak: failures, pausedAt, probeAt: endedAt + probeEveryMs, probedVersion: version };
  }
  if (failures < failuresToPause) return { streak: failures, pausedAt, probeAt, probedVersion };
  return { streak: failures, pausedAt: endedAt, probeAt: endedAt + probeEveryMs, probedVersion: 0n };
}

/** How a delivery stands. */
export type Progress = Pick<Delivery, 'state' | 'attempts' | 'dueAt'>;

/** How a delivery stands after an attempt. One that is over stays so, unless it had failed and was delivered late. */
export function progressAfter({ state, attempts, dueAt }: Progress, attempt: Attempt): Progress {
  const { outcome, isProbe } = attempt;
  if (outcome === 'delivered') return { state: 'delivered', attempts: attempts + 1, dueAt: null };
  if (isProbe && outcome === 'endpoint-failed') return { state, attempts, dueAt };
  if (state !== 'waiting') return { state, attempts: attempts + 1, dueAt };
  return { state, attempts: attempts + 1, dueAt: endOf(attempt) + retryDelayMs(attempts + 1) };
}

/** When the outcome of an attempt was known. */
function endOf({ at, durationMs }: Attempt): number {
  return at + durationMs;
}

/** How long after so many failed attempts the next one is due. */
function retryDelayMs(failedAttempts: number): number {
  return retryDelaysMs[Math.min(failedAttempts, retryDelaysMs.length) - 1] ?? 0;
}

/** Whether an event of a change at an instant is no longer sent. */
export function isTooOld(occurredAt: number, now: number): boolean {
  return now - occurredAt >= sentForMs;
}

/** Whether events are still signed with the secret from before a rotation. */
export function signsWithOld(oldSecretUntil: number | null, now: number): boolean {
  return oldSecretUntil !== null && now < oldSecretUntil;
}

/** An endpoint to which events are sent at another URL from now on. What waited because of a pause goes at once. */
export function moved(endpoint: Endpoint, url: string): Endpoint {
  const after = { ...endpoint, ...freshHealth, url, generation: endpoint.generation + 1 };
  return endpoint.pausedAt === null ? after : startDraining(after);
}

/** An endpoint none of whose pauses goes on. */
export function resumed(endpoint: Endpoint): Endpoint {
  return startDraining({ ...endpoint, ...freshHealth, heldAt: null });
}

/** An endpoint all of whose waiting events are to be moved to the front of its queue, because a pause ended. */
export function startDraining(endpoint: Endpoint): Endpoint {
  return { ...endpoint, draining: true, dueAt: endpoint.registeredAt };
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
  { pausedAt, probeAt, heldAt, draining }: Pick<Endpoint, 'pausedAt' | 'probeAt' | 'heldAt' | 'draining'>,
  { isReady, retryAt }: Waiting,
  now: number,
): number | null {
  if (heldAt !== null || (!isReady && retryAt === null)) return null;
  if (pausedAt !== null) return probeAt;
  return isReady || draining ? now : retryAt;
}
