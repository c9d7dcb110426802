import type { TrueEnd } from '../book.ts';
import type { Wording } from '../desk.ts';
import type { Habit } from '../habit.ts';

const ends: readonly (readonly [string, TrueEnd, Wording])[] = [
  ['Canceled', 'cancelled', {}],
  ['Expired', 'expired', {}],
  ['DoneForDay', 'expired', { 150: '3', 39: '3' }],
  ['Rejected', 'cancelled', { 150: '8', 39: '8', 103: '99' }],
];

/** An end that counts shares which no trade has reported. */
const shortEnds: readonly Habit[] = ends.flatMap(([word, end, said]) => [
  {
    name: `the exchange says ${word} with CumQty 60 where trades of 40 were reported`,
    why: 'the last trade was lost inside the exchange',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.trade(20, 'nothing');
      desk.end(end, said);
    },
  },
  {
    name: `the exchange says ${word} with CumQty 60 where nothing was reported`,
    why: 'all trades were lost inside the exchange',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(60, 'nothing');
      desk.end(end, said);
    },
  },
  {
    name: `the exchange says ${word} with CumQty 20 where trades of 40 were reported`,
    why: 'a trade was taken back silently',
    expect: 'finding',
    onOrder: (desk) => {
      const kept = desk.accept().trade(20);
      const taken = desk.trade(20);
      desk.bust(taken, 'nothing').end(end, said);
      void kept;
    },
  },
  {
    name: `the exchange says ${word} and reports a trade from before it afterwards`,
    why: 'two processes publish',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(40);
      const late = desk.trade(20, 'nothing');
      desk.end(end, said).sayTrade(late);
    },
  },
  {
    name: `the exchange says ${word} without CumQty, LeavesQty and AvgPx after trades that it reported`,
    why: 'engines leave out what they hold for known',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end(end, { ...said, 14: null, 151: null, 6: null });
    },
  },
  {
    name: `the exchange says ${word} with LeavesQty 60 although nothing is left`,
    why: 'LeavesQty is what was left before',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end(end, { ...said, 151: '60' });
    },
  },
  {
    name: `the exchange says ${word} with an AvgPx that no trades can have`,
    why: 'a trade was corrected silently',
    expect: 'finding',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40, {}, 990n);
      trade.priceKobo = 900n;
      desk.end(end, said);
    },
  },
]);

const contradicting: readonly Habit[] = (
  [
    ['Canceled', '4', '0'],
    ['Canceled', '4', '2'],
    ['Canceled', '4', '1'],
    ['Expired', 'C', '0'],
    ['Expired', 'C', '2'],
    ['Rejected', '8', '0'],
    ['New', '0', '4'],
    ['New', '0', '8'],
    ['New', '0', 'C'],
    ['New', '0', '2'],
    ['Restated', 'D', '4'],
    ['Restated', 'D', '8'],
    ['Restated', 'D', '2'],
    ['Pending Cancel', '6', '4'],
    ['Suspended', '9', '4'],
  ] as const
).map(
  ([word, execType, status]): Habit => ({
    name: `the exchange says ExecType ${word} with OrdStatus ${status} of an order that rests`,
    why: 'ExecType and OrdStatus are filled in by two parts of the engine',
    expect: 'safe',
    onOrder: (desk) => void desk.accept(),
    script: async ({ sees, desk }) => {
      await sees('pending');
      (await desk()).report({ 150: execType, 39: status });
    },
  }),
);

