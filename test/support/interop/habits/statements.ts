import type { Wording } from '../desk.ts';
import type { Act, Habit } from '../habit.ts';
import { utcTimestamp, type WireField } from '../wire.ts';

/** The message just sent, again under its number, as an answer to a ResendRequest that nobody made. */
function again(acceptor: Act['acceptor']): { header: WireField[]; number: number } {
  return {
    number: acceptor.numbers.nextOut - 1,
    header: [
      [43, 'Y'],
      [122, utcTimestamp(Date.now())],
    ],
  };
}

const hour = 3_600_000;

/** An order that rests, and a report of it with nothing changed, in a state that only some engines have. */
const passing: readonly Habit[] = (['7', '9', 'B'] as const).flatMap((state): Habit[] => [
  {
    name: `the exchange answers a status with OrdStatus ${state} of an order that traded 40, and fills the rest`,
    why: 'Stopped, Suspended and Calculated are states of an order that has not ended',
    expect: state === 'B' ? 'safe' : 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.status({ 39: state }).trade(60);
    },
  },
  {
    name: `the exchange says OrdStatus ${state} with CumQty 60 where trades of 40 were reported`,
    why: 'a trade was lost before the order was set aside',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.trade(20, 'nothing');
      desk.report({ 150: state, 39: state });
    },
  },
]);

/** A trade of 40 whose time cannot be. */
const times: readonly Habit[] = (
  [
    ['in a year', () => utcTimestamp(Date.now() + 365 * 24 * hour)],
    ['of the year 1970', () => '19700101-00:00:00.000'],
    ['of the year 9999', () => '99991231-23:59:59.999'],
    ['with a leap second', () => '20161231-23:59:60.000'],
    ['in Lagos time with an offset', () => '20261126-10:00:00+01:00'],
    ['with nanoseconds', () => utcTimestamp(Date.now()).replace(/\.\d+$/, '.123456789')],
    ['without milliseconds', () => utcTimestamp(Date.now()).replace(/\.\d+$/, '')],
    ['of a 31st of February', () => '20260231-10:00:00.000'],
    ['that is a date', () => '20261126'],
    ['that is empty', () => ''],
  ] as const
).map(([what, time]) => ({
  name: `the exchange trades 40 and cancels the rest at a TransactTime ${what}`,
  why: 'clocks and formats of engines differ, and shares traded all the same',
  expect: 'true',
  script: async ({ desk, sees }) => {
    await sees('pending');
    const side = await desk();
    side.trade(40, { 60: time() });
    side.end('cancelled', { 60: time() });
    await sees('cancelled', 40);
  },
}));

/** Trades in a message of another kind, or as a part of a whole. */
const legs: readonly Habit[] = (
  [
    ['of one leg of a multi-leg order, and the whole behind it', { 442: '2' }, { 442: '3' }],
    ['as one leg, and again as one instrument under another ExecID', { 442: '2' }, { 442: '1' }],
  ] as readonly (readonly [string, Wording, Wording])[]
).map(([what, first, second]) => ({
  name: `the exchange reports a trade of 40 ${what}, and counts it once`,
  why: 'MultiLegReportingType 442: a leg and its sum are one trade',
  expect: 'finding',
  onOrder: (desk) => {
    const trade = desk.accept().trade(40, first);
    desk.sayTrade(trade, { 17: desk.acceptor.newId('T'), ...second });
  },
}));

/** ExecTransType 20 of FIX 4.2: 0 New, 1 Cancel, 2 Correct, 3 Status. */
const transactions: readonly Habit[] = [
  {
    name: 'the exchange answers by ExecTransType 3 with ExecType F that 40 have traded, and counts them once',
    why: 'an engine of FIX 4.2 says a status so, and its adapter to 4.4 makes a Trade of ExecType 1',
    expect: 'safe',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade(trade, { 17: desk.acceptor.newId('E'), 20: '3' });
    },
  },
  {
    name: 'the exchange says by ExecTransType 3 with ExecType 1 and LastQty 40 what has traded',
    why: 'an engine of FIX 4.2 says a status so',
    expect: 'safe',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade(trade, { 17: desk.acceptor.newId('E'), 20: '3', 150: '1' });
    },
  },
  {
    name: 'the exchange says Rejected by ExecTransType 3 of an order that it took',
    why: 'a status of FIX 4.2 about an order that its cache does not have',
    expect: 'finding',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk) => void desk.report({ 20: '3', 150: '8', 39: '8', 103: '1', 151: '0', 17: '0' }),
    watchMs: 10_000,
  },
  {
    name: 'the exchange cancels by ExecTransType 1 the New of an order that rests',
    why: 'ExecTransType Cancel takes back an execution, and this one was none',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().report({ 20: '1', 150: '0', 39: '0', 19: 'E1' }),
  },
];

