import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Copied, type KnownOrder, orderOf } from '../../../src/fix-adapter/drop-copy/identity.ts';
import { parseDays, type Schedule } from '../../../src/fix-adapter/session/schedule.ts';

const schedule: Schedule = { days: parseDays('mon-fri'), start: '08:30', end: '16:00', calendar: new Map() };
const night: Schedule = { ...schedule, start: '20:00', end: '04:00' };
/** An instant by its time in Lagos. */
const lagos = (text: string) => Date.parse(`${text}+01:00`);
const placedAt = lagos('2026-11-24T10:00:00');
const sameDay = lagos('2026-11-24T15:59:00');
const nextDay = lagos('2026-11-25T10:00:00');

const order = (more: Partial<KnownOrder> = {}): KnownOrder => ({
  ...{ id: 'ord_a', exchangeOrderId: 'X1', symbol: 'MTNN.LG', side: 'buy', timeInForce: 'day', receivedAt: placedAt },
  ...{ endedAt: undefined, execIds: new Set(['e1']) },
  ...more,
});
const copy = (more: Partial<Copied> = {}): Copied => ({
  ...{ named: '', exchangeOrderId: 'X1', kind: 'trade', execRefId: '', symbol: 'MTNN.LG', side: '1' },
  ...{ tradedAt: sameDay, at: sameDay },
  ...more,
});
const gtc = (more: Partial<KnownOrder> = {}) => order({ timeInForce: 'gtc', ...more });
/** A report that takes a trade back, without the day of the trade. */
const bust = (more: Partial<Copied> = {}) => copy({ kind: 'cancelled', execRefId: 'e1', tradedAt: null, ...more });

const ours: readonly (readonly [string, Copied, KnownOrder])[] = [
  ['its ClOrdID, whatever else it says', copy({ named: 'ord_a', symbol: 'X', side: '2', tradedAt: 0 }), order()],
  ['its OrderID with symbol, side and day', copy(), order()],
  ['its OrderID with a ClOrdID that is not ours', copy({ named: 'of-the-broker' }), order()],
  ['its OrderID without a symbol and a side', copy({ symbol: '', side: '' }), order()],
  ['its OrderID without a time, on the day when it came', copy({ tradedAt: null }), order()],
  ['a later day of a good-till-cancelled order', copy({ tradedAt: nextDay }), gtc()],
  ['the last day of a good-till-cancelled order', copy({ tradedAt: nextDay + 3_600_000 }), gtc({ endedAt: nextDay })],
  ['the last millisecond of a good-till-cancelled order', copy({ tradedAt: nextDay }), gtc({ endedAt: nextDay })],
  [
    'a day before a good-till-cancelled order ended',
    copy({ tradedAt: nextDay }),
    gtc({ endedAt: nextDay + 86_400_000 }),
  ],
  ['a bust on the same day', bust({ execRefId: 'e9' }), order()],
  ['a bust on a later day of a trade that was booked', bust({ at: nextDay }), order()],
  ['a bust on a later day that states the day of the trade', bust({ at: nextDay, tradedAt: sameDay }), order()],
];
const others: readonly (readonly [string, Copied, KnownOrder])[] = [
  ['another OrderID', copy({ exchangeOrderId: 'X2' }), order()],
  ['no OrderID, as the order', copy({ exchangeOrderId: '' }), order({ exchangeOrderId: '' })],
  ['another symbol', copy({ symbol: 'DANGCEM' }), order()],
  ['our own name of the symbol', copy({ symbol: 'MTNN' }), order()],
  ['the other side', copy({ side: '2' }), order()],
  ['a short sale for a sale', copy({ side: '5' }), order({ side: 'sell' })],
  ['the next day', copy({ tradedAt: nextDay }), order()],
  ['the next day, by when it came', copy({ tradedAt: null, at: nextDay }), order()],
  ['the day before', copy({ tradedAt: lagos('2026-11-23T15:00:00') }), order()],
  ['the day before a good-till-cancelled order', copy({ tradedAt: lagos('2026-11-23T15:00:00') }), gtc()],
  ['a day after a good-till-cancelled order ended', copy({ tradedAt: nextDay }), gtc({ endedAt: sameDay })],
  ['a bust on a later day of a trade that was not booked', bust({ at: nextDay, execRefId: 'e9' }), order()],
  ['a bust on a later day that says that the trade was of that day', bust({ at: nextDay, tradedAt: nextDay }), order()],
  ['a bust on a later day of another symbol', bust({ at: nextDay, symbol: 'DANGCEM' }), order()],
  ['a bust from before the order', bust({ at: lagos('2026-11-23T15:00:00') }), order()],
];
describe('a row of the drop copy', () => {
  for (const [name, row, known] of ours) {
    it(`is of an order by ${name}`, () => assert.equal(orderOf(row, [known], schedule), 'ord_a'));
  }
  for (const [name, row, known] of others) {
    it(`is not of an order with ${name}`, () => assert.equal(orderOf(row, [known], schedule), undefined));
  }
});

describe('the order of a row of the drop copy', () => {
  const [first, second] = [order(), order({ id: 'ord_b', receivedAt: nextDay, execIds: new Set() })];

  it('is that of the day, of two that have one OrderID', () => {
    assert.equal(orderOf(copy(), [first, second], schedule), 'ord_a');
    assert.equal(orderOf(copy({ tradedAt: nextDay }), [second, first], schedule), 'ord_b');
  });

  it('is the last one, of two that have one OrderID and could both trade', () => {
    const orders = [second, gtc()];
    assert.equal(orderOf(copy({ tradedAt: nextDay }), orders, schedule), 'ord_b');
    assert.equal(orderOf(copy({ tradedAt: nextDay }), orders.reverse(), schedule), 'ord_b');
  });

  it('is the one that is named, not another one with its OrderID', () => {
    assert.equal(orderOf(copy({ named: 'ord_b' }), [first, second], schedule), 'ord_b');
  });

  it('lives over midnight in a session that does, and not in the next one', () => {
    const placed = order({ receivedAt: lagos('2026-11-24T23:00:00') });
    const at = (text: string) => orderOf(copy({ tradedAt: lagos(text) }), [placed], night);
    assert.equal(at('2026-11-25T03:00:00'), 'ord_a');
    assert.equal(at('2026-11-25T21:00:00'), undefined);
  });
});
