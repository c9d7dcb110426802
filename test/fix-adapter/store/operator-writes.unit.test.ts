/** An operator's changes of the record of a FIX session, over a database that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settleFinding, settleOrder } from '../../../src/fix-adapter/store/operator-writes.ts';
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
