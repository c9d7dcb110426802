/** The names under which an exchange has orders and requests to cancel. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { subjectOf } from '../../src/fix-adapter/messages/subject.ts';
import {
  canBeOrderId,
  cancelName,
  isCancelName,
  maxCancels,
  orderIdOfName,
  orderName,
} from '../../src/fix-adapter/orders/names.ts';
import { saidNothing } from '../../src/fix-adapter/orders/reject-reasons.ts';
import { applyReject } from '../../src/fix-adapter/orders/rejects.ts';
import type { FixCancel } from '../../src/fix-adapter/store/table.ts';
import { fixMessage, fixOrder } from '../support/fix-order.ts';
import { fc } from '../support/properties.ts';

const id = fc.stringMatching(/^ord_[a-z2-7]{20}$/);
const nth = fc.integer({ min: 1, max: maxCancels });
const length = fc.integer({ min: 20, max: 70 });
const one = 'ord_3abcdefghijklmnopqrs';

describe('the names of orders and cancels at an exchange', () => {
  it('are never longer than the exchange takes, and show their order', () => {
    fc.assert(
      fc.property(id, nth, length, (order, count, max) => {
        const name = orderName(order, max) ?? '';
        const cancel = cancelName(order, count, max) ?? '';
        for (const each of [name, cancel]) {
          assert.ok(each.length > 0 && each.length <= max, `${each} at ${max}`);
          assert.match(each, /^[A-Za-z0-9._-]+$/);
          assert.equal(orderIdOfName(each), order);
        }
        assert.ok(isCancelName(cancel) && !isCancelName(name));
      }),
    );
  });

  it('are different for each order and each of its cancels', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(id, { minLength: 2, maxLength: 2 }),
        nth,
        nth,
        length,
        (orders, first, second, max) => {
          const names = orders.flatMap((order) => [
            orderName(order, max),
            ...[...new Set([first, second])].map((count) => cancelName(order, count, max)),
          ]);
          assert.equal(new Set(names).size, names.length);
        },
      ),
    );
  });

  it('are the gateway’s ids where the exchange takes 30 characters, and 20 characters where it takes fewer', () => {
    assert.deepEqual([orderName(one, 30), cancelName(one, 2, 30)], [one, `${one}.c2`]);
    assert.equal(orderName(one, 29), one.slice(4));
    assert.match(cancelName(one, 2, 29) ?? '', /^C.{19}$/);
  });

  it('are none for an id that a name of another order could be, and for one that is too long', () => {
    for (const wrong of [`${one}.c1`, one.slice(4), cancelName(one, 1, 20) ?? '']) {
      assert.ok(!canBeOrderId(wrong) && orderName(wrong, 70) === undefined, wrong);
    }
    assert.equal(orderName('chk_3abcdefghijklmnopqrs', 20), undefined);
    assert.equal(orderName('short', 20), 'short');
    assert.equal(cancelName(one, maxCancels + 1, 20), undefined);
  });

  it('leave a name alone that is none of ours', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[!-~]{1,40}$/), (name) => {
        const order = orderIdOfName(name);
        if (order === name) return;
        const isOurs = /\.c\d+$/.test(name) || name === order.slice(4) || /^C.{19}$/.test(name);
        assert.ok(isOurs, `${name} became ${order}`);
      }),
    );
  });

  it('find the order in the message log and in a reject, in both forms', () => {
    const cancelId = cancelName(one, 3, 20) ?? '';
    assert.equal(subjectOf([[11, one.slice(4)]]).orderId, one);
    assert.equal(subjectOf([[11, cancelId]]).orderId, one);
    const cancel: FixCancel = {
      id: cancelId,
      orderId: one,
      requestedAt: 0,
      startedAt: 7,
      number: 13n,
      state: 'sending',
      ...saidNothing,
    };
    const orders = [fixOrder({ id: one, clOrdId: one.slice(4) })];
    const context = {
      reason: 'rejected_by_exchange',
      orders,
      cancels: [cancel],
      startedAt: 7,
      number: undefined,
      at: 1,
    };
    const ofOrder = applyReject(fixMessage({ 372: 'D' }, 'j'), { ...context, name: one.slice(4) });
    assert.equal(ofOrder.effect?.order.state, 'final');
    const ofCancel = applyReject(fixMessage({ 372: 'F' }, 'j'), { ...context, name: cancelId });
    assert.equal(ofCancel.cancel?.id, cancelId);
    assert.equal(applyReject(fixMessage({ 372: 'F' }, 'j'), { ...context, name: one.slice(4) }).cancel?.id, cancelId);
  });
});

describe('the number of a cancel', () => {
  it('the number of a cancel is from 1 to 9,999, in long names and in short ones', () => {
    for (const max of [20, 70]) {
      for (const [count, hasName] of [
        [0, false],
        [1, true],
        [maxCancels, true],
        [maxCancels + 1, false],
      ] as const) {
        const name = cancelName(one, count, max);
        assert.equal(name !== undefined, hasName, `${count} of ${max} characters`);
        if (name !== undefined) assert.deepEqual([isCancelName(name), orderIdOfName(name)], [true, one]);
      }
    }
  });
});
