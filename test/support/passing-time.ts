import { syncBuiltinESMExports } from 'node:module';
import type { TestContext } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';

const tickMs = 50;
const maxTicks = 500;

/** Lets time pass in a moment until something is done. With `date`, the wall clock goes with it. */
export async function passTime<Result>(
  { mock }: TestContext,
  work: () => Promise<Result>,
  { date = false } = {},
): Promise<Result | undefined> {
  let clock = performance.now();
  mock.method(performance, 'now', () => clock);
  mock.timers.enable({ apis: date ? ['setTimeout', 'Date'] : ['setTimeout'], ...(date && { now: Date.now() }) });
  syncBuiltinESMExports();
  let result: Result | undefined;
  let failure: { readonly error: unknown } | undefined;
  void work().then(
    (what) => {
      result = what;
    },
    (error: unknown) => {
      failure = { error };
    },
  );
  for (let ticks = 0; result === undefined && failure === undefined && ticks < maxTicks; ticks += 1) {
    await turn();
    clock += tickMs;
    mock.timers.tick(tickMs);
  }
  mock.timers.reset();
  mock.restoreAll();
  syncBuiltinESMExports();
  if (failure !== undefined) throw failure.error;
  return result;
}
