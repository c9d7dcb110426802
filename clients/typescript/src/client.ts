import { isEventPage, isObject, isPage, noAnswer, type Outcome, outcomeOf, type Shape } from './answers.ts';
import { Operations } from './calls.ts';
import { type AnswerDetails, type CreateOptions, type Event, type Operation, operations } from './contract.ts';
import { timeoutError, withDeadline } from './deadline.ts';
import { type CallState, NoAnswerError } from './errors.ts';
import { checkedKey, newKey } from './idempotency.ts';
import type { IntegerMode, WithIntegers } from './integers.ts';
import { type Bounds, boundsOf, checkCallOptions, checkOptions, type MarinaOptions } from './options.ts';
import { checkFeedOptions, EventFeed, type EventPage, type FeedOptions, type ListPage, Pages } from './pages.ts';
import type { Answer } from './request.ts';
import { makeRequest, type PreparedRequest } from './request.ts';
import { leavesUnknown, settles, waitBeforeRepeat } from './retries.ts';
import { sleep } from './sleep.ts';
import { tell } from './telling.ts';
import { type Send, sendWith } from './transport.ts';

/** The feed tells of trouble soon, and tries again for ever by itself. */
const feedAttempts = 3;

/**
 * Marina's operations with a key of yours. A call is made again by itself where that is safe: with the same
 * Idempotency-Key, after the time that the gateway asks for. A call that fails throws a `MarinaError`. Whole numbers in
 * answers are bigints, unless `integers` asks for something else.
 */
export class Marina<Mode extends IntegerMode = 'bigint'> extends Operations<Mode> {
  readonly #options: MarinaOptions<Mode>;
  readonly #bounds: Bounds;
  readonly #send: Send;
  readonly #baseUrl: string;

  constructor(options: MarinaOptions<Mode>) {
    super();
    checkOptions(options);
    this.#baseUrl = options.baseUrl.replace(/\/{1,8}$/, '');
    this.#options = { ...options };
    this.#bounds = boundsOf(options);
    this.#send = sendWith(options.fetch);
  }

  override followEvents(options: FeedOptions = {}): EventFeed<WithIntegers<Event, Mode>> {
    checkFeedOptions(options);
    const read = (cursor: string | undefined, limit: number) => {
      const maxAttempts = Math.min(feedAttempts, this.#bounds.maxAttempts);
      const { signal, onAnswer } = options;
      const callOptions = { signal, onAnswer, maxAttempts };
      type Page = EventPage<WithIntegers<Event, Mode>>;
      return this.#call<Page>(operations.listEvents, { cursor, limit }, callOptions, isEventPage);
    };
    return new EventFeed(read, options);
  }

  protected override list<Page, Item>(operation: Operation, input: object, options?: CreateOptions): Pages<Page, Item> {
    return new Pages((cursor) => {
      const more = cursor === undefined ? input : { ...input, cursor };
      return this.#call<Page & ListPage<Item>>(operation, more, options, isPage);
    });
  }

  protected override call<Answer>(operation: Operation, input: object, options?: CreateOptions): Promise<Answer> {
    return this.#call(operation, input, options, isObject);
  }

  async #call<Answer>(
    operation: Operation,
    input: object,
    options: CreateOptions = {},
    isExpected: Shape,
  ): Promise<Answer> {
    checkCallOptions(options);
    const { deadlineMs, maxAttempts } = boundsOf(options, this.#bounds);
    const idempotencyKey = operation.takesKey ? checkedKey(options.idempotencyKey ?? newKey()) : undefined;
    const request = makeRequest(operation, input, { baseUrl: this.#baseUrl, key: this.#options.key, idempotencyKey });
    const { signal } = options;
    const endsAt = performance.now() + deadlineMs;
    let isUnknown = false;
    const stateAfter = (attempts: number, isOutcomeUnknown: boolean): CallState => ({
      ...{ operation: operation.name, idempotencyKey, attempts, isOutcomeUnknown },
    });
    const stopped = (attempts: number) =>
      new NoAnswerError(`${operation.name} was stopped`, stateAfter(attempts, isUnknown), signal?.reason);
    if (signal?.aborted) throw stopped(0);
    for (let attempt = 1; ; attempt += 1) {
      const leftMs = endsAt - performance.now();
      const outcome = await this.#attempt(operation, request, { options, leftMs, attempt, idempotencyKey, isExpected });
      if ('answer' in outcome) return outcome.answer as Answer;
      const { failure } = outcome;
      isUnknown ||= operation.method !== 'GET' && (failure === undefined || leavesUnknown(failure));
      const waitMs = failure && waitBeforeRepeat(failure, operation, attempt);
      if (waitMs !== undefined && attempt < maxAttempts && performance.now() + waitMs < endsAt) {
        if (await slept(waitMs, signal)) continue;
        if (failure?.status !== undefined) throw stopped(attempt);
      }
      throw outcome.error(stateAfter(attempt, isUnknown && !(failure !== undefined && settles(failure))));
    }
  }

  async #attempt(
    operation: Operation,
    request: PreparedRequest,
    { options, leftMs, attempt, idempotencyKey, isExpected }: Attempt,
  ): Promise<Outcome> {
    const boundMs = Math.min(leftMs, this.#bounds.attemptMs);
    const endsAt = performance.now() + boundMs;
    let answer: Answer;
    try {
      answer = await withDeadline(boundMs, options.signal, (signal) => this.#send(request, signal));
    } catch (cause) {
      return noAnswer(`${operation.name} got no answer`, cause);
    }
    const details: AnswerDetails = {
      operation: operation.name,
      status: answer.status,
      requestId: answer.header('x-request-id'),
      isReplayed: answer.header('idempotent-replayed') === 'true',
      idempotencyKey,
      attempt,
    };
    for (const told of [this.#options.onAnswer, options.onAnswer]) {
      if (told) tell(`onAnswer, called for an answer to ${operation.name},`, () => told(details));
    }
    return outcomeOf(operation, answer, {
      ...{ integers: this.#options.integers ?? 'bigint', isExpected },
      check: () => {
        if (performance.now() > endsAt) throw timeoutError(boundMs);
      },
    });
  }
}

interface Attempt {
  readonly options: CreateOptions;
  readonly leftMs: number;
  readonly attempt: number;
  readonly idempotencyKey: string | undefined;
  readonly isExpected: Shape;
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
