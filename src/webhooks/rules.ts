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
 * the row waits so long for a process that does not confirm it: after that the process begins no attempt by the earlier row.
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

/** What became of sending something once. */
export interface SendResult {
  readonly outcome: Outcome;
  /** The status of the answer; null when there was none. */
  readonly status: number | null;
  /** Null when it was delivered. */
  readonly errorClass: ErrorClass | null;
  /** From its start until its outcome was known, in milliseconds of real time. */
  readonly durationMs: number;
}

/** Something that kept an answer from coming. Its message is for logs and holds nothing the endpoint said. */
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

/** What a status says. 408, 429, 5xx and redirects speak against the endpoint; any other 4xx against the event. */
export function judgeStatus(status: number): Pick<SendResult, 'outcome' | 'errorClass'> {
  if (status >= 200 && status < 300) return { outcome: 'delivered', errorClass: null };
  if (status >= 300 && status < 400) return { outcome: 'endpoint-failed', errorClass: 'redirect' };
  const isAboutEvent = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return { outcome: isAboutEvent ? 'event-failed' : 'endpoint-failed', errorClass: 'status' };
}

/** What an error that came in place of an answer says. */
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

/** What becomes of an event at its endpoint. `expired`: it was not delivered within the time it is sent for. */
export type DeliveryState = 'waiting' | 'delivered' | 'expired';

/** What of an endpoint says whether it is well: how often it failed in a row, since when it is paused, and its probes. */
export interface Health {
  readonly streak: number;
  readonly pausedAt: number | null;
  readonly probeAt: number | null;
  readonly probedVersion: bigint;
}

/** What of an attempt decides how its endpoint and its delivery stand. */
export interface AttemptFacts {
  readonly version: bigint;
  readonly at: number;
  readonly isProbe: boolean;
  readonly outcome: Outcome;
  readonly durationMs: number;
}

/** The health of a new endpoint, and of one that was moved or resumed. */
export const freshHealth: Health = { streak: 0, pausedAt: null, probeAt: null, probedVersion: 0n };

/** The health of an endpoint after an attempt. To be asked in the order in which attempts ended. */
export function healthAfter({ streak, pausedAt, probeAt, probedVersion }: Health, attempt: AttemptFacts): Health {
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

/** How a delivery stands: attempts that its schedule counts, and when it is sent next. */
export interface Progress {
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly dueAt: number | null;
}

/** How a delivery stands after an attempt. One that is over stays so, unless it had failed and was delivered late. */
export function progressAfter({ state, attempts, dueAt }: Progress, attempt: AttemptFacts): Progress {
  const { outcome, isProbe } = attempt;
  if (outcome === 'delivered') return { state: 'delivered', attempts: attempts + 1, dueAt: null };
  if (isProbe && outcome === 'endpoint-failed') return { state, attempts, dueAt };
  if (state !== 'waiting') return { state, attempts: attempts + 1, dueAt };
  return { state, attempts: attempts + 1, dueAt: endOf(attempt) + retryDelayMs(attempts + 1) };
}

/** When the outcome of an attempt was known. */
function endOf({ at, durationMs }: AttemptFacts): number {
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

/** What waits in the queue of an endpoint. */
export interface Waiting {
  /** Whether something is to be sent at once. */
  readonly isReady: boolean;
  /** When the first of what is to be sent again is due; null when there is none. */
  readonly retryAt: number | null;
}

/** From when on there is something to do for an endpoint; null when there is nothing until it or its queue changes. */
export function nextDue(
  {
    pausedAt,
    probeAt,
    heldAt,
    draining,
  }: Pick<Health, 'pausedAt' | 'probeAt'> & { readonly heldAt: number | null; readonly draining: boolean },
  { isReady, retryAt }: Waiting,
  now: number,
): number | null {
  if (heldAt !== null || (!isReady && retryAt === null)) return null;
  if (pausedAt !== null) return probeAt;
  return isReady || draining ? now : retryAt;
}
