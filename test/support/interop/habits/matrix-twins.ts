import type { Act, Habit } from '../habit.ts';

/** A partner who asks for one cancel of a resting order. */
async function cancelOnce(act: Act): Promise<void> {
  await act.sees('pending');
  await act.cancel();
}

/** Two orders that differ in nothing but their ids. */
const twins = [{}, {}];

/** Reports that contradict themselves about the order that they name, and a restatement that counts less than the trades. */
export const matrixTwinHabits: readonly Habit[] = [
  {
    name: 'the exchange cancels another order than it was asked to, and says so under both ids',
    why: 'the cancel was matched by a wrong key: ClOrdID is that of the request, OrigClOrdID and OrderID are those of the other order',
    expect: 'safe',
    orders: twins,
    onCancel: (desk, request) => {
      const other = desk.acceptor.ordersOf(desk.order.terms.account).find((each) => each !== desk.order);
      if (other === undefined) return;
      desk.acceptor.desk(other).end('cancelled', { 11: request.text(11), 41: other.terms.clOrdId });
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange reports the trade of one order under its OrderID and the ClOrdID of its twin',
    why: 'reports of two orders are mixed up',
    expect: 'finding',
    orders: twins,
    script: async ({ desk, sees }) => {
      await sees('pending', 0, 1);
      const [first, second] = [await desk(0), await desk(1)];
      // The other order is named in Text, so that the finding is known to be about both.
      second.trade(40, { 11: first.order.terms.clOrdId, 58: second.order.terms.clOrdId });
    },
  },
  {
    name: 'the exchange ends one order under its OrderID and the ClOrdID of its twin',
    why: 'reports of two orders are mixed up',
    expect: 'finding',
    orders: twins,
    script: async ({ desk, sees }) => {
      await sees('pending', 0, 1);
      const [first, second] = [await desk(0), await desk(1)];
      second.end('cancelled', { 11: first.order.terms.clOrdId, 58: second.order.terms.clOrdId });
    },
  },
  {
    name: 'the exchange counts 0 in a report of Restated where 40 were reported',
    why: 'a trade was taken back silently',
    expect: 'finding',
    orders: [{ time_in_force: 'gtc' }],
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.bust(trade, 'nothing').report({ 150: 'D', 39: '1' });
    },
  },
  {
    name: 'the exchange says Calculated of a partly filled day order and nothing else of its end',
    why: 'Calculated means that the day is over for the order',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end('expired', { 150: 'B', 39: 'B' });
    },
  },
];
