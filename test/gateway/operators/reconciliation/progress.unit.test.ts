/** The pieces that a run saves, over a database that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RunLostError, RunProgress } from '../../../../src/gateway/operators/reconciliation/progress.ts';
import { breakId, type Difference } from '../../../../src/gateway/operators/reconciliation/rules.ts';
import {
  reconciliationBreaks,
  type StoredBreak,
  type StoredRun,
} from '../../../../src/gateway/operators/reconciliation/table.ts';
import { type SqlRow, type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import { storedRow } from '../../../support/stored-row.ts';

const day = '2026-03-03';
const run: StoredRun = {
  ...{ day, number: 2, state: 'running', startedBy: null, startedAt: 0, endedAt: null, nextAt: 0, tries: 1 },
  ...{ problem: '', step: 'statement', position: '', periodFrom: 1, periodTo: 2 },
  ...{ records: 0n, objects: 0n, breaks: 0n, tookMs: 0n },
};

const difference: Difference = {
  ...{ kind: 'order_state', partnerId: 'par_a', objectId: 'ord_1', account: 'A1', symbol: 'S', subject: '' },
  ...{ ours: 'open', brokers: 'filled', isUnsettled: false },
};

/** A run's progress over some stored breaks and owners of accounts; `isHeld` of its database may change. */
function progressOf({ stored = [] as readonly StoredBreak[], owners = {} as Record<string, string>, now = 50 } = {}) {
  const written: Statement[][] = [];
  const state = { isHeld: true, written };
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.startsWith('SELECT fence')) {
      assert.deepEqual(values, ['reconciliation', 4n]);
      return state.isHeld ? [{ fence: 4 }] : [];
    }
    if (sql.includes('FROM accounts')) {
      return values.flatMap((account) => {
        const owner = owners[String(account)];
        return owner === undefined ? [] : [{ account: String(account), partner_id: owner }];
      });
    }
    assert.match(sql, /FROM reconciliation_breaks/);
    const ids = [values[0]].flat();
    return stored.filter(({ id }) => ids.includes(id)).map((row) => storedRow(reconciliationBreaks, row));
  };
  const database = {
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
    transaction: async (reads: readonly Statement[], decide: (found: SqlRow[][]) => { writes: Statement[] }) => {
      written.push(decide(reads.map(answer)).writes);
    },
  };
  const stopping = new AbortController();
  const turn = new AbortController();
  const lease = { name: 'reconciliation', fence: 4n, signal: stopping.signal, isHeld: () => true };
  const progress = new RunProgress(database as never, lease, () => now, run, turn.signal);
  return { progress, state, stopping, turn };
}

/** The table that a statement writes, with the values. */
const shown = ({ sql, values }: Statement) => [/^(?:INSERT INTO|UPDATE) (\w+)/.exec(sql)?.[1], ...values.flat(2)];

