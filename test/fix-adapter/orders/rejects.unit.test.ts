/** The meaning of a Reject or a BusinessMessageReject for our orders and cancels. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { saidNothing } from '../../../src/fix-adapter/orders/reject-reasons.ts';
import { applyReject, type RejectContext } from '../../../src/fix-adapter/orders/rejects.ts';
import type { FixCancel, FixOrder } from '../../../src/fix-adapter/store/table.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { fixMessage, fixOrder } from '../../support/fix-order.ts';

const cancelOf = (id: string, more: Partial<FixCancel> = {}): FixCancel => ({
  ...{ id, orderId: 'ord_a', requestedAt: 1, startedAt: 7, number: 12n, state: 'sending', ...saidNothing },
  ...more,
});
/** A reject of our message 12 of the present numbering, which began at 7. */
const reject = (refMsgType: string | undefined, rows: Partial<RejectContext>) =>
  applyReject(fixMessage({ [tags.RefMsgType]: refMsgType }, '3'), {
    ...{ orders: [], cancels: [], startedAt: 7, number: 12n, name: undefined, reason: 'rejected_by_exchange', at: 9 },
    ...rows,
  });

describe('a message that the exchange rejects', () => {
  it('a message that the exchange rejects is the later one of two with its number, which an operator had set back', () => {
    const orders = [1, 3, 2].map((receivedAt) => fixOrder({ id: `ord_${receivedAt}`, receivedAt }));
    assert.equal(reject('D', { orders }).effect?.order.id, 'ord_3');
    const cancels = [1, 3, 2].map((requestedAt) => cancelOf(`c${requestedAt}`, { requestedAt }));
    assert.equal(reject('F', { cancels }).cancel?.id, 'c3');
    assert.equal(reject(undefined, { cancels }).cancel?.id, 'c3');
  });

  it('a message that the exchange rejects is none that has its number of an earlier numbering, or another number', () => {
    for (const other of [{ startedAt: 6 }, { number: 11n }, { number: 13n }] as const) {
      assert.deepEqual(reject('D', { orders: [fixOrder(other)] }), { orderId: '' });
      assert.deepEqual(reject('F', { cancels: [cancelOf('c', other)] }), { orderId: '' });
    }
  });

  it('a message that the exchange rejects must have both its number and its name, if the reject has both', () => {
    const orders = [fixOrder({ id: 'ord_a' }), fixOrder({ id: 'ord_b', receivedAt: 1 })];
    assert.equal(reject('D', { orders, name: 'ord_a' }).effect?.order.id, 'ord_a');
    assert.equal(reject('D', { orders, number: 13n, name: 'ord_a' }).effect, undefined);
    assert.equal(reject('D', { orders, number: undefined, name: 'ord_b' }).effect?.order.id, 'ord_b');
  });

  it('a message that the exchange rejects is no order unless the reject says that it was one', () => {
    const orders = [fixOrder()];
    for (const type of ['F', 'H', undefined]) assert.equal(reject(type, { orders }).effect, undefined, type);
  });

  it('a message that the exchange rejects was taken if the exchange has ever acknowledged it, and is no news if it is not on its way', () => {
    const others: readonly Partial<FixOrder>[] = [{ acknowledged: true }, { state: 'open' }, { state: 'final' }];
    for (const other of others) {
      assert.deepEqual(reject('D', { orders: [fixOrder(other)] }), { orderId: 'ord_a' });
    }
  });
});
