import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { Change } from '../../../../src/gateway/trading/submission/change.ts';
import type { StoredWithdrawal } from '../../../../src/gateway/trading/withdrawals/table.ts';
import { ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { WithdrawalReportKind, WithdrawalReportSchema } from '../../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { orderKind, withdrawalKind } from '../../../support/kinds.ts';
import { plainOrder } from '../../../support/plain-order.ts';

const now = plainOrder.createdAt + 10_000;
const checkAt = now + 5_000;
const order: StoredOrder = { ...plainOrder, state: 'uncertain', checkAt, lastReport: 1n };

const report = create(ReportSchema, {
  ...{ number: 2n, clientOrderId: order.id, exchangeOrderId: 'X1', kind: ReportKind.ACCEPTED },
  at: timestampFromMs(now),
});

/** Ways in which an order whose outcome is unknown leaves the unsettled states. */
const ends = {
  'a report': (change: Change<StoredOrder>) => change.reports([report]),
  'a move': (change: Change<StoredOrder>) => change.move('refused', 'It never reached the exchange.'),
  'a settlement': (change: Change<StoredOrder>) =>
    change.settle([{ fields: { state: 'cancelled' }, detail: 'cancelled' }]),
};

describe('an order whose outcome becomes known', () => {
  for (const [name, end] of Object.entries(ends)) {
    for (const [missedReport, isLookedUp] of [
      [0n, false],
      [1n, false],
      [2n, name !== 'a report'],
      [3n, true],
    ] as const) {
      it(`an order that is settled by ${name} is ${isLookedUp ? 'still' : 'not'} looked up when it misses report ${missedReport}`, () => {
        const { after } = end(new Change<StoredOrder>(orderKind as never, { ...order, missedReport }, now));
        assert.notEqual(after.state, 'uncertain');
        assert.equal(after.checkAt, isLookedUp ? checkAt : null);
      });
    }
  }
});

describe('a withdrawal that waited for its release in a restored database', () => {
  const waiting = { ...plainOrder, brokerReference: null, destination: 'wallet', heldUntil: now + 1, releasedAt: null };
  const withdrawal = { ...waiting, evidence: 'stored' } as unknown as StoredWithdrawal;
  const reported = (kind: WithdrawalReportKind) => {
    const report = { number: 2n, at: timestampFromMs(now), brokerReference: 'B1', kind };
    return new Change(withdrawalKind, withdrawal, now).reports([create(WithdrawalReportSchema, report)]).after;
  };

  it('a withdrawal that waited for its release in a restored database waits no more once the broker says what it made of it', () => {
    for (const [kind, state] of [
      [WithdrawalReportKind.PAID, 'completed'],
      [WithdrawalReportKind.REJECTED, 'rejected'],
      [WithdrawalReportKind.ACCEPTED, 'processing'],
    ] as const) {
      const after = reported(kind);
      assert.deepEqual([after.state, after.heldUntil], [state, null], state);
    }
  });
});
