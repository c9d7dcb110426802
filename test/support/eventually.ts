import { setTimeout as delay } from 'node:timers/promises';

/** Tries until a check stops throwing, and returns what it returned; after the bound, throws what it threw last. */
export async function eventually<T>(check: () => T | Promise<T>, boundMs = 10_000): Promise<T> {
  const end = performance.now() + boundMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
      await delay(20);
    }
  }
}
