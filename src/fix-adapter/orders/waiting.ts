import { atMost } from '../../kit/at-most.ts';

const longestWaitMs = 60_000;

/** Those who wait for something, by a key; each at most for a time. */
export class KeyedWaiters<T> {
  readonly #waiting = new Map<string, Set<(value: T) => void>>();

  /** Undefined: it did not come in time. */
  async wait(key: string, timeoutMs: number): Promise<T | undefined> {
    const others = this.#waiting.get(key) ?? new Set();
    let resolve: (value: T) => void = () => {};
    const promise = new Promise<T>((done) => {
      resolve = done;
    });
    this.#waiting.set(key, others.add(resolve));
    const came = await atMost(Math.min(Math.max(timeoutMs, 0), longestWaitMs), promise);
    others.delete(resolve);
    // After a resolve others may wait by the same key.
    if (others.size === 0 && this.#waiting.get(key) === others) this.#waiting.delete(key);
    return came ? promise : undefined;
  }

  resolve(key: string, value: T): void {
    for (const resolve of this.#waiting.get(key) ?? []) resolve(value);
    this.#waiting.delete(key);
  }

  forget(key: string): void {
    if (this.#waiting.get(key)?.size === 0) this.#waiting.delete(key);
  }
}
