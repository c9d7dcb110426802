import type { Wording } from '../desk.ts';
import type { Habit } from '../habit.ts';

const strangers: readonly (readonly [string, Wording])[] = [
  ['the other side', { 54: '2' }],
  ['side sell short', { 54: '5' }],
  ['another symbol', { 55: 'OTHER' }],
  ['another account', { 1: 'SOMEBODY' }],
  ['the account of another firm in lower case', { 1: 'somebody' }],
  ['another OrderQty', { 38: '500' }],
];

/** A trade of something else under our ClOrdID must not be booked without a finding. */
const otherTrades: readonly Habit[] = strangers.flatMap(([what, said]) => [
  {
    name: `the exchange reports a trade with ${what} under the ClOrdID of an order`,
    why: 'ClOrdIDs are unique for each session or day only, and reports of two firms are mixed up',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().inventTrade(40, { 14: '40', 151: '60', 39: '1', ...said }),
  },
  {
    name: `the exchange says Canceled with ${what} under the ClOrdID of an order`,
    why: 'ClOrdIDs are unique for each session or day only, and reports of two firms are mixed up',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().report({ 150: '4', 39: '4', 151: '0', ...said }),
  },
  {
    name: `the exchange rejects an order with ${what} under the ClOrdID of an order`,
    why: 'ClOrdIDs are unique for each session or day only, and reports of two firms are mixed up',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently().report({ 150: '8', 39: '8', 103: '99', 151: '0', ...said }),
    onStatus: () => undefined,
    watchMs: 3_000,
  },
]);

const prices: readonly Habit[] = [
  {
    name: 'the exchange buys above the limit',
    why: 'the limit was lost inside the exchange',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().trade(40, {}, 1_001n),
  },
  {
    name: 'the exchange sells below the limit',
    why: 'the limit was lost inside the exchange',
    expect: 'finding',
    orders: [{ side: 'sell' }],
    onOrder: (desk) => void desk.accept().trade(40, {}, 999n),
  },
  {
    name: 'the exchange buys at a hundredth of the limit in LastPx, and at the limit in AvgPx',
    why: 'LastPx is in another unit than AvgPx',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().trade(40, { 31: desk.acceptor.price(10n) }),
  },
  {
    name: 'the exchange buys at a hundred times the limit in LastPx',
    why: 'naira and kobo are mixed up',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().trade(40, { 31: desk.acceptor.price(100_000n) }),
  },
  {
    name: 'the exchange sells at a hundredth of the limit in LastPx and AvgPx',
    why: 'naira and kobo are mixed up',
    expect: 'finding',
    orders: [{ side: 'sell' }],
    onOrder: (desk) => void desk.accept().trade(40, { 31: desk.acceptor.price(10n), 6: desk.acceptor.price(10n) }),
  },
  {
    name: 'the exchange buys a whole order at a hundred times the limit in LastPx and AvgPx',
    why: 'naira and kobo are mixed up',
    excuse: 'a trade beyond the limit may be true',
    expect: 'finding',
    onOrder: (desk) =>
      void desk.accept().trade(100, { 31: desk.acceptor.price(100_000n), 6: desk.acceptor.price(100_000n) }),
  },
  {
    name: 'the exchange says Price 44 a hundred times the limit and trades at the limit',
    why: 'naira and kobo are mixed up',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().trade(40, { 44: desk.acceptor.price(100_000n) }),
  },
  {
    name: 'the exchange trades at half a kobo',
    why: 'the average of an auction',
    unit: 'naira',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().inventTrade(40, { 31: '9.995', 14: '40', 151: '60', 39: '1' }),
  },
  {
    name: 'the exchange gives a better price than the limit',
    why: 'the market moved',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().trade(100, {}, 950n),
  },
];

export const identityHabits: readonly Habit[] = [
  ...otherTrades,
  ...prices,
  {
    name: 'the exchange reports a trade of an order that nobody placed',
    why: 'an order by telephone',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept();
      const text = `instead of ${desk.order.terms.clOrdId}`;
      desk.inventTrade(40, { 11: desk.acceptor.newId('PHONE'), 37: 'PHONE-1', 58: text });
    },
  },
  {
    name: 'the exchange reports a trade under the ClOrdID in other letters',
    why: 'ClOrdIDs are upper-cased',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().trade(40, { 11: desk.order.terms.clOrdId.toUpperCase() }),
  },
  {
    name: 'the exchange reports a trade under a ClOrdID cut to 20 characters',
    why: 'its field has 20 characters',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().trade(40, { 11: desk.order.terms.clOrdId.slice(0, 20) }),
  },
  {
    name: 'the exchange names a trade only by OrigClOrdID',
    why: 'after a cancel request both ids are in use',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().trade(40, { 11: null, 41: desk.order.terms.clOrdId }),
  },
  {
    name: 'the exchange reports the trade of one order under the ClOrdID and OrderID of another',
    why: 'reports of two orders are mixed up',
    expect: 'safe',
    orders: [{}, { side: 'sell', quantity: 100 }],
    onOrder: (desk) => {
      desk.accept();
      const [first] = desk.acceptor.ordersOf(desk.order.terms.account);
      if (first === undefined || first === desk.order) return;
      desk.trade(40, { 11: first.terms.clOrdId, 37: first.orderId });
    },
  },
  {
    name: 'the exchange reports a sale of a buyer',
    why: 'it tells the other side of the trade',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().inventTrade(100, { 54: '2', 14: '100', 151: '0', 39: '2' }),
  },
];
