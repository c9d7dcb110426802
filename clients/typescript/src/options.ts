import type { AnswerDetails } from './contract.ts';
import { checkedMode, type IntegerMode } from './integers.ts';

/** How the client reaches the gateway. */
export interface MarinaOptions<Mode extends IntegerMode = 'bigint'> {
  /** Where the gateway is, as in `https://api.example.com`. */
  readonly baseUrl: string;
  /** A key: `marina_test_…` or `marina_live_…`. */
  readonly key: string;
  /**
   * How whole numbers in answers are given: `bigint`, if absent, or `string`, both with all digits, or `number`. With `number`
   * an answer with one that JavaScript cannot hold exactly is an `UnsafeIntegerError`.
   */
  readonly integers?: Mode | undefined;
  /** How long one attempt may take, in milliseconds: longer than the gateway waits for an answer that was lost. */
  readonly attemptMs?: number | undefined;
  /** How long a call may take with all its attempts and waits, in milliseconds. */
  readonly deadlineMs?: number | undefined;
  /** How often a request is sent at most. */
  readonly maxAttempts?: number | undefined;
  /**
   * Called for every answer, for logs and metrics. It is not awaited. What it throws, or a promise of it rejects with, is written to
   * the console, and changes nothing.
   */
  readonly onAnswer?: ((answer: AnswerDetails) => void) | undefined;
  /** Lets the key travel in plain text to another machine. Only for a network that nobody else can read. */
  readonly allowPlaintext?: boolean | undefined;
  /** Takes the place of the platform's `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

/** How long a call may take and how often its request is sent. */
export interface Bounds {
  readonly attemptMs: number;
  readonly deadlineMs: number;
  readonly maxAttempts: number;
}

/** Twelve attempts with the shortest waits take 33 s: longer than a restart of the gateway. */
const defaults: Bounds = { attemptMs: 45_000, deadlineMs: 120_000, maxAttempts: 12 };
const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Whether it is on this machine. */
export function isLoopback({ hostname }: URL): boolean {
  return loopback.test(hostname);
}

/** Whether a request would travel in plain text to another machine. */
export function isPlaintext(url: URL): boolean {
  return url.protocol !== 'https:' && !isLoopback(url);
}

/** The bounds that were given, and the others from `otherwise`. */
export function boundsOf(
  given: { readonly [Name in keyof Bounds]?: number | undefined },
  otherwise: Bounds = defaults,
): Bounds {
  return {
    attemptMs: given.attemptMs ?? otherwise.attemptMs,
    deadlineMs: given.deadlineMs ?? otherwise.deadlineMs,
    maxAttempts: given.maxAttempts ?? otherwise.maxAttempts,
  };
}

/** Throws a TypeError for options with which no call can be right. Its sentence has neither the key nor a password. */
export function checkOptions(options: MarinaOptions<IntegerMode>): void {
  const { baseUrl, key, allowPlaintext, integers, fetch } = options;
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('The base URL has to be a URL of https, or of http on this machine.');
  }
  if (url.username !== '' || url.password !== '' || /[?#]/.test(baseUrl)) {
    throw new TypeError('The base URL has a user name, a password, a query or a fragment. It needs none of them.');
  }
  if (typeof key !== 'string' || !/^[!-~]+$/.test(key)) {
    throw new TypeError('The key is empty, or has characters that no key has.');
  }
  if (isPlaintext(url) && allowPlaintext !== true) {
    throw new TypeError(
      'The base URL has to be https: the key would travel in plain text. `allowPlaintext` permits it.',
    );
  }
  checkedMode(integers ?? 'bigint');
  checkTime('attemptMs', options.attemptMs);
  checkCallOptions(options);
  checkFunction('fetch', fetch);
  if (fetch === undefined) checkPlatform();
}

interface CheckedCallOptions {
  readonly deadlineMs?: number | undefined;
  readonly maxAttempts?: number | undefined;
  readonly onAnswer?: unknown;
  readonly signal?: unknown;
}

/** Throws a TypeError for options with which a call would be sent never, for ever, or without its bounds. */
export function checkCallOptions({ deadlineMs, maxAttempts, onAnswer, signal }: CheckedCallOptions): void {
  checkTime('deadlineMs', deadlineMs);
  if (isGiven(maxAttempts) && !(Number.isSafeInteger(maxAttempts) && maxAttempts >= 1)) {
    throw new TypeError('`maxAttempts` has to be a whole number from 1.');
  }
  checkFunction('onAnswer', onAnswer);
  if (isGiven(signal) && typeof (signal as Partial<AbortSignal>).addEventListener !== 'function') {
    throw new TypeError('`signal` has to be an AbortSignal.');
  }
}

/** Throws a TypeError for a time in milliseconds that is none. */
export function checkTime(name: string, ms: number | null | undefined): void {
  if (isGiven(ms) && !(Number.isFinite(ms) && ms > 0)) {
    throw new TypeError(`\`${name}\` has to be a number of milliseconds above 0.`);
  }
}

function checkFunction(name: string, value: unknown): void {
  if (isGiven(value) && typeof value !== 'function') throw new TypeError(`\`${name}\` has to be a function.`);
}

/** A program without types may pass null for an option that it does not set. */
function isGiven<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

/** A page of a browser cannot call the gateway, and whoever opens it can read the key. */
function checkPlatform(): void {
  const { window, fetch } = globalThis as { window?: { document?: unknown }; fetch?: unknown };
  if (typeof window === 'object' && window?.document !== undefined) {
    throw new TypeError(
      'Browsers are not supported: the gateway answers without CORS headers, and whoever opens the page can read the key. ' +
        'Call your own server, which has the key. In Jest, use the test environment `node`.',
    );
  }
  if (typeof fetch !== 'function') throw new TypeError('There is no `fetch` here. Use Node 20.19 or newer.');
}