/** The same message once more, and not the same. */
const repetitions: readonly Habit[] = [
  {
    name: 'the exchange sends the New of an order again under its number with PossDupFlag as a Trade of 40, and that trade under its own',
    why: 'its store keeps the last report of an order, and not each message',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept();
      desk.sayTrade(desk.trade(40, { how: again(desk.acceptor) }));
    },
  },
  {
    name: 'the exchange sends the New of an order again under its number with PossDupFlag as Cancelled, and that end under its own',
    why: 'its store keeps the last report of an order, and not each message',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept();
      desk.end('cancelled', { how: again(desk.acceptor) }).end('cancelled');
    },
  },
  {
    name: 'the exchange sends a trade again with PossResend, a new ExecID and the CumQty of the first',
    why: 'an application that does not know whether it was sent makes the report anew',
    expect: 'finding',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade(trade, { 17: desk.acceptor.newId('T'), how: { header: [[97, 'Y']] } });
    },
  },
  {
    name: 'the exchange sends a trade with PossResend under its ExecID with another price',
    why: 'the trade was corrected before it was made anew',
    expect: 'finding',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      trade.priceKobo = 990n;
      desk.sayTrade(trade, { how: { header: [[97, 'Y']] } });
    },
  },
  {
    name: 'the exchange sends a bust again with PossResend under another ExecID',
    why: 'an application that does not know whether it was sent makes the report anew',
    excuse: 'an order that ends after a bust or a correction shows the first trade until an operator settles it',
    expect: 'finding',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.bust(trade).bust(trade, { how: { header: [[97, 'Y']] } });
      desk.trade(60);
    },
  },
  {
    name: 'the exchange sends a trade of a number that it skipped with PossDupFlag',
    why: 'PossDupFlag says that it may have been sent, and it was not',
    expect: 'true',
    script: async ({ desk, sees, acceptor }) => {
      await sees('pending');
      const side = await desk();
      const header: WireField[] = [
        [43, 'Y'],
        [122, utcTimestamp(Date.now())],
      ];
      side.trade(100, { how: { header } });
      await acceptor.barrier();
    },
  },
];

/** Reports that change an order without a trade. */
const changes: readonly Habit[] = [
  {
    name: 'the exchange restates an order to fewer shares than have traded',
    why: 'the broker made the order smaller at the same moment',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(60);
      desk.report({ 150: 'D', 378: '5', 38: '40', 39: '2', 151: '0' });
      desk.end('cancelled', 'nothing');
    },
  },
  {
    name: 'the exchange restates the limit of an order to a worse one and trades there',
    why: 'a trader at the broker changed the price',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().report({ 150: 'D', 378: '4', 44: desk.acceptor.price(1_100n) });
      desk.trade(40, { 44: desk.acceptor.price(1_100n) }, 1_100n);
    },
  },
  {
    name: 'the exchange restates an order as cancelled (39=4) and cancels it',
    why: 'ExecRestatementReason 378=8, market option: the state is new, the ExecType is that of a restatement',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().end('cancelled', { 150: 'D', 378: '8', 39: '4', 151: '0' }),
  },
  {
    name: 'the exchange restates an order as filled whose trades it never reports',
    why: 'the trades went out on a session that is gone',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(100, 'nothing');
      desk.report({ 150: 'D', 378: '1' });
    },
  },
  {
    name: 'the exchange replaces an order by a larger one that nobody asked for, and fills it',
    why: 'a trader at the broker made it larger',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().report({ 150: '5', 39: '0', 38: '150', 151: '150' });
      desk.trade(100, { 38: '150', 39: '1', 151: '50' });
      desk.inventTrade(50, { 38: '150', 39: '2', 14: '150', 151: '0' });
    },
  },
  {
    name: 'the exchange replaces an order under a ClOrdID of its own, and fills it under that',
    why: 'a replacement by a trader at the broker has a ClOrdID of the broker',
    expect: 'safe',
    onOrder: (desk) => {
      const ids = { 11: desk.acceptor.newId('R'), 41: desk.order.terms.clOrdId };
      desk.accept().report({ 150: '5', 39: '0', ...ids });
      desk.trade(40, ids);
      desk.trade(60, { 11: ids[11] });
    },
  },
  {
    name: 'the exchange says Pending Replace that nobody asked for, and trades with OrdStatus Pending Replace',
    why: 'a trader at the broker is about to change the order',
    expect: 'true',
    onOrder: (desk) => {
      desk.accept().report({ 150: 'E', 39: 'E' });
      desk.trade(40, { 39: 'E' });
    },
  },
  {
    name: 'the exchange says Replaced with OrdStatus Filled and CumQty 100 where nothing was reported',
    why: 'the trades are in the replacement there',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(100, 'nothing');
      desk.report({ 150: '5', 39: '2' });
    },
  },
  {
    name: 'the exchange says that an order was triggered (150=L), and fills it',
    why: 'ExecType L, Triggered or Activated by System, of FIX 4.4 and later',
    expect: 'true',
    onOrder: (desk) => void desk.accept().report({ 150: 'L', 39: '0' }).trade(100),
  },
];