export const endingHabits: readonly Habit[] = [
  ...shortEnds,
  ...contradicting,
  {
    name: 'the exchange fills 60 of 100 and says Filled with LeavesQty 0',
    why: 'the order was made smaller by the broker',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(60, { 39: '2', 151: '0' });
      desk.end('cancelled', 'nothing');
    },
  },
  {
    name: 'the exchange fills 60 of 100 and says LeavesQty 0',
    why: 'the rest was cancelled at once, and nothing else is said of it',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(60, { 151: '0' });
      desk.end('cancelled', 'nothing');
    },
  },
  {
    name: 'the exchange cancels an order that nobody asked it to cancel',
    why: 'the market supervision does that',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end('cancelled');
    },
  },
  {
    name: 'the exchange says DoneForDay of a day order',
    why: 'that is how the day ends there',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().end('expired', { 150: '3', 39: '3' }),
  },
  {
    name: 'the exchange says DoneForDay of a good-till-cancelled order and fills it later',
    why: 'the order rests over night',
    expect: 'true',
    orders: [{ time_in_force: 'gtc' }],
    onOrder: (desk) => {
      desk.accept().report({ 150: '3', 39: '3', 151: '0' });
      desk.trade(40);
    },
  },
  {
    name: 'the exchange restates an order to 80 shares and fills those',
    why: 'the broker made the order smaller',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().report({ 150: 'D', 378: '5', 38: '80', 151: '80' });
      desk.trade(80, { 38: '80', 39: '2', 151: '0' });
      desk.end('cancelled', 'nothing');
    },
  },
  {
    name: 'the exchange restates an order without a change',
    why: 'orders of yesterday are restated in the morning',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().report({ 150: 'D', 378: '1' }),
  },
  {
    name: 'the exchange replaces an order that nobody asked it to replace',
    why: 'a trader at the broker changed the price',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().report({ 150: '5', 39: '0', 44: desk.acceptor.price(900n) });
      desk.trade(100, {}, 900n);
    },
  },
  {
    name: 'the exchange takes a trade back',
    why: 'trades are busted by the market supervision',
    excuse: 'an order that ends after a bust or a correction shows the first trade until an operator settles it',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept();
      desk.bust(desk.trade(40));
    },
  },
  {
    name: 'the exchange takes a trade of 30 back, and 100 more trade',
    why: 'the order went back into the book',
    excuse: 'the trades add up to the order before the bust is counted',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept();
      desk.bust(desk.trade(30));
      desk.trade(100);
    },
  },
  {
    name: 'the exchange takes a trade back after the order was filled',
    why: 'trades are busted by the market supervision',
    excuse: 'the trade is taken back after the order was filled',
    expect: 'finding',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.trade(60);
      desk.bust(trade, { 39: '1', 151: '40' });
    },
  },
  {
    name: 'the exchange takes a trade back without ExecRefID',
    why: 'it names the trade in Text only',
    excuse: 'an order that ends after a bust or a correction shows the first trade until an operator settles it',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept();
      desk.bust(desk.trade(40), { 19: null });
    },
  },
  {
    name: 'the exchange takes a trade back that it had never reported',
    why: 'trade and bust happened while a message was lost',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept();
      desk.bust(desk.trade(40, 'nothing'));
    },
  },
  {
    name: 'the exchange takes a trade back silently and counts less in the next one',
    why: 'busts go out on another session',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept();
      desk.bust(desk.trade(40), 'nothing').trade(20);
    },
  },
  {
    name: 'the exchange corrects the price of a trade',
    why: 'a mistake of the market',
    excuse: 'an order that ends after a bust or a correction shows the first trade until an operator settles it',
    expect: 'finding',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      trade.priceKobo = 950n;
      desk.sayTrade(trade, { 150: 'G', 17: desk.acceptor.newId('G'), 19: trade.execId });
    },
  },
  {
    name: 'the exchange corrects the quantity of a trade downwards after the order was filled',
    why: 'a mistake of the market',
    excuse: 'the trade is taken back after the order was filled',
    expect: 'finding',
    onOrder: (desk) => {
      const trade = desk.accept().trade(100);
      trade.quantity = 70n;
      desk.sayTrade(trade, { 150: 'G', 17: desk.acceptor.newId('G'), 19: trade.execId });
    },
  },
  {
    name: 'the exchange fills more shares than were ordered',
    why: 'two matching engines had the order',
    excuse: 'no state has more shares than the order',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(100);
      desk.trade(50);
    },
  },
  {
    name: 'the exchange fills 150 of 100 in one trade',
    why: 'two matching engines had the order',
    excuse: 'no state has more shares than the order',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().trade(150),
  },
  {
    name: 'the exchange rejects an order after it had said New',
    why: 'a risk check at the exchange comes late',
    expect: 'true',
    onOrder: (desk) => void desk.accept().end('rejected'),
  },
  {
    name: 'the exchange rejects an order and fills it all the same',
    why: 'the rejection came from one gateway and the fill from the book',
    excuse: 'the exchange itself had ended the order',
    expect: 'safe',
    onOrder: (desk) => {
      desk.report({ 150: '8', 39: '8', 103: '99', 151: '0' });
      desk.trade(100);
    },
  },
  {
    name: 'the exchange says Cancelled of an order and fills the rest all the same',
    why: 'the cancel was taken back',
    excuse: 'the exchange itself had ended the order',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().report({ 150: '4', 39: '4', 151: '0' });
      desk.trade(100);
    },
  },
  {
    name: 'the exchange says Expired before New',
    why: 'two processes publish',
    expect: 'true',
    onOrder: (desk) => {
      desk.order.isTaken = true;
      desk.end('expired').report({ 150: '0', 39: '0', 151: '100' });
    },
  },
  {
    name: 'the exchange lets an immediate-or-cancel order trade 40 and cancels the rest in the same message',
    why: 'one message is enough for that engine',
    expect: 'safe',
    orders: [{ time_in_force: 'ioc' }],
    onOrder: (desk) => {
      desk.accept().trade(40, { 39: '4', 151: '0' });
      desk.end('cancelled', 'nothing');
    },
  },
  {
    name: 'the exchange kills a fill-or-kill order by Expired',
    why: 'engines differ in how they say it',
    expect: 'quiet',
    orders: [{ time_in_force: 'fok' }],
    onOrder: (desk) => void desk.accept().end('expired'),
  },
  {
    name: 'the exchange fills a market order at several prices',
    why: 'a market order takes what there is',
    expect: 'quiet',
    orders: [{ type: 'market', price_kobo: undefined }],
    onOrder: (desk) => {
      desk.accept().trade(33, {}, 1_003n);
      desk.trade(33, {}, 1_007n);
      desk.trade(34, {}, 991n);
    },
  },
];
