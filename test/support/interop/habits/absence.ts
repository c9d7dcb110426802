import type { Wording } from '../desk.ts';
import type { Habit } from '../habit.ts';

/** The exchange certifies in these rows that it knows of an order this long after it has read it. */
export const absenceSettings = { MARINA_FIX_ABSENCE_PROOF_MS: '1000' };

/** Longer than an order that is proven absent needs to be shown as refused, which is some 8 s. */
export const absenceWatchMs = 15_000;

const watchMs = absenceWatchMs;

/** The exchange has the order, and something that it had said before shows that. */
export function acknowledged(name: string, why: string, habit: Partial<Habit>): Habit {
  return {
    name: `the exchange ${name}, and says "unknown order" then`,
    why,
    expect: 'safe',
    onStatus: (desk, request) => void desk.unknown(request),
    watchMs,
    ...habit,
  };
}

/** The exchange has the order, and the answer to the question about it is not one that says that it has it not. */
export function answered(name: string, why: string, said: Wording): Habit {
  return {
    name: `the exchange answers about an order that it took with ${name}`,
    why,
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) => void desk.unknown(request, said),
    watchMs,
  };
}

/** The one case in which absence is proven: the order never reached the book, and the exchange says so as certified. */
const proven: readonly Habit[] = (
  [
    ['OrdRejReason 5', {}],
    ['no OrdRejReason', { 103: null }],
    ['ExecType Rejected and our OrdStatusReqID', { 150: '8' }],
    ['PossResend', { how: { header: [[97, 'Y']] } }],
  ] as readonly (readonly [string, Wording])[]
).map(([what, said]) => ({
  name: `the exchange lost an order before its book, and says "unknown order" with ${what} as it certifies`,
  why: 'this is what the setting is for',
  expect: 'quiet',
  onOrder: () => undefined,
  onStatus: (desk, request) => void desk.unknown(request, said),
  script: ({ sees }) => sees('refused', 0),
}));

/** Where the counterparty certifies absence, what must not be taken for its proof. One session serves all. */
export const absenceHabits: readonly Habit[] = [
  ...proven,
  ...(['A', '6', 'E', '9', 'B', '7', 'D'] as const).map((type) =>
    acknowledged(`reports ${type} of an order (ExecType and OrdStatus)`, 'any report of the order acknowledges it', {
      onOrder: (desk) => void desk.takeSilently().report({ 150: type, 39: type === 'D' ? '0' : type }),
    }),
  ),
  acknowledged('answers the first question about an order with Pending New', 'a gateway in front of the book answers', {
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: pendingFirst,
  }),
  acknowledged('lists an order as Pending New in a mass status that nobody asked for', 'a status also acknowledges', {
    onOrder: (desk) => void desk.takeSilently().status({ 39: 'A', 584: 'M1' }),
  }),
  ...(
    [
      ['the account of the clearing house', { 1: 'NG-77' }],
      ['the other side', { 54: '2' }],
      ['its own name of the symbol', { 55: 'SIM.REST.LG' }],
      ['another OrderQty', { 38: '70' }],
      ['the OrderQty and CumQty in lots', { 38: '1', 14: '0', 151: '1' }],
      ['a limit of another unit', { 44: '100000' }],
    ] as readonly (readonly [string, Wording])[]
  ).map(([what, said]) =>
    acknowledged(
      `reports New of an order with ${what}`,
      'a report that cannot be applied shows all the same that it has something',
      {
        onOrder: (desk) => void desk.takeSilently().report({ 150: '0', 39: '0', ...said }),
      },
    ),
  ),
  acknowledged(
    'trades an order under another account',
    'a trade that was not booked shows all the same that it has something',
    {
      expect: 'finding',
      onOrder: (desk) => void desk.takeSilently().trade(40, { 1: 'NG-77' }),
    },
  ),
  acknowledged(
    'trades an order at a price that it cannot have',
    'a trade that was not booked shows that it has the order',
    {
      expect: 'finding',
      onOrder: (desk) => void desk.takeSilently().trade(40, { 31: '100000', 6: '100000' }),
    },
  ),
  acknowledged('reports New of an order twice with one decisive field', 'such a message cannot be used', {
    onOrder: (desk) => void desk.takeSilently().report({ 150: '0', 39: '0', also: [[54, '1']] }),
  }),
  acknowledged('reports a bust of an order that it never reported a trade of', 'only what it has can be taken back', {
    onOrder: (desk) => void desk.bust(desk.takeSilently().trade(40, 'nothing')),
  }),
  acknowledged('reports Replaced of an order that has no answer', 'only what it has can be replaced', {
    onOrder: (desk) => void desk.takeSilently().report({ 150: '5', 39: '0' }),
  }),
  answered('"unknown order" and CumQty 40', 'an order that traded is known', { 14: '40' }),
  answered('"unknown order" and an OrdStatusReqID of nobody', 'the answer to a question of another firm', {
    790: 'SOMEBODY',
  }),
  answered('OrdRejReason 5 and OrdStatus New', 'two fields contradict each other', { 39: '0' }),
  answered('OrdRejReason 5 and OrdStatus Pending New', 'two fields contradict each other', { 39: 'A' }),
  answered('ExecType Rejected, OrdRejReason 5 and no OrdStatusReqID', 'it may be about anything', {
    150: '8',
    790: null,
  }),
  answered('OrdRejReason 2, exchange closed', 'a status that cannot be served now', { 103: '2' }),
  answered('OrdRejReason 99', 'a status that cannot be served now', { 103: '99' }),
  answered('two OrdStatus fields, Rejected and New', 'such a message cannot be used', { also: [[39, '0']] }),
  {
    name: 'the exchange says "unknown order" before anybody asks, and answers no question',
    why: 'a cache sends what it does not know yet',
    expect: 'safe',
    onOrder: (desk) =>
      void desk.takeSilently().report({ 37: 'NONE', 150: 'I', 39: '8', 103: '5', 151: '0', 14: '0', 6: '0' }),
    onStatus: () => undefined,
    watchMs,
  },
  {
    name: 'the exchange refuses a status request by a BusinessMessageReject with BusinessRejectReason 1, unknown ID',
    why: 'it says so of every question',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) =>
      void desk.send('j', [
        [45, request.text(34)],
        [372, 'H'],
        [379, request.text(11)],
        [380, '1'],
      ]),
    watchMs,
  },
  {
    name: 'the exchange answers a status request of an order that it took by "unknown order" in an OrderCancelReject',
    why: 'one handler serves cancels and status requests',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) =>
      void desk.rejectCancel(request, { 37: 'NONE', 41: request.text(11), 39: '8', 102: '1' }),
    watchMs,
  },
];

const toldPending = new WeakSet<object>();

/** The first answer is Pending New, the others are "unknown order". */
function pendingFirst(...[desk, request]: Parameters<NonNullable<Habit['onStatus']>>): void {
  if (toldPending.has(desk.order)) desk.unknown(request);
  else desk.answerStatus(request, { 39: 'A' });
  toldPending.add(desk.order);
}
