/** The fields of an ExecutionReport, each read alone. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readExecution } from '../../../src/fix-adapter/orders/execution.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { execution, weighing } from '../../support/fix-order.ts';

/** How an order is read from a report, the answer to a question, and the answer to a question about all orders. */
function read(ordStatus: string, timeInForce: 'day' | 'gtc', more: Readonly<Record<number, string>> = {}) {
  const context = { toKobo: weighing.toKobo, timeInForce, asked: false };
  const says = (execType: string, also: object = {}) =>
    readExecution(execution(execType, { [tags.OrdStatus]: ordStatus, ...also, ...more }), context).says;
  return [says(ordStatus), says('I', { [tags.OrdStatusReqID]: 'q' }), says('I', { [tags.MassStatusReqID]: 'm' })];
}

describe('an order that the exchange is done with for the day', () => {
  it('an order that the exchange is done with for the day has expired if it was for the day', () => {
    assert.deepEqual(read('3', 'day'), ['expired', 'expired_status', 'expired_status']);
  });

  it('an order that the exchange is done with for the day lives on if it is good until it is cancelled, also when the exchange is asked', () => {
    assert.deepEqual(read('3', 'gtc'), ['new', 'live_status', 'live_status']);
  });
});

describe('an order that the exchange rejects', () => {
  it('an order that the exchange rejects is unknown to it if it says so or gives no reason, to a question about this order, and nothing of it has traded', () => {
    assert.deepEqual(read('8', 'day').slice(1), ['unknown_status', 'rejected_status']);
    const unknown = { [tags.OrdRejReason]: '5' };
    assert.deepEqual(read('8', 'day', unknown), ['rejected_when_asked', 'unknown_status', 'rejected_status']);
    const traded = { ...unknown, [tags.CumQty]: '1' };
    assert.deepEqual(read('8', 'day', traded).slice(1), ['rejected_status', 'rejected_status']);
    assert.equal(read('8', 'day', { ...unknown, [tags.CumQty]: '0' })[1], 'unknown_status');
  });

  it('an order that the exchange rejects is known to it with another reason', () => {
    const reason = { [tags.OrdRejReason]: '1' };
    assert.deepEqual(read('8', 'day', reason), ['rejected', 'rejected_status', 'rejected_status']);
    assert.equal(
      read('8', 'day', { [tags.OrdRejReason]: '6' })[0],
      'duplicate',
      'the first of two with one id is there',
    );
  });
});