describe('a piece of a run', () => {
  it('a piece of a run is saved by the holder of the lease alone, and the run stays as it was saved', async () => {
    const { progress, state } = progressOf();
    await progress.save({ position: 'a' }, [statement('INSERT INTO items', 1)]);
    assert.deepEqual(
      state.written.map((writes) => writes.map(shown)),
      [
        [
          ['items', 1],
          ['reconciliation_runs', 'a', day, 2],
        ],
      ],
    );
    state.isHeld = false;
    await assert.rejects(progress.save({ position: 'b' }), RunLostError);
    await assert.rejects(progress.saveFound({ position: 'b' }, [difference]), RunLostError);
    await assert.rejects(progress.saveGone({ position: 'b' }, ['brk_1']), RunLostError);
    assert.equal(progress.run.position, 'a');
    assert.equal(state.written.length, 1);
  });

  it('a piece of a run moves the position of the run with the last of its differences', async () => {
    for (const count of [0, 1, 99, 100, 101, 200, 250]) {
      const { progress, state } = progressOf();
      const found = Array.from({ length: count }, (_, at) => ({ ...difference, objectId: `ord_${at}` }));
      await progress.saveFound({ position: 'all' }, found);
      assert.equal(state.written.length, Math.max(1, Math.ceil(count / 100)), `${count}`);
      const moves = state.written.map((writes) =>
        writes.some(({ sql }) => sql.startsWith('UPDATE reconciliation_runs')),
      );
      assert.deepEqual(moves, [...moves.slice(1).map(() => false), true], `${count}`);
      const inserts = state.written.flat().filter(({ sql }) => sql.startsWith('INSERT INTO reconciliation_breaks'));
      assert.equal(inserts.length, count);
      assert.equal(progress.run.position, 'all');
    }
  });

  it('a piece of a run names the partner of an account for a difference that has no object of a partner', async () => {
    const { progress, state } = progressOf({ owners: { A1: 'par_one', A2: 'par_two' } });
    const found = [
      { ...difference, objectId: 'x1', partnerId: '' },
      { ...difference, objectId: 'x2', partnerId: 'par_own' },
      { ...difference, objectId: 'x3', partnerId: '', account: 'A3' },
      { ...difference, objectId: 'x4', partnerId: '', account: 'A2' },
    ];
    await progress.saveFound({}, found);
    const inserted = state.written.flat().map((write) => shown(write)[1]);
    assert.deepEqual(inserted, ['par_one', 'par_own', '', 'par_two']);
  });

  it('a piece of a run finds a break again as the one that it was, and opens it if its sides changed', async () => {
    const id = breakId(run, difference);
    const before: StoredBreak = {
      ...{ partnerId: 'par_a', id, day, kind: 'order_state', objectId: 'ord_1', account: 'A1', symbol: 'S' },
      ...{ ours: 'open', brokers: 'filled', isUnsettled: false, isOpen: false, run: 1, firstSeenAt: 1 },
      ...{ lastSeenAt: 2, goneAt: null, acknowledgedBy: 'ada', acknowledgedAt: 3, acknowledgedReason: 'known' },
    };
    const again = async (row: StoredBreak, found: Difference) => {
      const { progress, state } = progressOf({ stored: [row] });
      await progress.saveFound({}, [found]);
      const [{ sql, values } = statement('')] = state.written.flat();
      const sets = (/ SET (.*) WHERE /.exec(sql)?.[1] ?? '').split(', ').map((set) => set.split(' ')[0]);
      return Object.fromEntries(sets.map((name, at) => [name, values[at]]));
    };
    assert.deepEqual(await again(before, difference), { run: 2, last_seen_at: new Date(50) }, 'it stays acknowledged');
    const changed = await again(before, { ...difference, brokers: 'cancelled', isUnsettled: true });
    assert.deepEqual([changed.brokers, changed.is_open, changed.is_unsettled], ['cancelled', true, true]);
    const gone = await again({ ...before, goneAt: 9 }, difference);
    assert.equal(gone.gone_at, null);
    const long = 'x'.repeat(400);
    const cut = { ...before, ours: long.slice(0, 300), brokers: long.slice(0, 300) };
    const same = await again(cut, { ...difference, ours: long, brokers: long });
    assert.deepEqual(Object.keys(same), ['run', 'last_seen_at'], 'a long side is the same as it is stored');
  });

  it('a piece of a run saves the same difference once, also if it was found twice', async () => {
    const { progress, state } = progressOf();
    await progress.saveFound({}, [difference, difference]);
    assert.equal(state.written.flat().length, 1);
  });
});

it('a run is interrupted when its process stops, and by the end of its turn once something was saved', async () => {
  const { progress, stopping, turn } = progressOf();
  assert.equal(progress.isInterrupted, false);
  turn.abort();
  assert.equal(progress.isInterrupted, false, 'it has not advanced');
  await progress.save({ problem: 'p', tookMs: 5n });
  assert.equal(progress.isInterrupted, false, 'it has not advanced yet');
  await progress.save({ position: 'a' });
  assert.equal(progress.isInterrupted, true);
  const stepped = progressOf();
  stepped.turn.abort();
  await stepped.progress.save({ step: 'objects' });
  assert.equal(stepped.progress.isInterrupted, true);
  const stopped = progressOf();
  stopped.stopping.abort();
  assert.equal(stopped.progress.isInterrupted, true);
  assert.ok(!stopping.signal.aborted);
});
