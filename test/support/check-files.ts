import type { Worker } from '../../src/kit/worker.ts';

/** Has watched files read again, as often as it takes until a change of them is used or refused. */
export async function checkFiles({ worker }: { readonly worker: Worker }): Promise<void> {
  // A change is used at the second reading that finds it.
  for (let readings = 0; readings < 2; readings += 1) {
    const stop = new AbortController();
    const running = worker.run(stop.signal);
    stop.abort();
    await running;
  }
}
