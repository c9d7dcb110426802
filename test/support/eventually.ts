import { setTimeout as delay } from 'node:timers/promises';
import { slowness } from './patience.ts';

/** A shorter bound for all, for runs that are expected to fail. */
const mostMs = Number(process.env.MARINA_TEST_BOUND_MS ?? Number.POSITIVE_INFINITY);

/**
 * Tries until a check stops throwing, and returns what it returned; after the bound, throws what it threw last. On a busy
 * machine the time of the bound passes more slowly.
 */
export async function eventually<T>(check: () => T | Promise<T>, boundMs = 10_000): Promise<T> {
  let leftMs = Math.min(boundMs, mostMs);
  for (let last = performance.now(); ; ) {
    try {
      return await check();
    } catch (error) {
      const now = performance.now();
      leftMs -= (now - last) / slowness();
      last = now;
      if (leftMs < 0) throw error;
      await delay(20);
    }
  }
}
