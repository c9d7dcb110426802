import { setTimeout as delay } from 'node:timers/promises';
import { slowness } from './patience.ts';

/** A shorter bound for all that is checked, for runs that are expected to fail. */
const maxMs = Number(process.env.MARINA_TEST_BOUND_MS ?? Number.POSITIVE_INFINITY);

/**
 * Tries until a check stops throwing, and returns what it returned; after the bound, throws what it threw last. On a busy
 * machine the time of the bound passes more slowly.
 */
export function eventually<T>(check: () => T | Promise<T>, boundMs = 10_000): Promise<T> {
  return tryWithin(check, Math.min(boundMs, maxMs));
}

/** The same for what a test needs before it can check anything, in every run. */
export function ready<T>(check: () => T | Promise<T>, boundMs: number): Promise<T> {
  return tryWithin(check, boundMs);
}

async function tryWithin<T>(check: () => T | Promise<T>, boundMs: number): Promise<T> {
  let leftMs = boundMs;
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
