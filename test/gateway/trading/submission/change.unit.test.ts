import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { Change } from '../../../../src/gateway/trading/submission/change.ts';
import { ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { orderKind } from '../../../support/kinds.ts';
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
