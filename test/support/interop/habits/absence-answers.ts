import type { Habit } from '../habit.ts';
import { acknowledged, answered, absenceWatchMs as watchMs } from './absence.ts';

/** Answers that contradict an unknown order, and messages that are not applied and show an order all the same. */
export const absenceAnswerHabits: readonly Habit[] = [
  acknowledged(
    'refuses a cancel of an order without an answer with OrdStatus New',
    'an OrderCancelReject names its state',
    {
      onOrder: (desk) =>
        void desk.takeSilently().send('9', [
          [37, desk.order.orderId],
          [11, `${desk.order.terms.clOrdId}.c1`],
          [41, desk.order.terms.clOrdId],
          [39, '0'],
          [434, '1'],
          [102, '2'],
        ]),
    },
  ),
  acknowledged('reports the trade of an order in a TradeCaptureReport only', 'its trades come from another system', {
    expect: 'finding',
    onOrder: (desk) => {
      const { terms, orderId } = desk.takeSilently().order;
      desk.trade(40, 'nothing');
      desk.send('AE', [
        [571, 'TR1'],
        [487, '0'],
        [17, 'T1'],
        [55, terms.symbol],
        [32, '40'],
        [31, desk.acceptor.price(1_000n)],
        [552, '1'],
        [54, terms.side],
        [37, orderId],
        [11, terms.clOrdId],
      ]);
    },
  }),
  answered('"unknown order" and LeavesQty 100', 'an order with shares left is known', { 151: '100' }),
  answered('"unknown order" and the other side', 'it speaks of another order', { 54: '2' }),
  answered('"unknown order" and another symbol', 'it speaks of another order', { 55: 'OTHER' }),
  answered('"unknown order" and another account', 'it speaks of another order', { 1: 'SOMEBODY' }),
  answered('"unknown order" and another OrderQty', 'it speaks of another order', { 38: '70' }),
  answered('"unknown order" of a mass status', 'it lists no orders at all', { 790: null, 584: 'M1' }),
  answered('"unknown order" of a mass status and our OrdStatusReqID', 'two questions in one answer', { 584: 'M1' }),
  answered('OrdRejReason 5, OrdStatus Rejected and ExecType New', 'two fields contradict each other', { 150: '0' }),
  answered('OrdRejReason 5, OrdStatus Rejected and ExecType Pending New', 'two fields contradict each other', {
    150: 'A',
  }),
  answered('a LastQty of 40 and OrdRejReason 5', 'an order that traded is known', { 32: '40', 31: '10' }),
  {
    name: 'the exchange answers a question about one order with "unknown order" of another that it took',
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
];
