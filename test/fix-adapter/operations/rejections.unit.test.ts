import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listRejections, newestFirst, type Rejection } from '../../../src/fix-adapter/operations/rejections.ts';
import { saidNothing } from '../../../src/fix-adapter/orders/reject-reasons.ts';
import { fixCancels, fixReports } from '../../../src/fix-adapter/store/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';
import { storedRow } from '../../support/stored-row.ts';

const one = (what: string, at: number | null): Rejection => ({
  ...{ number: undefined, at, orderId: 'ord_a', what, shownReason: null },
  ...saidNothing,
});
const names = (rows: readonly Rejection[]) => rows.map(({ what }) => what).join(' ');

describe('the rejections of an order', () => {
  it('are newest first, whether a report or a refused cancel', () => {
    const ends = [one('r9', 90), one('r5', 50)];
    assert.equal(names(newestFirst(ends, [one('c7', 70), one('c1', 10)])), 'r9 c7 r5 c1');
    assert.equal(names(newestFirst([], [one('c7', 70), one('c1', 10)])), 'c7 c1');
    assert.equal(names(newestFirst(ends, [])), 'r9 r5');
  });

  it('stay in the order of their numbers, also without a time or with an earlier one', () => {
    const ends = [one('r3', null), one('r2', 80), one('r1', 90)];
    assert.equal(names(newestFirst(ends, [one('c95', 95), one('c85', 85)])), 'c95 r3 r2 r1 c85');
  });

  it('are at most as many as were asked for, over both kinds, and the newest of them', async () => {
    const report = (number: bigint, at: number) =>
      storedRow(fixReports, {
        ...{ number, orderId: 'ord_a', exchangeOrderId: '', kind: 'expired', at, quantity: null, priceKobo: null },
        ...{ rejectReason: null, execId: null, counted: null, ...saidNothing },
      });
    const cancel = (id: string, requestedAt: number) =>
      storedRow(fixCancels, {
        ...{ id, orderId: 'ord_a', requestedAt, startedAt: 0, number: 1n, state: 'refused', ...saidNothing },
      });
    const read = async ({ sql }: Statement): Promise<SqlRow[]> => {
      assert.match(sql, / LIMIT 2$/);
      return sql.includes('FROM fix_reports') ? [report(9n, 90), report(8n, 80)] : [cancel('c2', 85), cancel('c1', 70)];
    };
    const found = await listRejections({ read } as Partial<Database> as Database, 'ord_a', 2);
    assert.equal(names(found), 'expired cancel c2 refused');
  });
});
