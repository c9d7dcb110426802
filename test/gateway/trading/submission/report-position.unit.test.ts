import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { Database } from '../../../../src/gateway/store/database.ts';
import type { Lease } from '../../../../src/gateway/store/lease.ts';
import { type SqlRow, type Statement, statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import {
  DatabaseDiffersError,
  LeaseLostError,
  ReportPosition,
} from '../../../../src/gateway/trading/submission/report-position.ts';

type Decide = (rows: SqlRow[][]) => { readonly writes: readonly Statement[]; readonly result: unknown };

describe('the position of a stream of reports', () => {
  /**
   * The content of the scripted database: the position, the mark, the objects by their ids, and all that was written to
   * it.
   */
  let stored: bigint;
  let mark: string | undefined;
  let wentBack: { readonly mark?: string; readonly objectId?: string }[];
  let objects: Map<string, SqlRow>;
  let written: Statement[];
  /** Done before the next transaction commits. */
  let meanwhile: () => void;
  /** Waited for by each transaction before it reads. */
  let arriving: Promise<unknown>;
  let transactions: number;
  let hasLease: boolean;
  let position: ReportPosition;
  const lease: Lease = { name: 'order-reports', fence: 1n, signal: new AbortController().signal, isHeld: () => true };

  const rowsOf = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.includes('FROM leases')) return hasLease ? [{ fence: 1 }] : [];
    if (values[0] === 'order-reports proven') return mark === undefined ? [] : [{ position: mark }];
    if (sql.includes('FROM positions')) return [{ position: String(stored) }];
    return values.flatMap((id): SqlRow[] => [objects.get(String(id)) ?? []].flat());
  };
  const transaction = async (reads: readonly Statement[], decide: Decide) => {
    transactions += 1;
    await arriving;
    const { writes, result } = decide(reads.map(rowsOf));
    meanwhile();
    written.push(...writes);
    const move = writes.find(({ values }) => values.flat(2).includes('order-reports'));
    if (move !== undefined) stored = BigInt(String(move.values.flat(2).at(-1)));
    const proven = writes.find(({ values }) => values.flat(2).includes('order-reports proven'));
    if (proven !== undefined) mark = String(proven.values.flat(2).at(-1));
    return result;
  };

  beforeEach(async () => {
    [stored, mark, objects, written, wentBack] = [4n, undefined, new Map(), [], []];
    meanwhile = () => undefined;
    [arriving, transactions, hasLease] = [Promise.resolve(), 0, true];
    position = new ReportPosition({
      database: { transaction } as Partial<Database> as Database,
      broker: firstBroker,
      kind: 'order',
      findObjects: (ids) => statement('SELECT * FROM orders WHERE id IN (?)', ...ids),
      realNow: () => 0,
      onWentBack: (details) => void wentBack.push(details),
    });
    await position.read(lease);
  });

  it('is stored with every report about an object that is not stored, also if they came in several batches', async () => {
    const [first, second] = [statement('INSERT 5'), statement('INSERT 6')];
    position.applied([['foreign', 5n, [first]]]);
    position.applied([['foreign', 6n, [second]]]);
    position.moveTo(6n);
    await position.store(lease, true);
    assert.equal(stored, 6n);
    assert.deepEqual(written.slice(-2), [first, second]);
  });

  it('is as expected for a transaction that read it before this process stored the next one', async () => {
    const before = position.factFor(['a']);
    position.moveTo(5n);
    await position.store(lease, true);
    const read = [{ position: '4' }];
    assert.doesNotThrow(() => position.check(before.value([read]), { id: 'a' }));
    assert.throws(() => position.check(position.factFor(['a']).value([read]), { id: 'a' }), DatabaseDiffersError);
  });

  /** Applies a report about each of many objects, and stores that in the scripted database. */
  function applyMany(count: number, first = 6): void {
    for (let number = first; number < first + count; number += 1) {
      objects.set(`object-${number}`, { id: `object-${number}`, last_report: number, missed_report: 0 });
      position.applied([[`object-${number}`, BigInt(number)]]);
    }
  }

  it('lets reports about any number of objects be applied while it cannot move, because a partner is locked', async () => {
    applyMany(20_000);
    assert.ok(position.isFull);
    await position.store(lease, false);
    assert.ok(!position.isFull, 'the reports of all partners wait for the locked one');
    assert.deepEqual([stored, wentBack], [4n, []]);
    assert.match(String(mark), /^1 \d+$/);
    applyMany(20_000, 20_006);
    await position.store(lease, false);
    position.moveTo(40_005n);
    await position.store(lease, true);
    assert.deepEqual([stored, wentBack], [40_005n, []]);
  });

  it('does not move when the database has lost reports that were proven while it could not move', async () => {
    applyMany(1_000);
    await position.store(lease, false);
    const proven = mark;
    // A failover to a database from before: it lacks the reports and the mark.
    [mark, objects] = [undefined, new Map()];
    position.moveTo(1_005n);
    await assert.rejects(position.store(lease, true), DatabaseDiffersError);
    assert.equal(stored, 4n);
    await position.read(lease);
    assert.deepEqual(
      wentBack.map(({ mark }) => mark),
      [proven],
      'operators hear of it',
    );
    assert.equal(position.number, 4n);
  });

  it('lets no further report of an object be applied when the database has lost the mark of the earlier ones', async () => {
    applyMany(1_000);
    await position.store(lease, false);
    const { reads, value } = position.factFor(['object-6']);
    const row = { id: 'object-6', lastReport: 6n };
    assert.doesNotThrow(() => position.check(value(reads.map(rowsOf)), row));
    mark = undefined;
    assert.throws(() => position.check(value(reads.map(rowsOf)), { ...row, lastReport: 0n }), DatabaseDiffersError);
  });

  it('rests on no mark of an earlier stream, and on none that another process wrote since', async () => {
    applyMany(1_000);
    await position.store(lease, false);
    mark = '2 1';
    await position.read(lease);
    applyMany(1, 2_000);
    position.moveTo(2_000n);
    await position.store(lease, true);
    assert.deepEqual([stored, wentBack], [2_000n, []]);
  });

  it('needs what was claimed when a transaction was asked for, though that is proven by the time it decides', async () => {
    position.applied([['a', 5n]]);
    objects.set('a', { id: 'a', last_report: 5, missed_report: 0 });
    const { reads, value } = position.factFor(['a']);
    const read = reads.map(rowsOf);
    position.moveTo(5n);
    await position.store(lease, true);
    // The row was read from a database that failed over in between.
    assert.throws(() => position.check(value(read), { id: 'a', lastReport: 0n }), DatabaseDiffersError);
  });

  it('is stored with one finding for a report that came twice before it was stored', async () => {
    position.applied([['foreign', 5n, [statement('INSERT first')]]]);
    position.applied([['foreign', 5n, [statement('INSERT second')]]]);
    position.applied([['foreign', 4n, [statement('INSERT third')]]]);
    position.moveTo(5n);
    await position.store(lease, true);
    assert.deepEqual(
      written
        .filter(({ sql }) => sql.startsWith('INSERT f') || /^INSERT (second|third)/.test(sql))
        .map(({ sql }) => sql),
      ['INSERT first'],
    );
  });

  it('is kept for a day as it was before the first report of that day', async () => {
    position.moveTo(9n);
    await position.store(lease, true);
    const kept = written.find(({ values }) => values.flat(2).includes('order-reports day 0'));
    assert.deepEqual(kept?.values.flat(2).slice(0, 2), ['order-reports day 0', '4 @0']);
  });

  it('a position goes past reports that were applied while it was stored only with the proof of them', async () => {
    for (const isLost of [false, true]) {
      stored = 4n;
      objects.set('one', { id: 'one', last_report: '5', missed_report: '0' });
      objects.set('two', { id: 'two', last_report: isLost ? '5' : '6', missed_report: '0' });
      await position.read(lease);
      position.applied([
        ['one', 5n],
        ['two', 5n],
      ]);
      position.moveTo(5n);
      meanwhile = () => {
        position.applied([['two', 6n]]);
        meanwhile = () => undefined;
      };
      await position.store(lease, true);
      assert.equal(stored, 5n);
      position.moveTo(6n);
      if (isLost) await assert.rejects(position.store(lease, true), DatabaseDiffersError);
      else await position.store(lease, true);
      assert.equal(stored, isLost ? 5n : 6n);
    }
  });

  it('has room again for as many objects and findings as before once they are stored', async () => {
    const claims = (count: number) =>
      Array.from({ length: count }, (_, at) => [`foreign ${at}`, 5n, [statement('INSERT 5')]] as const);
    position.applied(claims(9_999));
    assert.equal(position.isFull, false);
    position.applied(claims(10_000));
    assert.equal(position.isFull, true);
    position.moveTo(5n);
    await position.store(lease, true);
    assert.equal(position.isFull, false);
    position.applied(claims(9_999));
    assert.equal(position.isFull, false, 'what was stored counts no longer');
  });

  it('stores nothing of what it knew after the database went back, and goes on from what was stored', async () => {
    position.applied([
      ['foreign', 5n, [statement('INSERT 5')]],
      ['ours', 6n],
    ]);
    position.moveTo(6n);
    await assert.rejects(position.store(lease, true), DatabaseDiffersError);
    assert.deepEqual([position.number, written], [4n, []]);
    objects.set('ours', { id: 'ours', last_report: '6', missed_report: '0' });
    await position.read(lease);
    position.moveTo(6n);
    await position.store(lease, true);
    assert.deepEqual(
      written.filter(({ sql }) => sql === 'INSERT 5'),
      [],
    );
  });

  it('differs without a loss when an object is restored after its report found none', async () => {
    position.applied([['foreign', 5n, [statement('INSERT 5')]]]);
    objects.set('foreign', { id: 'foreign', last_report: 0, missed_report: 0 });
    position.moveTo(5n);
    await assert.rejects(position.store(lease, true), DatabaseDiffersError);
    await position.read(lease);
    assert.deepEqual([stored, wentBack, written], [4n, [], []], 'operators are told of a loss that there was not');
  });

  it('a position that moves while it is stored is stored again from where it was', async () => {
    let arrive = () => {};
    arriving = new Promise<void>((resolve) => (arrive = resolve));
    position.moveTo(5n);
    const first = position.store(lease, true);
    await new Promise(setImmediate);
    position.moveTo(6n);
    const second = position.store(lease, true);
    meanwhile = () => {
      position.moveTo(7n);
      meanwhile = () => undefined;
    };
    arrive();
    await Promise.all([first, second]);
    assert.deepEqual([stored, position.number], [7n, 7n]);
    position.moveTo(8n);
    await position.store(lease, true);
    assert.equal(stored, 8n);
  });

  it('a transaction that failed proves nothing, and the next one goes on from what was proven before', async () => {
    const away = new Error('the database is away');
    meanwhile = () => {
      throw away;
    };
    applyMany(1_000);
    await assert.rejects(position.store(lease, false), away);
    position.moveTo(1_005n);
    await assert.rejects(position.store(lease, true), away);
    meanwhile = () => undefined;
    await position.store(lease, true);
    assert.deepEqual([stored, mark], [1_005n, undefined], 'no mark was acknowledged, so none is missing');
    await position.read(lease);
    assert.deepEqual(wentBack, []);
  });

  it('a process that lost the lease stores and reads no position', async () => {
    hasLease = false;
    position.moveTo(5n);
    await assert.rejects(position.store(lease, true), LeaseLostError);
    await assert.rejects(position.read(lease), LeaseLostError);
    assert.deepEqual([stored, written], [4n, []]);
  });

  it('what an earlier stream had applied takes no room from the next one', async () => {
    position.applied(
      Array.from({ length: 10_000 }, (_, at) => [`foreign ${at}`, 5n, [statement('INSERT 5')]] as const),
    );
    assert.ok(position.isFull);
    await position.read(lease);
    applyMany(9_999);
    position.applied(Array.from({ length: 5_000 }, (_, at) => [`other ${at}`, 5n, [statement('INSERT 5')]] as const));
    assert.equal(position.isFull, false, '19,999 wait');
    position.applied([['one more', 5n]]);
    assert.equal(position.isFull, true);
  });

  it('a position is stored 250 ms after the last time, and compared with the database a second after that', async (t) => {
    let now = 1_000_000;
    t.mock.method(performance, 'now', () => now);
    await position.read(lease);
    /** How many transactions are made to store it so much later. */
    const storedAfter = async (ms: number, isEnd = false) => {
      now += ms;
      const before = transactions;
      await position.store(lease, isEnd);
      return transactions - before;
    };
    position.moveTo(5n);
    assert.equal(await storedAfter(0), 1, 'the first one is stored at once');
    assert.equal(await storedAfter(0, true), 0, 'there is nothing to store at the end');
    position.moveTo(6n);
    assert.deepEqual([await storedAfter(249), stored], [0, 5n]);
    assert.deepEqual([await storedAfter(1), stored], [1, 6n]);
    assert.equal(await storedAfter(999), 0);
    assert.equal(await storedAfter(1), 1);
    assert.equal(await storedAfter(999), 0, 'a second after the last comparison');
    applyMany(999, 7);
    assert.equal(await storedAfter(0), 0);
    applyMany(1, 1_006);
    assert.equal(await storedAfter(0), 1, 'a thousand that wait to be proven wait no longer');
    stored = 5n;
    await assert.rejects(storedAfter(1_000), DatabaseDiffersError);
  });
});