/** Trades with nothing in them, and averages of something else. */
const quantities: readonly Habit[] = [
  {
    name: 'the exchange says a trade of LastQty 0 with CumQty 40 and OrdStatus 1 where 40 traded',
    why: 'LastQty comes from another table than CumQty',
    expect: 'finding',
    onOrder: (desk) => void desk.accept().trade(40, { 32: '0' }),
  },
  {
    name: 'the exchange says a trade of LastQty 0 with OrdStatus 2, CumQty 100 and LeavesQty 0 where nothing was reported',
    why: 'the end of an order is a step of its own there',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(100, 'nothing');
      desk.report({ 150: 'F', 32: '0', 31: '0' });
    },
  },
  {
    name: 'the exchange says a trade of LastQty 0 with OrdStatus 4 and LeavesQty 0 of an order that it cancels',
    why: 'a trade that also says the end',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().end('cancelled', { 150: 'F', 32: '0', 31: '0' }),
  },
  {
    name: 'the exchange fills an order in two trades and says in the second the AvgPx of the first',
    why: 'AvgPx is computed before the trade is added',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept();
      desk.trade(40, {}, 900n);
      desk.trade(60, { 6: desk.acceptor.unit === 'kobo' ? '900' : '9.00' });
    },
  },
  {
    name: 'the exchange says New with LeavesQty 100 and OrderQty 100 in a message that also has LastQty 40',
    why: 'fields of the message before are left in the buffer',
    expect: 'true',
    onOrder: (desk) => void desk.accept({ 32: '40', 31: desk.acceptor.price(1_000n) }),
  },
  {
    name: 'the exchange says Cancelled with LastQty 40, and had not reported these 40',
    why: 'the last trade and the end are one message there',
    expect: 'finding',
    onOrder: (desk) => {
      const { acceptor } = desk.accept();
      desk.trade(40, 'nothing');
      desk.end('cancelled', { 32: '40', 31: acceptor.price(1_000n) });
    },
  },
  {
    name: 'the exchange says Rejected of a part, with CumQty 40 and LastQty 60',
    why: 'a risk check refused the second half',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end('rejected', { 32: '60' });
      desk.order.end = 'cancelled';
    },
  },
  {
    name: 'the exchange reports as OrderQty in a trade what the partner has in all orders together',
    why: 'a parent order that the broker made of two',
    expect: 'safe',
    orders: [{}, { quantity: 50 }],
    onOrder: (desk) => void desk.accept().trade(40, { 38: '150' }),
  },
];

/** A mass status whose totals do not agree with what it lists. */
const masses: readonly Habit[] = [
  {
    name: 'the exchange says in a mass status TotNumReports 9 and lists one order',
    why: 'the rest of the list was cut off',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().status({ 584: 'M9', 911: '9', 912: 'N' }),
  },
  {
    name: 'the exchange says in a mass status TotNumReports 0 and LastRptRequested Y of an order that traded 40',
    why: 'an empty list is written over the last report',
    expect: 'finding',
    onOrder: (desk) => {
      desk.accept().trade(40, 'nothing');
      desk.status({ 584: 'M9', 911: '0', 912: 'Y' });
    },
  },
  {
    name: 'the exchange says in a mass status that an order has ended as Rejected with TotNumReports 1',
    why: 'a status is an answer and never a rejection',
    expect: 'finding',
    onOrder: (desk) =>
      void desk.accept().report({ 150: 'I', 39: '8', 103: '99', 584: 'M9', 911: '1', 912: 'Y', 151: '0' }),
    watchMs: 3_000,
  },
  {
    name: 'the exchange lists trades in a mass status (ExecType F with MassStatusReqID) that it had reported',
    why: 'MassStatus of executions: each trade is repeated under its ExecID',
    expect: 'true',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade(trade, { 584: 'M9', 911: '1', 912: 'Y' });
    },
  },
  {
    name: 'the exchange lists trades in a mass status (ExecType F with MassStatusReqID) that it had never reported',
    why: 'MassStatus of executions: lost trades come so',
    expect: 'safe',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40, 'nothing');
      desk.sayTrade(trade, { 584: 'M9', 911: '1', 912: 'Y' });
    },
  },
  {
    name: 'the exchange repeats in a mass status a trade under a new ExecID with ExecType F',
    why: 'its ExecIDs are of messages and not of executions',
    expect: 'safe',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade(trade, { 584: 'M9', 911: '1', 912: 'Y', 17: desk.acceptor.newId('E') });
    },
  },
];

/** Statements of an exchange about an order outside its life: each is wrong about money if it is believed too soon. */
export const statementHabits: readonly Habit[] = [
  ...passing,
  ...times,
  ...legs,
  ...transactions,
  ...repetitions,
  ...changes,
  ...quantities,
  ...masses,
];
