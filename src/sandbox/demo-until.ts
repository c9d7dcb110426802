import { setTimeout as sleep } from 'node:timers/promises';
import { DidNotHold } from './demo-failure.ts';
import type { Screen } from './demo-screen.ts';

const waitMs = 30_000;
const pauseMs = 100;

/** Looks again and again until there is something to find. The hint may say more once nothing came. */
export function until<T>(
  screen: Screen,
  what: string,
  find: () => T | undefined | Promise<T | undefined>,
  hint = () => '',
): Promise<T> {
  async function look(): Promise<T> {
    const endsAt = performance.now() + waitMs;
    for (;;) {
      const found = await find();
      if (found !== undefined) return found;
      if (performance.now() > endsAt) {
        throw new DidNotHold(`It did not come within ${waitMs / 1000} s: ${what}.${hint()}`);
      }
      await sleep(pauseMs);
    }
  }
  return screen.waiting(`waiting for ${what}`, look());
}
