import {
  type AnswerDetails,
  type CreateOptions,
  type Event,
  type Operation,
  Operations,
  operations,
} from './contract.ts';
import { type CallState, type ErrorDetails, errorAnswer, type MarinaError, NoAnswerError } from './errors.ts';
import { parseJson } from './json.ts';
import { EventFeed, type FeedOptions, type ListPage, Pages } from './pages.ts';
import { makeRequest, type PreparedRequest, readText } from './request.ts';
import { type Failure, leavesUnknown, settles, waitBeforeRepeat } from './retries.ts';
import { sleep } from './sleep.ts';

/** How the client reaches the gateway. */
export interface MarinaOptions {
  /** Where the gateway is, as in `https://api.example.com`. */
  readonly baseUrl: string;
  /** A key: `marina_test_…` or `marina_live_…`. */
  readonly key: string;
  /** How long one attempt may take: longer than the gateway waits for an answer that was lost. */
  readonly attemptMs?: number | undefined;
  /** How long a call may take with all its attempts and waits. */
  readonly deadlineMs?: number | undefined;
  /** How often a request is sent at most. */
  readonly maxAttempts?: number | undefined;
  /** Called for every answer, for logs and metrics. */
  readonly onAnswer?: ((answer: AnswerDetails) => void) | undefined;
  /** Lets the key travel in plain text to another machine. Only for a network that nobody else can read. */
  readonly allowPlaintext?: boolean | undefined;
  /** Takes the place of the platform's `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

const defaults = { attemptMs: 45_000, deadlineMs: 120_000, maxAttempts: 5 };
const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Marina's operations with a key of yours. A call is made again by itself where that is safe: with the same Idempotency-Key, after
 * the time that the gateway asks for. What fails is thrown as a `MarinaError`. Whole numbers in answers are bigints.
 */
export class Marina extends Operations {
  readonly #options: MarinaOptions & typeof defaults;
  readonly #fetch: typeof fetch;
  readonly #baseUrl: string;

