import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../../../src/gateway/store/database.ts';
import { type Lease, underLease } from '../../../src/gateway/store/lease.ts';
import type { Statement } from '../../../src/gateway/store/statement.ts';
import { startWorker } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

/** The length of a lease, from when it or its renewal was asked for. */
const lengthMs = 4_000;
/** How long the database takes for an answer. */
const slowMs = 2_500;

/** Waits until an instant of the monotonic clock has passed. */
const untilPast = (instant: number) => eventually(() => assert.ok(performance.now() > instant), 60_000);

/** Holds a lease of a database that answers slowly, at its taking or at a renewal, and then nothing more. */
async function hold(slow: 'taking' | 'renewal') {
  const held: Lease[] = [];
  const asked: number[] = [];
  const never = new Promise<never>(() => {});
  const database: Pick<Database, 'transaction' | 'write'> = {
    async transaction<T>() {
      asked.push(performance.now());
      if (slow === 'taking') await delay(slowMs);
      return 1n as T;
    },
    async write() {
      if (asked.length === (slow === 'taking' ? 1 : 2)) return never;
      asked.push(performance.now());
      await delay(slowMs);
      return 1;
    },
  };
  const worker = underLease(database as Database, 'job', 'holder', async (lease) => {
    held.push(lease);
    await new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve(), { once: true }));
  });
  void startWorker(worker);
  await eventually(() => assert.equal(asked.length, slow === 'taking' ? 1 : 2), 20_000);
  await eventually(() => assert.equal(held.length, 1), 20_000);
  return { lease: held[0] as Lease, askedAt: asked.at(-1) ?? 0 };
}

describe('a lease', { concurrency: true }, () => {
  for (const slow of ['taking', 'renewal'] as const) {
    it(`a lease is held for four seconds from when its ${slow} was asked for, however late the answer came`, async () => {
      const { lease, askedAt } = await hold(slow);
      if (performance.now() < askedAt + lengthMs - 500) assert.equal(lease.isHeld(), true);
      await untilPast(askedAt + lengthMs);
      assert.equal(lease.isHeld(), false, 'another process may have taken it');
      await eventually(() => assert.equal(lease.signal.aborted, true), slowMs / 2);
    });
  }

  it('a lease that another process took is lost at the next renewal, one that the database was away for is not, and each is given back', async () => {
    const cases = [
      { name: 'taken', renewals: [0], isLost: true },
      { name: 'away', renewals: ['away', 'away', 1], isLost: false },
    ] as const;
    await Promise.all(
      cases.map(async ({ name, renewals, isLost }) => {
        const writes: string[] = [];
        let fence = 0n;
        const left: (number | string)[] = [...renewals];
        const database = {
          async transaction() {
            fence += 1n;
            return fence;
          },
          async write({ sql, values }: Statement) {
            const isRenewal = sql.includes('INTERVAL');
            writes.push(`${isRenewal ? 'renew' : 'release'} ${values.at(-1)}`);
            if (!isRenewal) throw new Error('away');
            const answer = left.shift() ?? 1;
            if (answer === 'away') throw new Error('away');
            return answer;
          },
        };
        const held: Lease[] = [];
        const heldAtEnd: boolean[] = [];
        const worker = underLease(database as unknown as Database, name, 'holder', async (lease) => {
          held.push(lease);
          await new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve(), { once: true }));
          heldAtEnd.push(lease.isHeld());
        });
        const stop = startWorker(worker);
        await eventually(() => assert.equal(left.length, 0), 30_000);
        if (isLost) await eventually(() => assert.equal(held.length, 2), 30_000);
        assert.deepEqual(
          held.map((lease) => [lease.fence, lease.isHeld(), lease.signal.aborted]),
          isLost
            ? [
                [1n, false, true],
                [2n, true, false],
              ]
            : [[1n, true, false]],
        );
        await stop();
        assert.deepEqual(heldAtEnd, isLost ? [false, true] : [true], 'while a process stops, it is still held');
        assert.equal(held.at(-1)?.isHeld(), false);
        const released = writes.filter((one) => one.startsWith('release'));
        assert.deepEqual(
          released,
          held.map((lease) => `release ${lease.fence}`),
          'each by its own fence',
        );
      }),
    );
  });

  it('a lease whose work fails is given back, and the failure is told', async () => {
    const writes: string[] = [];
    const database = {
      transaction: async () => 7n,
      write: async ({ values }: Statement) => writes.push(String(values)),
    };
    const held: Lease[] = [];
    const worker = underLease(database as unknown as Database, 'job', 'holder', async (lease) => {
      held.push(lease);
      throw new Error('broken');
    });
    await assert.rejects(worker.run(new AbortController().signal), /broken/);
    assert.deepEqual(writes, ['job,7']);
    assert.equal(held[0]?.signal.aborted, true, 'nothing that the work began goes on');
  });
});
