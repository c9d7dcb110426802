import { noAnswer, type Outcome, outcomeOf } from './answers.ts';
import {
  type AnswerDetails,
  type CreateOptions,
  type Event,
  type Operation,
  Operations,
  operations,
} from './contract.ts';
import { withDeadline } from './deadline.ts';
import { checkedKey, newKey } from './idempotency.ts';
import type { IntegerMode, WithIntegers } from './integers.ts';
import { type Bounds, boundsOf, checkOptions, type MarinaOptions } from './options.ts';
import { EventFeed, type FeedOptions, type ListPage, Pages } from './pages.ts';
import { makeRequest, type PreparedRequest, readText } from './request.ts';
import { leavesUnknown, settles, waitBeforeRepeat } from './retries.ts';
import { sleep } from './sleep.ts';

/** The feed tells of trouble soon, and tries again for ever by itself. */
const feedAttempts = 3;

/**
 * Marina's operations with a key of yours. A call is made again by itself where that is safe: with the same Idempotency-Key, after
 * the time that the gateway asks for. What fails is thrown as a `MarinaError`. Whole numbers in answers are bigints, unless
 * `integers` asks for something else.
 */
export class Marina<Mode extends IntegerMode = 'bigint'> extends Operations<Mode> {
  readonly #options: MarinaOptions<Mode>;
  readonly #bounds: Bounds;
  readonly #fetch: typeof fetch;
  readonly #baseUrl: string;

  constructor(options: MarinaOptions<Mode>) {
    super();
    checkOptions(options);
    this.#baseUrl = options.baseUrl.replace(/\/{1,8}$/, '');
    this.#options = { ...options };
    this.#bounds = boundsOf(options);
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  override followEvents(options: FeedOptions = {}): EventFeed<WithIntegers<Event, Mode>> {
    const read = async (cursor: string | undefined, limit: number) => {
      const maxAttempts = Math.min(feedAttempts, this.#bounds.maxAttempts);
      const { signal, onAnswer } = options;
      const callOptions = { signal, onAnswer, maxAttempts };
      type Page = ListPage<WithIntegers<Event, Mode>>;
      const page = await this.call<Page>(operations.listEvents, { cursor, limit }, callOptions);
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
    const { deadlineMs, maxAttempts } = boundsOf(options, this.#bounds);
    const idempotencyKey = operation.takesKey ? checkedKey(options.idempotencyKey ?? newKey()) : undefined;
    const request = makeRequest(operation, input, { baseUrl: this.#baseUrl, key: this.#options.key, idempotencyKey });
    const endsAt = performance.now() + deadlineMs;
    let isUnknown = false;
    for (let attempt = 1; ; attempt += 1) {
      const leftMs = endsAt - performance.now();
      const outcome = await this.#attempt(operation, request, { options, leftMs, attempt, idempotencyKey });
      if ('answer' in outcome) return outcome.answer as Answer;
      const { failure } = outcome;
      isUnknown ||= operation.method !== 'GET' && (failure === undefined || leavesUnknown(failure));
      const waitMs = failure && waitBeforeRepeat(failure, operation, attempt);
      const isOver = attempt >= maxAttempts || options.signal?.aborted === true;
      if (waitMs !== undefined && !isOver && performance.now() + waitMs < endsAt) {
        if (await slept(waitMs, options.signal)) continue;
      }
      const isOutcomeUnknown = isUnknown && !(failure !== undefined && settles(failure));
      throw outcome.error({ operation: operation.name, idempotencyKey, attempts: attempt, isOutcomeUnknown });
    }
  }

  async #attempt(
    operation: Operation,
    request: PreparedRequest,
    { options, leftMs, attempt, idempotencyKey }: Attempt,
  ): Promise<Outcome> {
    let response: Response;
    let text: string;
    try {
      [response, text] = await withDeadline(
        Math.min(leftMs, this.#bounds.attemptMs),
        options.signal,
        async (signal): Promise<[Response, string]> => {
          const answer = await this.#fetch(request.url, { ...request.init, redirect: 'manual', signal });
          return [answer, await readText(answer)];
        },
      );
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
    for (const told of [this.#options.onAnswer, options.onAnswer]) {
      try {
        told?.(details);
      } catch (error) {
        // The order was placed: a mistake in a log must not take its answer and its key away.
        console.error(`onAnswer failed for an answer to ${operation.name}`, error);
      }
    }
    return outcomeOf(operation, response, text, this.#options.integers ?? 'bigint');
  }
}

interface Attempt {
  readonly options: CreateOptions;
  readonly leftMs: number;
  readonly attempt: number;
  readonly idempotencyKey: string | undefined;
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