  constructor(options: MarinaOptions) {
    super();
    const { protocol, hostname } = new URL(options.baseUrl);
    if (!/^[!-~]+$/.test(options.key)) throw new TypeError('The key is empty, or has characters that no key has.');
    if (protocol !== 'https:' && !loopback.test(hostname) && options.allowPlaintext !== true) {
      throw new TypeError(
        'The base URL has to be https: the key would travel in plain text. `allowPlaintext` permits it.',
      );
    }
    this.#baseUrl = options.baseUrl.replace(/\/+$/, '');
    this.#options = { ...options, ...withDefaults(options) };
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  override followEvents(options: FeedOptions = {}): EventFeed {
    const read = async (cursor: string | undefined, limit: number) => {
      const { signal, onAnswer } = options;
      const page = await this.call<ListPage<Event>>(operations.listEvents, { cursor, limit }, { signal, onAnswer });
      return { ...page, next_cursor: page.next_cursor ?? '' };
    };
    return new EventFeed(read, options);
  }

  protected override list<Page, Item>(operation: Operation, input: object, options?: CreateOptions): Pages<Page, Item> {
    return new Pages((cursor) => {
      const more = cursor === undefined ? input : { ...input, cursor };
      return this.call<Page & ListPage<Item>>(operation, more, options);
    });
  }

  protected override async call<Answer>(
    operation: Operation,
    input: object,
    options: CreateOptions = {},
  ): Promise<Answer> {
    const { deadlineMs, maxAttempts } = { ...this.#options, ...withDefaults(options, this.#options) };
    const idempotencyKey = operation.takesKey ? (options.idempotencyKey ?? newKey()) : undefined;
    if (idempotencyKey !== undefined && !/^[ -~]{1,255}$/.test(idempotencyKey)) {
      throw new TypeError('An Idempotency-Key has 1 to 255 printable ASCII characters.');
    }
    const request = makeRequest(operation, input, { baseUrl: this.#baseUrl, key: this.#options.key, idempotencyKey });
    const endsAt = performance.now() + deadlineMs;
    let isUnknown = false;
    for (let attempt = 1; ; attempt += 1) {
      const leftMs = endsAt - performance.now();
      const outcome = await this.#attempt(operation, request, { options, leftMs, attempt, idempotencyKey });
      if ('answer' in outcome) return outcome.answer as Answer;
      isUnknown ||= operation.method !== 'GET' && leavesUnknown(outcome.failure);
      const waitMs = waitBeforeRepeat(outcome.failure, operation, attempt);
      const isOver = attempt >= maxAttempts || options.signal?.aborted === true;
      if (waitMs !== undefined && !isOver && performance.now() + waitMs < endsAt) {
        if (await slept(waitMs, options.signal)) continue;
      }
      const isOutcomeUnknown = isUnknown && !settles(outcome.failure);
      throw outcome.error({ operation: operation.name, idempotencyKey, attempts: attempt, isOutcomeUnknown });
    }
  }

  async #attempt(
    operation: Operation,
    request: PreparedRequest,
    { options, leftMs, attempt, idempotencyKey }: Attempt,
  ): Promise<Outcome> {
    const timeout = AbortSignal.timeout(Math.ceil(Math.max(1, Math.min(leftMs, this.#options.attemptMs))));
    const signal = options.signal === undefined ? timeout : AbortSignal.any([timeout, options.signal]);
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(request.url, { ...request.init, redirect: 'manual', signal });
      text = await readText(response);
    } catch (cause) {
      return noAnswer(`${operation.name} got no answer`, cause);
    }
    const details: AnswerDetails = {
      operation: operation.name,
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? undefined,
      isReplayed: response.headers.get('idempotent-replayed') === 'true',
      idempotencyKey,
      attempt,
    };
    this.#options.onAnswer?.(details);
    options.onAnswer?.(details);
    return response.ok ? goodAnswer(operation, text) : refusal(operation, response, text);
  }
}

interface Attempt {
  readonly options: CreateOptions;
  readonly leftMs: number;
  readonly attempt: number;
  readonly idempotencyKey: string | undefined;
}

type Outcome =
  | { readonly answer: unknown }
  | { readonly failure: Failure; readonly error: (call: CallState) => MarinaError };

function goodAnswer(operation: Operation, text: string): Outcome {
  try {
    return { answer: parseJson(text) };
  } catch (cause) {
    return noAnswer(`What answered ${operation.name} is not JSON`, cause);
  }
}

function noAnswer(message: string, cause: unknown): Outcome {
  return { failure: {}, error: (call) => new NoAnswerError(message, call, cause) };
}

/** Reads an error. What stands before the gateway may answer with anything. */
function refusal(operation: Operation, { status, headers }: Response, text: string): Outcome {
  const error = errorIn(text);
  const seconds = headers.get('retry-after') ?? '';
  const member = (name: string) => (typeof error[name] === 'string' ? error[name] : undefined);
  const details: ErrorDetails = {
    status,
    type: member('type'),
    code: member('code'),
    message: `${operation.name} was answered ${status}${error.code === undefined ? '' : ` ${error.code}: ${error.message}`}`,
    docUrl: member('doc_url'),
    param: member('param'),
    rejectReason: member('reject_reason'),
    location: headers.get('location') ?? undefined,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: /^\d{1,5}$/.test(seconds) ? Number(seconds) : undefined,
  };
  return { failure: details, error: (call) => errorAnswer(details, call) };
}

function errorIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const body = JSON.parse(text) as { error?: unknown } | null;
    const error = body?.error;
    return typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Waits; false if the signal was aborted meanwhile. */
async function slept(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await sleep(ms, signal);
    return true;
  } catch {
    return false;
  }
}

function withDefaults(
  given: Partial<Record<keyof typeof defaults, number | undefined>>,
  otherwise: typeof defaults = defaults,
): typeof defaults {
  return {
    attemptMs: given.attemptMs ?? otherwise.attemptMs,
    deadlineMs: given.deadlineMs ?? otherwise.deadlineMs,
    maxAttempts: given.maxAttempts ?? otherwise.maxAttempts,
  };
}

/** A random UUID. Browsers have `crypto.randomUUID` on https pages only. */
export function newKey(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
