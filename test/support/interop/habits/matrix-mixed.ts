import type { Act, Habit } from '../habit.ts';

/** A partner who asks for one cancel of a resting order. */
async function cancelOnce(act: Act): Promise<void> {
  await act.sees('pending');
  await act.cancel();
}

/** Two orders that differ in nothing but their ids. */
const twins = [{}, {}];

/** Reports that name two orders, ids that differ little, and counts in reports that are about no trade. */
export const matrixMixedHabits: readonly Habit[] = [
  ...(['8', '0'] as const).map(
    (status): Habit => ({
      name: `the exchange refuses a cancel by an ExecutionReport with ExecType Rejected and OrdStatus ${status}`,
      why: 'one handler refuses all requests, and the order rests',
      expect: 'safe',
      onCancel: (desk, request) =>
        void desk.report({ 11: request.text(11), 41: request.text(41), 150: '8', 39: status, 103: '99', 151: '0' }),
      script: cancelOnce,
      watchMs: 3_000,
    }),
  ),
  {
    name: 'the exchange refuses a cancel by ExecType Rejected without OrigClOrdID',
    why: 'one handler refuses all requests, and the order rests',
    expect: 'safe',
    onCancel: (desk, request) =>
      void desk.report({ 11: request.text(11), 37: 'NONE', 150: '8', 39: '8', 103: '5', 151: '0' }),
    script: cancelOnce,
    watchMs: 3_000,
  },
  ...(['2', '4', 'C'] as const).map(
    (status): Habit => ({
      name: `the exchange refuses a cancel as too late with OrdStatus ${status}, and the report of that end was lost`,
      why: 'a report was lost inside the exchange, and the status tells it',
      expect: 'safe',
      onCancel: (desk, request) => {
        if (status === '2') desk.trade(100, 'nothing');
        else desk.end(status === '4' ? 'cancelled' : 'expired', 'nothing');
        desk.rejectCancel(request, { 39: status, 102: '0' });
      },
      script: cancelOnce,
      watchMs: 3_000,
    }),
  ),
  ...(
    [
      ['in capitals and small letters', 'Trade-7A', 'TRADE-7a'],
      ['in a space at the end', 'T7', 'T7 '],
      ['in an accent', 'Tré7', 'Tre7'],
      ['in the last of 65 characters', `${'7'.repeat(64)}A`, `${'7'.repeat(64)}B`],
      ['in zeros before it', '007', '7'],
    ] as const
  ).map(
    ([what, first, second]): Habit => ({
      name: `the exchange reports two trades whose ExecIDs differ only ${what}`,
      why: 'ExecID is a String, and these are two of them',
      expect: what.includes('space') || what.includes('accent') ? 'safe' : 'quiet',
      onOrder: (desk) => {
        desk.accept().trade(40, { 17: first });
        desk.trade(40, { 17: second });
      },
    }),
  ),
  ...(
    [
      ['Restated', 'D', '1', '60'],
      ['Pending Cancel', '6', '6', '60'],
      ['New', '0', '1', '60'],
      ['a status', 'I', '1', '60'],
      ['a status', 'I', '1', '0'],
      ['Done For Day', '3', '3', '60'],
      ['Done For Day', '3', '3', '0'],
    ] as const
  ).map(
    ([word, type, status, count]): Habit => ({
      name: `the exchange counts ${count} in a report of ${word} where 40 were reported`,
      why: count === '0' ? 'a trade was taken back silently' : 'a trade was lost inside the exchange',
      expect: 'finding',
      orders: [{ time_in_force: 'gtc' }],
      onOrder: (desk) => {
        const trade = desk.accept().trade(40);
        if (count === '0') desk.bust(trade, 'nothing');
        else desk.trade(20, 'nothing');
        desk.report({ 150: type, 39: status });
      },
    }),
  ),
  {
    name: 'the exchange takes a trade back before it reports it',
    why: 'two processes publish',
    expect: 'finding',
    excuse: 'the bust is not booked before an operator settles it',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40, 'nothing');
      desk.bust(trade).sayTrade(trade, { 14: '40', 151: '60', 39: '1', 6: desk.acceptor.price(1_000n) });
    },
  },
  {
    name: 'the exchange names in a bust the trade of another order',
    why: 'a mistake of an operator of the exchange',
    expect: 'safe',
    orders: twins,
    script: async ({ desk, sees }) => {
      await sees('pending', 0, 1);
      const [first, second] = [await desk(0), await desk(1)];
      const trade = first.trade(40);
      second.trade(40);
      second.report({ 150: 'H', 19: trade.execId, 32: '40', 31: second.acceptor.price(1_000n) });
    },
  },
  ...(['0', '0.00', '10.00'] as const).map(
    (price): Habit => ({
      name: `the exchange says Price ${price} of a market order`,
      why: 'Price is zero or a collar there',
      expect: 'true',
      orders: [{ type: 'market', price_kobo: undefined }],
      onOrder: (desk) => {
        desk.accept({ 44: price }).trade(100, { 44: price }, 1_007n);
      },
    }),
  ),
  {
    name: 'the exchange says as OrderID the ClOrdID of the order',
    why: 'it has no id of its own',
    expect: 'quiet',
    orders: twins,
    onOrder: (desk) => {
      const { clOrdId } = desk.order.terms;
      desk.accept({ 37: clOrdId }).trade(100, { 37: clOrdId });
    },
  },
  {
    name: 'the exchange says OrderID 0 in all reports of two orders',
    why: 'OrderID is required, and the gateway in front of the book has none',
    expect: 'safe',
    orders: twins,
    onOrder: (desk) => void desk.accept({ 37: '0' }).trade(40, { 37: '0' }),
  },
  {
    name: 'the exchange reports a trade under its OrderID and a ClOrdID of its own',
    why: 'a trader at the broker entered the order again',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().trade(40, { 11: 'DESK-77' }),
  },
  {
    name: 'the exchange corrects a trade under the ExecID of the trade',
    why: 'the correction has no id of its own',
    expect: 'finding',
    excuse: 'the trade is shown as it was first until an operator settles it',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      trade.priceKobo = 950n;
      desk.sayTrade(trade, { 150: 'G', 19: trade.execId });
    },
  },
  {
    name: 'the exchange rejects the cancel of one order under the OrigClOrdID of its twin, and both rest',
    why: 'answers to two cancels are mixed up',
    expect: 'true',
    orders: twins,
    onCancel: (desk, request) => {
      const other = desk.acceptor.ordersOf(desk.order.terms.account).find((each) => each !== desk.order);
      desk.rejectCancel(request, { 41: other?.terms.clOrdId ?? null, 37: other?.orderId ?? null, 102: '2' });
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange says as OrderQty what is left',
    why: 'the book keeps no other quantity',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(40, { 38: '60' });
      desk.trade(60, { 38: '0' });
    },
  },
  {
    name: 'the exchange reports a fill-or-kill order as filled in part and cancelled',
    why: 'a mistake of the market',
    expect: 'true',
    orders: [{ time_in_force: 'fok' }],
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end('cancelled');
    },
  },
  {
    name: 'the exchange says ExecType Trade with LastQty 0 after a trade, and the counts are right',
    why: 'the report tells that the order has left the auction',
    expect: 'true',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.report({ 150: 'F', 39: '1', 32: '0', 31: '0' });
    },
  },
  {
    name: 'the exchange fills an order in two hundred lots of one share',
    why: 'a thin market',
    expect: 'quiet',
    orders: [{ quantity: 200 }],
    onOrder: (desk) => {
      desk.accept();
      for (let lot = 0; lot < 200; lot += 1) desk.trade(1, {}, BigInt(801 + lot));
    },
  },
  {
    name: 'the exchange rejects an order after 40 have traded, with the right counts',
    why: 'what is left fails a late risk check',
    expect: 'true',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end('cancelled', { 150: '8', 39: '8', 103: '3' });
    },
  },
];
