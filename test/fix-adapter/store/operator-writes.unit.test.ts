/** An operator's changes of the record of a FIX session, over a database that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleFinding, settleOrder } from '../../../src/fix-adapter/store/operator-writes.ts';
import { setNumbers } from '../../../src/fix-adapter/store/set-numbers.ts';
import { type FixNumbers, fixFindingSettlements, fixNumbers, fixOrders } from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';
import { fixOrder } from '../../support/fix-order.ts';
import { storedRow } from '../../support/stored-row.ts';

const numbers: FixNumbers = {
  ...{ id: 1n, fence: 3n, version: 8n, startedAt: 7, nextOut: 1n, nextIn: 1n, lastReport: 0n, lastSubmission: 0n },
  ...{ backOfficeSubmission: 0n, restored: false },
};
const settlement = { at: 5, operator: 'ada', note: 'the desk says so' };

/** A database whose tables have these rows. */
function begin(rows: Readonly<Record<string, readonly SqlRow[]>>) {
  const written: Statement[] = [];
  const rowsOf = ({ sql }: Statement) => [...(rows[/ FROM (\w+)/.exec(sql)?.[1] ?? ''] ?? [])];
  const database: Partial<Database> = {
    transaction: async (reads, decide) => {
      const { writes, result } = decide(reads.map(rowsOf));
      written.push(...writes);
      return result;
    },
  };
  return { database: database as Database, written };
}

/** The columns that a statement of these sets to new values. */
function changed(written: readonly Statement[], table: string): Record<string, unknown> {
  const update = written.find(({ sql }) => sql.startsWith(`UPDATE ${table} SET `));
  const columns = [...(update?.sql.split(' WHERE ')[0] ?? '').matchAll(/(\w+) = \?/g)].map(([, name]) => name ?? '');
  return Object.fromEntries(columns.map((name, at) => [name, update?.values[at]]));
}

describe('an order that an operator settles', () => {
  it('is not asked about any more, whatever mark it had, and the process that has the session learns of it', async () => {
    const { database, written } = begin({
      fix_numbers: [storedRow(fixNumbers, numbers)],
      fix_orders: [storedRow(fixOrders, fixOrder({ state: 'open', mustAsk: true }))],
      fix_findings: [{ id: '4' }, { id: '9' }],
    });
    await settleOrder(database, 'ord_a', settlement);
    const { settled, must_ask: mustAsk, ...others } = changed(written, 'fix_orders');
    assert.deepEqual([Number(settled), Number(mustAsk), others], [1, 0, {}]);
    assert.deepEqual(changed(written, 'fix_numbers'), { version: 9n });
    const inserted = written.find(({ sql }) => sql.startsWith('INSERT INTO fix_finding_settlements'));
    const values = (inserted?.values ?? []).flat(2) as readonly unknown[];
    assert.deepEqual(
      values.filter((value) => typeof value === 'bigint'),
      [4n, 9n],
    );
  });

  it('is settled once, and not if nobody asks about it and none of its findings is open', async () => {
    const settleOne = (order: Parameters<typeof fixOrder>[0], findings: readonly SqlRow[]) => {
      const { database, written } = begin({
        fix_numbers: [storedRow(fixNumbers, numbers)],
        fix_orders: [storedRow(fixOrders, fixOrder(order))],
        fix_findings: findings,
      });
      return { written, done: settleOrder(database, 'ord_a', settlement) };
    };
    assert.equal(await settleOne({ state: 'sending' }, []).done, 0);
    assert.equal(await settleOne({ state: 'final', settled: true }, [{ id: '4' }]).done, 1);
    for (const order of [{ state: 'final' }, { state: 'unsent' }, { state: 'open', settled: true }] as const) {
      const { written, done } = settleOne(order, []);
      await assert.rejects(done, /^Error: there is nothing to settle: \w+ has no open finding, and (was|is) /);
      assert.deepEqual(written, []);
    }
  });

  it('must be one that is stored', async () => {
    const { database, written } = begin({ fix_numbers: [storedRow(fixNumbers, numbers)] });
    await assert.rejects(settleOrder(database, 'ord_b', settlement), /no order ord_b/);
    assert.deepEqual(written, []);
  });
});

describe('a finding that an operator settles', () => {
  it('must be one that is stored and that nobody has settled', async () => {
    const before = storedRow(fixFindingSettlements, { ...settlement, findingId: 4n, operator: 'bola' });
    const settle = (database: Database) => settleFinding(database, { ...settlement, findingId: 4n });
    await assert.rejects(settle(begin({}).database), /no finding 4/);
    const found = { fix_findings: [{ id: '4' }] };
    await assert.rejects(settle(begin({ ...found, fix_finding_settlements: [before] }).database), /bola has settled/);
    const { database, written } = begin(found);
    await settle(database);
    assert.equal(written.length, 1);
  });
});

describe('the numbers that an operator sets', () => {
  /** The statements about orders that are written when the numbers are set, from 40 each. */
  async function marksFor(nextOut: number, nextIn: number): Promise<string[]> {
    const { database, written } = begin({
      fix_numbers: [storedRow(fixNumbers, { ...numbers, nextOut: 40n, nextIn: 40n })],
    });
    assert.deepEqual(await setNumbers(database, { nextOut, nextIn }), { nextOut: 40, nextIn: 40 });
    const { next_out: out, next_in: incoming, version } = changed(written, 'fix_numbers');
    assert.deepEqual([out ?? 40n, incoming ?? 40n, version], [BigInt(nextOut), BigInt(nextIn), 9n]);
    return written.map(({ sql }) => sql).filter((sql) => sql.startsWith('UPDATE fix_orders '));
  }

  it('the numbers that an operator sets can pass over messages about any order that lives, higher or lower or the same', async () => {
    for (const [nextOut, nextIn] of [
      [41, 41],
      [41, 40],
      [40, 40],
      [1, 1],
      [41, 39],
    ] as const) {
      const marks = await marksFor(nextOut, nextIn);
      assert.deepEqual(
        marks.map((sql) => [/state = '(\w+)'/.exec(sql)?.[1], sql.includes('passed_over = 1')]),
        [
          ['sending', true],
          ['open', false],
        ],
        `${nextOut}, ${nextIn}`,
      );
      assert.ok(marks.every((sql) => sql.includes('must_ask = 1')));
    }
  });

  it('the numbers that an operator sets stay as they are while an adapter has the session', async () => {
    const { database, written } = begin({
      leases: [{ is_held: 1 }],
      fix_numbers: [storedRow(fixNumbers, numbers)],
    });
    await assert.rejects(setNumbers(database, { nextOut: 2, nextIn: 2 }), /stop all of them first/);
    assert.deepEqual(written, []);
  });
});
