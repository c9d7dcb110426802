import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readExecution } from '../../../src/fix-adapter/orders/execution.ts';
import { endWithTrade, wrongCounts, wrongEnd, wrongPrice } from '../../../src/fix-adapter/orders/weigh.ts';
import type { FixOrder } from '../../../src/fix-adapter/store/table.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { execution, fixOrder, weighing } from '../../support/fix-order.ts';

const read = (execType: string, fields: Readonly<Record<number, string>>) =>
  readExecution(execution(execType, fields), { toKobo: weighing.toKobo, timeInForce: 'day', asked: false });
const counted = (execType: string, ordStatus: string, cumQty: string, leavesQty: string) =>
  read(execType, { [tags.OrdStatus]: ordStatus, [tags.CumQty]: cumQty, [tags.LeavesQty]: leavesQty });

describe('the price of a trade', () => {
  const limit = (side: FixOrder['side'], priceKobo: bigint) => fixOrder({ side, priceKobo });
  const market = (referenceKobo: bigint | null) => fixOrder({ type: 'market', priceKobo: null, referenceKobo });

  it('is plausible up to exactly ten times what is known of it, and down to exactly a tenth', () => {
    const order = market(100n);
    assert.deepEqual(
      [9n, 10n, 11n, 999n, 1_000n, 1_001n].map((price) => wrongPrice(order, price)),
      ['price_implausible', undefined, undefined, undefined, undefined, 'price_implausible'],
    );
  });

  it('the price of a limit order is held against its limit, whatever the reference price was', () => {
    const order = fixOrder({ priceKobo: 100n, referenceKobo: 5_000n });
    assert.equal(wrongPrice(order, 99n), undefined);
    assert.equal(wrongPrice({ ...order, side: 'sell', referenceKobo: 1n }, 101n), undefined);
  });

  it('is held against nothing if nothing is known of it', () => {
    assert.equal(wrongPrice(market(null), 1n), undefined);
  });

  it('may be the limit or better, and is worse than the limit by one kobo', () => {
    assert.deepEqual(
      [99n, 100n, 101n].map((price) => wrongPrice(limit('buy', 100n), price)),
      [undefined, undefined, 'worse_than_limit'],
    );
    assert.deepEqual(
      [99n, 100n, 101n].map((price) => wrongPrice(limit('sell', 100n), price)),
      ['worse_than_limit', undefined, undefined],
    );
  });
});

describe('the counts of the exchange after a trade', () => {
  /** 30 of 100 shares were reported, and the exchange took 10 of them back. */
  const order = fixOrder({ state: 'open', filled: 30n, adjusted: -10n });
  const wrong = (ordStatus: string, cumQty: string, leavesQty: string) =>
    wrongCounts(order, counted('F', ordStatus, cumQty, leavesQty));

  it('agree with the trades less those that were taken back', () => {
    assert.equal(wrong('1', '20', '80'), undefined);
    assert.equal(wrong('1', '20', '70'), 'counts_disagree');
    assert.deepEqual([wrong('1', '21', '80'), wrong('1', '19', '80')], ['trades_missing', 'counted_twice']);
  });

  it('disagree if the order is filled or nothing is left of it, and shares are', () => {
    assert.equal(wrong('2', '20', '80'), 'counts_disagree');
    assert.equal(wrong('1', '20', '0'), 'counts_disagree');
  });
});

describe('the end of an order', () => {
  const order = fixOrder({ state: 'open', filled: 30n, adjusted: -10n });
  const wrong = (cumQty: string, leavesQty: string) =>
    wrongEnd(order, 'cancelled', counted('4', '4', cumQty, leavesQty));

  it('leaves 0 shares or what did not trade, by a count without the trades that were taken back', () => {
    assert.deepEqual([wrong('20', '0'), wrong('20', '80')], [undefined, undefined]);
    assert.equal(wrong('20', '70'), 'end_unproven', 'the shares that were taken back did not trade');
  });

  it('does not convince with another count', () => {
    assert.deepEqual([wrong('30', '0'), wrong('10', '0')], ['trades_missing', 'counted_twice']);
  });

  it('comes with a trade only if the counts agree, nothing is left and not all of it traded', () => {
    const end = (ordStatus: string, cumQty: string, leavesQty: string, filled = 20n) =>
      endWithTrade(fixOrder({ filled }), counted('F', ordStatus, cumQty, leavesQty));
    assert.deepEqual(
      [end('4', '20', '0'), end('C', '20', '0'), end('1', '20', '0')],
      ['cancelled', 'expired', undefined],
    );
    assert.deepEqual([end('4', '20', '80'), end('4', '10', '0')], [undefined, undefined]);
    assert.equal(end('4', '100', '0', 100n), undefined);
  });
});
