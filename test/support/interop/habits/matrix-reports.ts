import type { Habit } from '../habit.ts';
import { utcTimestamp, type WireField } from '../wire.ts';

/** The fields of a good-till-cancelled order's report about the day. */
function ofDay(cumQty: number, average: string): WireField[] {
  return [
    [424, '60'],
    [425, String(cumQty)],
    [426, average],
  ];
}

/** Sections D and H of the order state change matrices, status reports, and reports of several orders or lots at once. */
export const matrixReportHabits: readonly Habit[] = [
  {
    name: 'the exchange ends the day of a good-till-cancelled order, restates it with another OrderID, and fills the rest',
    why: 'matrix D: OrderID is unique for a day only, and the quantities of the day stand beside the whole ones',
    expect: 'quiet',
    orders: [{ time_in_force: 'gtc' }],
    onOrder: (desk) => {
      const newId = desk.acceptor.newId('Y');
      desk.accept().trade(40);
      desk
        .report({ 150: '3', 39: '3', 151: '0', also: ofDay(40, desk.acceptor.price(1_000n)) })
        .report({ 150: 'D', 39: '1', 378: '1', 37: newId, also: ofDay(0, '0') });
      desk.trade(60, { 37: newId, also: ofDay(60, desk.acceptor.price(1_000n)) });
    },
  },
  {
    name: 'the exchange ends the day of a good-till-cancelled order with its LeavesQty, and says New on the next one',
    why: 'engines say New again in place of Restated',
    expect: 'quiet',
    orders: [{ time_in_force: 'gtc' }],
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.report({ 150: '3', 39: '3' }).report({ 150: '0', 39: '1' }).trade(60);
    },
  },
  {
    name: 'the exchange counts CumQty anew on the second day of a good-till-cancelled order',
    why: 'it holds CumQty for the count of the day',
    expect: 'safe',
    orders: [{ time_in_force: 'gtc' }],
    onOrder: (desk) => {
      const price = desk.acceptor.price(1_000n);
      desk.accept().trade(40);
      desk.report({ 150: '3', 39: '3' }).report({ 150: 'D', 39: '0', 378: '1', 14: '0', 6: '0', 38: '60' });
      desk.trade(60, { 14: '60', 6: price, 38: '60', 39: '2', 151: '0' });
    },
  },
  {
    name: 'the exchange lets a good-till-cancelled order expire after Done For Day',
    why: 'matrix D: the order is too old for that exchange',
    expect: 'quiet',
    orders: [{ time_in_force: 'gtc' }],
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.report({ 150: '3', 39: '3', 151: '0' }).end('expired');
    },
  },
  {
    name: 'the exchange reports a trade of a good-till-cancelled order with OrdStatus Done For Day',
    why: 'matrix D: a trade that is reported after the close',
    expect: 'true',
    orders: [{ time_in_force: 'gtc' }],
    onOrder: (desk) => {
      desk.accept().report({ 150: '3', 39: '3', 151: '0' });
      desk.trade(40, { 39: '3', 151: '0' });
    },
  },
  {
    name: 'the exchange reports a trade of a day order after Done For Day, with OrdStatus Done For Day',
    why: 'a trade of the closing auction is reported late',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().end('expired', { 150: '3', 39: '3' }).trade(40, { 39: '3' });
    },
  },
  {
    name: 'the exchange answers a status twice',
    why: 'matrix H: two machines have the order',
    expect: 'quiet',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) => void desk.answerStatus(request).answerStatus(request),
  },
  {
    name: 'the exchange answers a status with New after it has filled the order',
    why: 'matrix H: the answer was made before the fill and comes after it',
    expect: 'true',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) => {
      if (desk.order.filled === 0n) desk.trade(100);
      desk.answerStatus(request, { 39: '0', 14: '0', 151: '100', 6: '0' });
    },
  },
  {
    name: 'the exchange answers a status with Pending New, and with New later',
    why: 'matrix H: status before New',
    expect: 'quiet',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) => void desk.answerStatus(request, { 39: 'A' }).accept(),
  },
  {
    name: 'the exchange repeats the last trade with its ExecID and quantity in a status',
    why: 'a status is the last report with another ExecType there',
    expect: 'true',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade(trade, { 150: 'I' });
    },
  },
  {
    name: 'the exchange repeats the last trade with an ExecID of its own and LastQty in a status',
    why: 'a status is the last report with another ExecType there',
    expect: 'quiet',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade(trade, { 150: 'I', 17: desk.acceptor.newId('E') });
    },
  },
  {
    name: 'the exchange answers a status under an OrdStatusReqID that nobody used',
    why: 'matrix H: a status for another firm',
    expect: 'true',
    onOrder: (desk) => void desk.accept().status({ 790: 'SOMEBODY-ELSE' }),
  },
  {
    name: 'the exchange says in a mass status that nobody asked for that there are no orders',
    why: 'the specification has OrdStatus Rejected and TotNumReports 0 for an empty answer',
    expect: 'true',
    script: async ({ desk, sees }) => {
      await sees('pending');
      const side = await desk();
      for (const id of ['NONE', side.order.terms.clOrdId]) {
        side.report({ 11: id, 37: 'NONE', 150: 'I', 39: '8', 103: '99', 151: '0', 584: 'M7', 911: '0', 912: 'Y' });
      }
    },
    watchMs: 3_000,
  },
  {
    name: 'the exchange lists an order in a mass status twice, with TotNumReports 5 and LastRptRequested Y each time',
    why: 'the counts of the group are those of a page',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(40);
      for (const last of ['Y', 'Y']) desk.status({ 584: 'M8', 911: '5', 912: last });
    },
  },
  {
    name: 'the exchange fills an order in twenty lots of the same quantity, price and time',
    why: 'one aggressor meets twenty resting orders of one firm',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept();
      const at = utcTimestamp(Date.now());
      for (let lot = 0; lot < 20; lot += 1) desk.trade(5, { 60: at, 880: 'M1' });
    },
  },
  {
    name: 'the exchange says OrdStatus 1 with LeavesQty 0 in the last fill, and Filled in a status behind it',
    why: 'the end of an order is a step of its own there',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.trade(60, { 39: '1' });
      desk.status();
    },
  },
  {
    name: 'the exchange says LeavesQty 60 and OrdStatus 1 in a fill of the whole, and Filled in a status behind it',
    why: 'the last fill is built from the order before it',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(100, { 39: '1', 151: '60' });
      desk.status();
    },
  },
  {
    name: 'the exchange crosses two orders of one partner under one ExecID',
    why: 'a trade has one number, and both sides get it',
    expect: 'quiet',
    orders: [{}, { side: 'sell', quantity: 100 }],
    script: async ({ desk, sees, acceptor }) => {
      await sees('pending', 0, 1);
      const [buy, sell] = [await desk(0), await desk(1)];
      const execId = acceptor.newId('T');
      for (const side of [buy, sell]) side.trade(100, { 17: execId, 880: execId });
    },
  },
  {
    name: 'the exchange fills two orders in turns, and says Cancelled of one with the Side and OrderQty of the other',
    why: 'reports of two orders are mixed up in ClOrdID and OrderID, and neither has ended',
    expect: 'safe',
    orders: [{}, { side: 'sell', quantity: 70 }],
    script: async ({ desk, sees }) => {
      await sees('pending', 0, 1);
      const [buy, sell] = [await desk(0), await desk(1)];
      buy.trade(40);
      sell.trade(30);
      const { clOrdId } = buy.order.terms;
      sell.report({ 150: '4', 39: '4', 151: '0', 11: clOrdId, 37: buy.order.orderId });
    },
  },
  {
    name: 'the exchange reports an execution with GrossTradeAmt, commission, fees and settlement',
    why: 'everything that a contract note needs',
    expect: 'quiet',
    onOrder: (desk) => {
      const money: WireField[] = [
        [381, '1000.00'],
        [12, '1.35'],
        [13, '3'],
        [64, '20261130'],
        [75, '20261126'],
        [119, '1001.35'],
        [120, 'NGN'],
        [136, '1'],
        [137, '0.30'],
        [138, 'NGN'],
        [139, '4'],
        [30, 'XNSA'],
        [29, '1'],
        [851, '2'],
      ];
      desk.accept().trade(100, { also: money });
    },
  },
  {
    name: 'the exchange cuts AvgPx to a kobo',
    why: 'AvgPx is truncated and not rounded',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(33, {}, 990n);
      desk.trade(67, { 6: desk.acceptor.price(996n) });
    },
  },
  {
    name: 'the exchange says LastPx in AvgPx',
    why: 'AvgPx is not computed',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(40, {}, 900n);
      desk.trade(60, { 6: desk.acceptor.price(1_000n) });
    },
  },
  {
    name: 'the exchange trades at a price of four decimals that is no whole kobo',
    why: 'prices of a block trade',
    unit: 'naira',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().inventTrade(40, { 31: '9.9925', 14: '40', 151: '60', 39: '1' }),
  },
  {
    name: 'the exchange says a trade of 40 with LastPx 0 and the right AvgPx, and fills the rest',
    why: 'the price of an auction is given in AvgPx only',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(40, { 31: '0' });
      desk.trade(60);
    },
  },
  {
    name: 'the exchange sends a trade that never happened again under a number that was read, with PossDupFlag',
    why: 'the message of a number is another one after a fail-over',
    expect: 'true',
    onOrder: (desk) => {
      const number = desk.accept().acceptor.numbers.nextOut - 1;
      const header: WireField[] = [
        [43, 'Y'],
        [122, utcTimestamp(Date.now())],
      ];
      desk.inventTrade(40, { 14: '40', 151: '60', 39: '1', how: { number, header } });
    },
  },
  {
    name: 'the exchange sends a trade again under its number with PossDupFlag and another quantity',
    why: 'the message of a number is made anew from the book, which was corrected',
    expect: 'safe',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      const number = desk.acceptor.numbers.nextOut - 1;
      const header: WireField[] = [
        [43, 'Y'],
        [122, utcTimestamp(Date.now())],
      ];
      desk.sayTrade({ ...trade, quantity: 60n }, { 14: '60', 151: '40', how: { number, header } });
    },
  },
];
