import type { CallOptions, Event } from './contract.ts';
import { ErrorAnswer, NoAnswerError } from './errors.ts';
import { checkTime } from './options.ts';
import { waitBeforeRepeat } from './retries.ts';
import { sleep } from './sleep.ts';
import { tell } from './telling.ts';

/** The members that every list answers with. */
export interface ListPage<Item> {
  readonly has_more: boolean;
  readonly next_cursor: string | null;
  readonly data: readonly Item[];
}

/** A list. Going through it reads page after page, each when it is needed. */
export class Pages<Page, Item> implements AsyncIterable<Item> {
  readonly #read: (cursor: string | undefined) => Promise<Page & ListPage<Item>>;

  constructor(read: (cursor: string | undefined) => Promise<Page & ListPage<Item>>) {
    this.#read = read;
  }

  /** The first page, or the one at the cursor that was given. */
  page(): Promise<Page & ListPage<Item>> {
    return this.#read(undefined);
  }

  /** Page after page. */
  async *pages(): AsyncGenerator<Page & ListPage<Item>, void, undefined> {
    let page = await this.#read(undefined);
    yield page;
    while (page.has_more && page.next_cursor !== null) {
      page = await this.#read(page.next_cursor);
      yield page;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }

  /** All items. Give a bound if the list may be long: reading ends there. */
  async toArray(most = Number.POSITIVE_INFINITY): Promise<Item[]> {
    if (typeof most !== 'number' || !(most >= 0))
      throw new TypeError('The bound of `toArray` has to be a number from 0.');
    const items: Item[] = [];
    for await (const item of this) {
      if (items.length >= most) break;
      items.push(item);
    }
    return items;
  }
}

/** How the feed is followed. */
export interface FeedOptions extends Omit<CallOptions, 'deadlineMs' | 'maxAttempts'> {
  /** Where to go on: the `cursor` of an earlier feed. Without it, from the oldest event that is kept, of 30 days. */
  readonly cursor?: string | undefined;
  /** How many events are read at once, 1 to 100. A program that stops in the middle of them meets them again. */
  readonly limit?: number | undefined;
  /** How long to wait when there is nothing new, in milliseconds. */
  readonly pollMs?: number | undefined;
  /**
   * Called when the feed cannot be read at the moment. It is tried again. What it throws, or a promise of it rejects with, is
   * written to the console, and changes nothing.
   */
  readonly onTrouble?: ((error: NoAnswerError | ErrorAnswer, waitMs: number) => void) | undefined;
}

/** A page of the feed. */
export interface EventPage<Each> extends ListPage<Each> {
  readonly next_cursor: string;
}

/** Throws a TypeError for options with which no feed can be followed. */
export function checkFeedOptions({ cursor, limit, pollMs, onTrouble }: FeedOptions): void {
  if (cursor !== undefined && typeof cursor !== 'string') throw new TypeError('`cursor` has to be a text.');
  if (limit !== undefined && !(Number.isInteger(limit) && limit >= 1 && limit <= 100)) {
    throw new TypeError('`limit` has to be a whole number from 1 to 100.');
  }
  checkTime('pollMs', pollMs);
  if (onTrouble !== undefined && typeof onTrouble !== 'function')
    throw new TypeError('`onTrouble` has to be a function.');
}

const longestWaitMs = 30_000;
const listEvents = { method: 'GET', takesKey: false } as const;

/**
 * The event feed from a cursor on. It goes on for ever, through outages too, until its signal is aborted, the loop is left or the
 * gateway refuses for good, such as when the key was revoked.
 */
export class EventFeed<Each = Event> implements AsyncIterable<Each> {
  readonly #read: (cursor: string | undefined, limit: number) => Promise<EventPage<Each>>;
  readonly #options: FeedOptions;
  #cursor: string | undefined;

  constructor(read: (cursor: string | undefined, limit: number) => Promise<EventPage<Each>>, options: FeedOptions) {
    this.#read = read;
    this.#options = options;
    this.#cursor = options.cursor;
  }

  /**
   * Where to go on later. It moves when the loop asks for more after the last event of a page, so everything before it was
   * handled. Store it as often as you like.
   */
  get cursor(): string | undefined {
    return this.#cursor;
  }

  /** Goes past all events there are now, without handing them out. */
  async skipToEnd(): Promise<string> {
    for (;;) {
      const page = await this.#patiently(100);
      this.#cursor = page.next_cursor;
      if (!page.has_more) return page.next_cursor;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Each, void, undefined> {
    const { signal, pollMs = 1_000, limit = 100 } = this.#options;
    for (;;) {
      const page = await this.#patiently(limit);
      yield* page.data;
      this.#cursor = page.next_cursor;
      if (!page.has_more) await sleep(pollMs, signal);
    }
  }

  /** Reads what follows, as often as it takes. Each call has its own bounded attempts before. */
  async #patiently(limit: number): Promise<EventPage<Each>> {
    const { signal, onTrouble } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#read(this.#cursor, limit);
      } catch (error) {
        if (signal?.aborted || !(error instanceof NoAnswerError || error instanceof ErrorAnswer)) throw error;
        const waitMs = waitBeforeRepeat(error instanceof ErrorAnswer ? error : {}, listEvents, attempt);
        if (waitMs === undefined) throw error;
        const boundedMs = Math.min(longestWaitMs, waitMs);
        if (onTrouble) tell('onTrouble', () => onTrouble(error, boundedMs));
        await sleep(boundedMs, signal);
      }
    }
  }
}
