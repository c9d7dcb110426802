import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Database } from '../../../src/gateway/store/database.ts';
import { removalWorker } from '../../../src/gateway/store/removal.ts';

it('a batch of old rows grows while batches are short, shrinks after a long one, within bounds, and waits for the time', async (t) => {
  const clock = { ms: 100_000 };
  t.mock.method(performance, 'now', () => clock.ms);
  const database = { transaction: async () => 1n, write: async () => 1 } as unknown as Database;
  // How long each batch takes, in milliseconds, and how many rows the next one may have.
  const steps: readonly (readonly [tookMs: number, next: number])[] = [
    ...([
      [39, 1_000],
      [40, 1_000],
      [120, 1_000],
      [121, 500],
      [121, 250],
      [121, 125],
      [121, 100],
      [121, 100],
    ] as const),
    ...([
      [39, 200],
      [0, 400],
      [0, 800],
      [0, 1_600],
      [0, 3_200],
      [39, 4_000],
      [39, 4_000],
      [121, 2_000],
    ] as const),
  ];
  const stop = new AbortController();
  const batches: number[] = [];
  const times = [undefined, undefined, 7, undefined];
  const timeOf = async () => (times.length > 0 ? times.shift() : 8);
  const nows: number[] = [];
  const options = { database, holder: 'test', timeOf, name: 'removal', restMs: 1 };
  const worker = removalWorker(options, async (now, most) => {
    nows.push(now);
    const [took = 0] = steps[batches.length] ?? [];
    batches.push(most);
    clock.ms += took;
    if (batches.length > steps.length) stop.abort();
    return most - 1;
  });
  await worker.run(stop.signal);
  assert.deepEqual(batches, [500, ...steps.map(([, next]) => next)]);
  assert.deepEqual([...new Set(nows)], [7, 8], 'nothing is removed while clocks are apart');
  assert.equal(nows.filter((now) => now === 7).length, 1, 'the time is asked for each batch');
});
