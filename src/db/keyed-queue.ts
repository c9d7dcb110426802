import { ApiError } from '../lib/errors.ts';

/** How many may wait for one partner's turn before further ones are refused. */
const longestQueue = 500;

/**
 * Lets one piece of work per key run at a time, in the order of arrival. A partner's transactions wait here rather than
 * in the database, where each waiter would hold a connection.
 */
export class KeyedQueue {
  readonly #tails = new Map<string, { last: Promise<unknown>; length: number }>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const queue = this.#tails.get(key) ?? { last: Promise.resolve(), length: 0 };
    if (queue.length >= longestQueue) throw new ApiError('service_unavailable');
    this.#tails.set(key, queue);
    queue.length += 1;
    const turn = queue.length === 1 ? work() : queue.last.then(work, work);
    queue.last = turn;
    try {
      return await turn;
    } finally {
      queue.length -= 1;
      if (queue.length === 0) this.#tails.delete(key);
    }
  }
}
