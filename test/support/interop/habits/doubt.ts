import type { Habit } from '../habit.ts';

/** Longer than all of the adapter's and the gateway's times after which an answer counts as proof. */
const watchMs = 20_000;
/** Well before anybody asks about an order without an answer, which can be after 1.5 s. */
const soonMs = 500;

const refusals: readonly Habit[] = ['5', '99', '0', null].flatMap((reason) =>
  ['I', '8'].map(
    (execType): Habit => ({
      name: `the exchange answers a status with 39=8, 150=${execType} and OrdRejReason ${reason ?? 'missing'}, although it took the order`,
      why: 'the status is served by a gateway that has not seen the order yet, and engines use any reason for "not found"',
      expect: 'safe',
      onOrder: (desk) => void desk.takeSilently(),
      onStatus: (desk, request) => void desk.unknown(request, { 150: execType, 103: reason }),
      watchMs,
    }),
  ),
);

const refusalsOfKnown: readonly Habit[] = ['5', '99', '0', null].flatMap((reason) =>
  ['I', '8'].map(
    (execType): Habit => ({
      name: `the exchange answers about a resting order of which a cancel was lost with 39=8, 150=${execType} and OrdRejReason ${reason ?? 'missing'}`,
      why: 'a status from a cache that has lost the order says the same as one about an order that never was',
      expect: 'safe',
      onCancel: () => undefined,
      onMassStatus: () => undefined,
      onStatus: (desk, request) => void desk.unknown(request, { 150: execType, 103: reason }),
      script: async ({ cancel, desk, sees, acceptor }) => {
        await sees('pending');
        await cancel();
        const { order } = await desk();
        // Not asked for by any message that the adapter must send: an engine that answers a cancel with a status.
        acceptor.desk(order).report({ 37: 'NONE', 150: 'I', 39: '8', 103: reason, 151: '0', 14: '0' });
      },
    }),
  ),
);

