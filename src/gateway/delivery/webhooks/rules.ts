const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/** Delay after failed attempt N: the N-th of these, and the last one from there on. */
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

/** How long after its change an event is sent. After that it is in the feed only. */
export const sentForMs = 28 * hourMs + 51 * minuteMs;

/** Failures of the endpoint in a row, in the order in which they ended, after which it is paused. */
const failuresToPause = 3;

/** How often a paused endpoint is probed with one event. */
const probeEveryMs = minuteMs;

/** A probe planned for later than this comes from a fast clock, and is due. */
export const longestProbeWaitMs = 2 * probeEveryMs;

/** The same for a retry. */
export const longestRetryWaitMs = 13 * hourMs;

/** After a rotation events are also signed with the old secret for this long, the last instant excluded. */
export const rotationMs = 24 * hourMs;

/**
 * How long after its query an endpoint's row may be used for attempts, in real time. An operator's change waits this long
 * for a process that does not confirm it: after that, the process begins no attempt by the old row.
 */
export const rowServesMs = 3_000;

/** An endpoint that delivers nothing is shown in the metrics after this. */
export const shownUndeliveredMs = 5 * minuteMs;

export const attemptsKeptMs = 30 * 24 * hourMs;

/**
 * `endpoint-failed`: no answer in time, unreachable (also TLS, DNS and a blocked address), a redirect, 408, 429 or 5xx; it
 * counts against the endpoint. `event-failed`: any other 4xx; it concerns only the event.
 */
export type AttemptResult = 'delivered' | 'endpoint-failed' | 'event-failed';

/**
 * Why an attempt failed, in this order: no complete head within 10 s; no address; a blocked address; no connection, or a
 * broken one; TLS; an unusable URL; an answer that is not HTTP; a redirect; any other status; an error in the gateway, which
 * sent nothing.
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

/** The result of sending an event once. */
export interface SendResult {
  readonly outcome: AttemptResult;
  /** The HTTP status; null without an answer. */
  readonly status: number | null;
  /** Null if it was delivered. */
  readonly errorClass: ErrorClass | null;
  /** From its start until its outcome was known, in milliseconds of real time. */
  readonly durationMs: number;
}

/** A failure without an answer. Its message is for logs and holds nothing from the endpoint. */
export class SendFailure extends Error {
  override readonly name = 'SendFailure';

  constructor(
    readonly errorClass: ErrorClass,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** Judges a status. 408, 429, 5xx and redirects count against the endpoint, any other 4xx against the event. */
export function judgeStatus(status: number): Pick<SendResult, 'outcome' | 'errorClass'> {
  if (status >= 200 && status < 300) return { outcome: 'delivered', errorClass: null };
  if (status >= 300 && status < 400) return { outcome: 'endpoint-failed', errorClass: 'redirect' };
  const isAboutEvent = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return { outcome: isAboutEvent ? 'event-failed' : 'endpoint-failed', errorClass: 'status' };
}

/** The class of an error without an answer. */
export function judgeError(error: Error): ErrorClass {
  if (error instanceof SendFailure) return error.errorClass;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return 'timeout';
  const isUnreadable = error.name === 'HTTPParserError' || invalidResponses.has(code);
  return isUnreadable ? 'invalid_response' : 'unreachable';
}

const invalidResponses = new Set([
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_RES_EXCEEDED_MAX_SIZE',
]);

/** The state of a delivery. `expired`: not delivered within `sentForMs`. */
export type DeliveryState = 'waiting' | 'delivered' | 'expired';

/** An endpoint's health: failures in a row, the start of its pause, its probes, and since when nothing was delivered. */
export interface EndpointHealth {
  readonly streak: number;
  readonly pausedAt: number | null;
  readonly probeAt: number | null;
  readonly probedVersion: bigint;
  /** The end of the first of the failures since the last delivery, of endpoint or event; null if there is none. */
  readonly failingSince: number | null;
}

/** The facts of an attempt that decide on its endpoint's health and its delivery's state. */
export interface AttemptFacts {
  readonly version: bigint;
  readonly at: number;
  readonly isProbe: boolean;
  readonly outcome: AttemptResult;
  readonly durationMs: number;
}

/** The health of an endpoint that is new, moved or resumed. */
export const freshHealth: EndpointHealth = {
  streak: 0,
  pausedAt: null,
  probeAt: null,
  probedVersion: 0n,
  failingSince: null,
};

/** The health of an endpoint after an attempt. Attempts must be given in the order in which they ended. */
export function healthAfter(health: EndpointHealth, attempt: AttemptFacts): EndpointHealth {
  const { pausedAt, probeAt, probedVersion } = health;
  const { outcome, version, isProbe } = attempt;
  if (outcome === 'delivered') return freshHealth;
  const endedAt = endOf(attempt);
  const failingSince = health.failingSince ?? endedAt;
  const streak = outcome === 'endpoint-failed' ? health.streak + 1 : 0;
  if (pausedAt !== null) {
    if (!isProbe) return { streak, pausedAt, probeAt, probedVersion, failingSince };
    return { streak, pausedAt, probeAt: endedAt + probeEveryMs, probedVersion: version, failingSince };
  }
  if (streak < failuresToPause) return { streak, pausedAt, probeAt, probedVersion, failingSince };
  return { streak, pausedAt: endedAt, probeAt: endedAt + probeEveryMs, probedVersion: 0n, failingSince };
}

/** A delivery's progress: attempts that its schedule counts, and when it is sent next. */
export interface DeliveryProgress {
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly dueAt: number | null;
}

/** A delivery's progress after an attempt. A final state stays, unless the event had expired and was delivered late. */
export function progressAfter({ state, attempts, dueAt }: DeliveryProgress, attempt: AttemptFacts): DeliveryProgress {
  const { outcome, isProbe } = attempt;
  if (outcome === 'delivered') return { state: 'delivered', attempts: attempts + 1, dueAt: null };
  if (isProbe && outcome === 'endpoint-failed') return { state, attempts, dueAt };
  if (state !== 'waiting') return { state, attempts: attempts + 1, dueAt };
  return { state, attempts: attempts + 1, dueAt: endOf(attempt) + retryDelayMs(attempts + 1) };
}

function endOf({ at, durationMs }: AttemptFacts): number {
  return at + durationMs;
}

function retryDelayMs(failedAttempts: number): number {
  return retryDelaysMs[Math.min(failedAttempts, retryDelaysMs.length) - 1] ?? 0;
}

/** Whether an event is too old to be sent. */
export function isTooOld(occurredAt: number, now: number): boolean {
  return now - occurredAt >= sentForMs;
}

/** Whether events are still signed with the secret from before a rotation. */
export function signsWithOld(oldSecretUntil: number | null, now: number): boolean {
  return oldSecretUntil !== null && now < oldSecretUntil;
}

/** The waiting events of an endpoint. */
export interface QueuedEvents {
  /** Whether an event is to be sent at once. */
  readonly isReady: boolean;
  /** When the first retry is due; null if there is none. */
  readonly retryAt: number | null;
}

/** When an endpoint will have work; null if it has none until it or its queue changes. */
export function nextDue(
  {
    pausedAt,
    probeAt,
    heldAt,
    draining,
  }: Pick<EndpointHealth, 'pausedAt' | 'probeAt'> & { readonly heldAt: number | null; readonly draining: boolean },
  { isReady, retryAt }: QueuedEvents,
  now: number,
): number | null {
  if (heldAt !== null || (!isReady && retryAt === null)) return null;
  if (pausedAt !== null) return probeAt;
  return isReady || draining ? now : retryAt;
}
