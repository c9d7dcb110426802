import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Plans } from '../../src/simulator/exchange/plans.ts';
import type { SimulatorDatabase } from '../../src/simulator/store/database.ts';
import type { World } from '../../src/simulator/world.ts';
import { eventually } from '../support/eventually.ts';

interface Row {
  readonly sequence: number;
  readonly id: string;
  readonly at: number;
}

/** Plans of a table whose reads are answered when the test says so, and the steps that were run. */
function startPlans() {
  const reads: { readonly after: number; answer(rows: readonly Row[] | Error): void }[] = [];
  const run: string[] = [];
  const warned: string[] = [];
  const database = {
    read: (_: string, [after]: readonly [number, number]) =>
      new Promise((resolve, reject) => {
        reads.push({ after, answer: (rows) => (rows instanceof Error ? reject(rows) : resolve(rows)) });
      }),
  };
  const world = { clock: { realNow: () => 1_000 } };
  const log = { warn: (_: unknown, text: string) => void warned.push(text) };
  const plans = new Plans(
    database as unknown as SimulatorDatabase,
    world as unknown as World,
    log as never,
    { table: 'orders', id: 'id', at: 'next_at' },
    async (id) => {
      run.push(id);
      return null;
    },
  );
  return { plans, reads, run, warned };
}

const due = (sequence: number): Row => ({ sequence, id: `o${sequence}`, at: 500 });

describe('the plans of the simulated exchange', () => {
  it('plans are read again if that is asked for while they are read, and once more after a read that failed', async () => {
    const { plans, reads, run, warned } = startPlans();
    plans.reload();
    plans.reload();
    assert.equal(reads.length, 1, 'one read at a time');
    plans.reload();
    reads[0]?.answer([]);
    await eventually(() => assert.equal(reads.length, 2, 'what was written meanwhile is read'));
    reads[1]?.answer(new Error('the database is away'));
    await eventually(() => assert.equal(warned.length, 1));
    assert.equal(reads.length, 2);
    plans.reload();
    await eventually(() => assert.equal(reads.length, 3));
    reads[2]?.answer([due(1)]);
    await eventually(() => assert.deepEqual(run, ['o1']));
    await plans.close();
  });

  it('plans are read page by page, each page behind the last plan of the one before', async () => {
    const { plans, reads, run } = startPlans();
    plans.reload();
    reads[0]?.answer(Array.from({ length: 1_000 }, (_, at) => due(at + 1)));
    await eventually(() => assert.equal(reads.length, 2));
    assert.equal(reads[1]?.after, 1_000);
    reads[1]?.answer([due(1_001)]);
    await eventually(() => assert.equal(run.length, 1_001));
    assert.equal(reads.length, 2);
    await plans.close();
  });

  it('plans that are closed while they are read are not read again', async () => {
    const { plans, reads } = startPlans();
    plans.reload();
    plans.reload();
    const closed = plans.close();
    reads[0]?.answer([]);
    await closed;
    assert.equal(reads.length, 1);
  });
});