/** Orders without an answer, and what is said when the exchange is asked about them. */
export const doubtHabits: readonly Habit[] = [
  ...refusals,
  ...refusalsOfKnown,
  {
    name: 'the exchange says Pending New, and then "unknown order" to a status request',
    why: 'the order waits at a gateway in front of the book that answers status requests',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently().report({ 150: 'A', 39: 'A' }),
    onStatus: (desk, request) => void desk.unknown(request),
    watchMs,
  },
  {
    name: 'the exchange says Pending New, "unknown order" for a while, and then fills the order',
    why: 'the book was slow, and the order reached it later',
    expect: 'true',
    onOrder: (desk) => void desk.takeSilently().report({ 150: 'A', 39: 'A' }),
    onStatus: (desk, request) => void desk.unknown(request),
    script: async ({ desk, asked }) => {
      await asked('H', 2);
      (await desk()).accept().trade(100);
    },
  },
  {
    name: 'the exchange answers nothing about an order that it took',
    why: 'a report was lost inside the exchange',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: () => undefined,
    watchMs,
  },
  {
    name: 'the exchange answers an order only after the gateway has given up waiting',
    why: 'an auction holds orders back',
    expect: 'true',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: () => undefined,
    script: async ({ desk, sees }) => {
      await sees('uncertain');
      (await desk()).accept().trade(100);
    },
  },
  {
    name: 'the exchange fills an order without ever saying New, after its answer was lost',
    why: 'the New was lost, and the fill came from another process',
    expect: 'true',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: () => undefined,
    script: async ({ desk, sees }) => {
      await sees('uncertain');
      (await desk()).trade(100);
    },
  },
  {
    name: 'the exchange rejects an order late, before it is asked about it',
    why: 'a risk check at the broker takes a while',
    expect: 'quiet',
    onOrder: (desk) => void setTimeout(() => desk.end('rejected'), soonMs),
    onStatus: () => undefined,
  },
  {
    name: 'the exchange rejects an order after it was asked about it, without saying that this is no answer',
    why: 'a risk check at the broker takes longer, and an engine that has not seen an order yet answers a question alike',
    expect: 'finding',
    onOrder: () => undefined,
    onStatus: () => undefined,
    script: async ({ desk, asked }) => {
      await asked('H');
      (await desk()).end('rejected');
    },
  },
  {
    name: 'the exchange answers the status of a lost order honestly',
    why: 'the usual life of an order whose answer was lost',
    expect: 'quiet',
    onOrder: (desk) => void desk.takeSilently(),
  },
  {
    name: 'the exchange answers the status of a lost order with Filled, and never reports the trades',
    why: 'the trades went out on a session that is gone',
    expect: 'finding',
    onOrder: (desk) => void desk.takeSilently().trade(100, 'nothing'),
  },
  {
    name: 'the exchange answers the status of a lost order with 40 traded, and never reports the trade',
    why: 'the trade went out on a session that is gone',
    expect: 'finding',
    onOrder: (desk) => void desk.takeSilently().trade(40, 'nothing'),
  },
  {
    name: 'the exchange answers the status of a lost order with Cancelled and 40 traded, and never reports the trade',
    why: 'the trade went out on a session that is gone',
    expect: 'finding',
    onOrder: (desk) => {
      desk.takeSilently().trade(40, 'nothing');
      desk.end('cancelled', 'nothing');
    },
  },
  {
    name: 'the exchange reports a trade late that a status had counted',
    why: 'the status overtakes the trade',
    expect: 'true',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) => {
      if (desk.order.filled > 0n) return;
      const trade = desk.trade(40, 'nothing');
      desk.answerStatus(request).sayTrade(trade);
    },
  },
  {
    name: 'the exchange answers a status under the ClOrdID of another order',
    why: 'a cache of the exchange mixes two orders up',
    expect: 'safe',
    orders: [{}, { quantity: 50 }],
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) => {
      const other = desk.acceptor.ordersOf(desk.order.terms.account).find((each) => each !== desk.order);
      desk.answerStatus(request, other === undefined ? {} : { 11: other.terms.clOrdId });
    },
    watchMs,
  },
  {
    name: 'the exchange answers a status with "unknown order" under the ClOrdID of another order',
    why: 'a cache of the exchange mixes two orders up',
    expect: 'safe',
    orders: [{}, { quantity: 50 }],
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) => {
      const other = desk.acceptor.ordersOf(desk.order.terms.account).find((each) => each !== desk.order);
      desk.unknown(request, other === undefined ? {} : { 11: other.terms.clOrdId });
    },
    watchMs,
  },
  ...(
    [
      ['another account', { 1: 'SOMEBODY' }],
      ['the other side', { 54: '2' }],
      ['another symbol', { 55: 'OTHER' }],
      ['another quantity', { 38: '70' }],
    ] as const
  ).map(
    ([what, said]): Habit => ({
      name: `the exchange answers the status of a lost order with ${what} and Cancelled`,
      why: 'ClOrdIDs are unique for each firm only, and it answers about an order of another firm',
      expect: 'finding',
      onOrder: (desk) => void desk.takeSilently(),
      onStatus: (desk, request) => void desk.status({ 790: request.find(790) ?? null, 39: '4', 151: '0', ...said }),
      watchMs,
    }),
  ),
  {
    name: 'the exchange answers a status without OrdStatusReqID and without ClOrdID',
    why: 'the answer names only its own OrderID',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk) => void desk.status({ 11: null, 39: '8', 103: '5' }),
    watchMs,
  },
  {
    name: 'the exchange refuses every status request with a BusinessMessageReject',
    why: 'it does not support OrderStatusRequest',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) =>
      void desk.send('j', [
        [45, request.text(34)],
        [372, 'H'],
        [379, request.text(11)],
        [380, '3'],
        [58, 'Unsupported Message Type'],
      ]),
    watchMs,
  },
  {
    name: 'the exchange refuses a status request with a BusinessMessageReject that names the order and no message',
    why: 'it leaves out RefSeqNum, which is optional',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) =>
      void desk.send('j', [
        [372, 'H'],
        [379, request.text(11)],
        [380, '2'],
        [58, 'Unknown order'],
      ]),
    watchMs,
  },
  {
    name: 'the exchange refuses a status request with a session-level Reject',
    why: 'its dictionary has no OrdStatusReqID',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) =>
      void desk.send('3', [
        [45, request.text(34)],
        [372, 'H'],
        [373, '2'],
        [371, '790'],
      ]),
    watchMs,
  },
  {
    name: 'the exchange answers a status request with an OrderCancelReject for an unknown order',
    why: 'one handler serves cancels and status requests',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) =>
      void desk.send('9', [
        [37, 'NONE'],
        [11, request.text(11)],
        [41, request.text(11)],
        [39, '8'],
        [434, '1'],
        [102, '1'],
      ]),
    watchMs,
  },
  {
    name: 'the exchange answers a status request with OrdStatus Rejected about a duplicate order',
    why: 'it takes the status request for a second order with the same ClOrdID',
    expect: 'safe',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk) => void desk.report({ 150: '8', 39: '8', 103: '6', 151: '0' }),
    watchMs,
  },
  {
    name: 'the exchange answers a status with Expired although the order rests',
    why: 'the status comes from a cache that was filled from the book of yesterday',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(40, 'nothing');
    },
    script: async ({ desk }) => void (await desk()).status({ 39: 'C', 151: '0' }),
  },
];
