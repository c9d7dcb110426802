import { setTimeout as delay } from 'node:timers/promises';

/** A shorter bound for all, for runs that are expected to fail. */
const mostMs = Number(process.env.MARINA_TEST_BOUND_MS ?? Number.POSITIVE_INFINITY);

/** Tries until a check stops throwing, and returns what it returned; after the bound, throws what it threw last. */
export async function eventually<T>(check: () => T | Promise<T>, boundMs = 10_000): Promise<T> {
  const end = performance.now() + Math.min(boundMs, mostMs);
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
      await delay(20);
    }
  }
}
