import type { Wording } from '../desk.ts';
import type { Act, Habit } from '../habit.ts';
import type { WireMessage } from '../wire.ts';

/** The ids of a report about a request to cancel. */
function chainIds(request: WireMessage): Wording {
  return { 11: request.text(11), 41: request.text(41) };
}

/** The words of "the cancel is being worked on". */
function pendingCancel(request: WireMessage): Wording {
  return { ...chainIds(request), 150: '6', 39: '6' };
}

/** A partner who asks for one cancel of a resting order. */
async function cancelOnce(act: Act): Promise<void> {
  await act.sees('pending');
  await act.cancel();
}

/** Section B of the order state change matrices: cancels, and what happens while one is pending. */
export const matrixCancelHabits: readonly Habit[] = [
  {
    name: 'the exchange says Pending Cancel and then Cancelled of an order without trades',
    why: 'matrix B.1.a',
    expect: 'quiet',
    onCancel: (desk, request) => void desk.report(pendingCancel(request)).answerCancel(request),
    script: cancelOnce,
  },
  {
    name: 'the exchange trades in three lots with OrdStatus Pending Cancel, and cancels the rest',
    why: 'matrix B.1.b: Pending Cancel comes before Partially Filled in the order of precedence',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.report(pendingCancel(request));
      for (const lot of [10, 15, 20]) desk.trade(lot, { ...chainIds(request), 39: '6' });
      desk.answerCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange trades a part with OrdStatus Pending Cancel under the ClOrdID of the order, and cancels the rest',
    why: 'trades keep the first id of the chain there',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.report(pendingCancel(request)).trade(40, { 39: '6' });
      desk.answerCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange fills the order with OrdStatus Pending Cancel, and rejects the cancel as too late',
    why: 'matrix B.1.c: the fill is reported as Pending Cancel with LeavesQty 0',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.report(pendingCancel(request)).trade(100, { 39: '6' });
      desk.rejectCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange says Pending Cancel, rejects the cancel by the broker, and trades on',
    why: 'matrix B.1.d: the order is as it was before',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.report(pendingCancel(request)).rejectCancel(request, { 102: '2' });
      desk.trade(40);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange says Pending Cancel, rejects the cancel, and says New again',
    why: 'the state before is reported once more',
    expect: 'quiet',
    onCancel: (desk, request) =>
      void desk.report(pendingCancel(request)).rejectCancel(request, { 102: '2' }).report({ 150: 'D', 378: '99' }),
    script: cancelOnce,
  },
  {
    name: 'the exchange rejects a cancel of an order that it has filled, before it reports the fill',
    why: 'matrix B.1.e, with the reject on a faster way than the fill',
    expect: 'quiet',
    onCancel: (desk, request) => {
      const trade = desk.trade(100, 'nothing');
      desk.rejectCancel(request).sayTrade(trade);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange lets the order expire while the cancel is pending, and rejects the cancel then',
    why: 'the closing auction ends between the two',
    expect: 'quiet',
    onCancel: (desk, request) =>
      void desk.report(pendingCancel(request)).end('expired').rejectCancel(request, { 102: '0' }),
    script: cancelOnce,
  },
  {
    name: 'the exchange says Done For Day while the cancel is pending, and rejects the cancel then',
    why: 'the closing auction ends between the two',
    expect: 'quiet',
    onCancel: (desk, request) =>
      void desk
        .report(pendingCancel(request))
        .end('expired', { 150: '3', 39: '3' })
        .rejectCancel(request, { 102: '0', 39: '3' }),
    script: cancelOnce,
  },
  {
    name: 'the exchange cancels the order by itself while the cancel is pending, and rejects the cancel then',
    why: 'market supervision was faster',
    expect: 'quiet',
    onCancel: (desk, request) =>
      void desk.report(pendingCancel(request)).end('cancelled').rejectCancel(request, { 39: '4', 102: '0' }),
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel, and rejects the same cancel as unknown afterwards',
    why: 'the request went to two partitions, and only one had the order',
    expect: 'true',
    onCancel: (desk, request) =>
      void desk.answerCancel(request).rejectCancel(request, { 39: '8', 37: 'NONE', 102: '1' }),
    script: cancelOnce,
  },
  {
    name: 'the exchange rejects a cancel as if it had been a request to replace',
    why: 'CxlRejResponseTo 434 is a constant there',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.rejectCancel(request, { 434: '2', 102: '2' }).trade(40);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange says Pending Cancel with a LeavesQty of 0, and trades 40 then',
    why: 'shares under a cancel are held back from the book there',
    expect: 'true',
    onCancel: (desk, request) => {
      desk.report({ ...pendingCancel(request), 151: '0' }).trade(40, { 39: '6' });
      desk.answerCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel that traded 40 before, and says CumQty 40 in the confirmation only after the trade',
    why: 'matrix B.1.b in the shortest form: no Pending Cancel',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.trade(40, { 39: '1' });
      desk.answerCancel(request, { 378: '99', 58: 'cancelled on request' });
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange cancels a partly filled order and answers a second cancel with "unknown order"',
    why: 'orders that have ended leave the book there',
    expect: 'quiet',
    onCancel: (desk, request) => {
      if (desk.order.end === undefined) {
        desk.trade(40);
        desk.answerCancel(request);
      } else desk.rejectCancel(request, { 37: 'NONE', 39: '8', 102: '1' });
    },
    script: async (act) => {
      await act.sees('pending');
      await Promise.all([act.cancel(), act.cancel()]);
      await act.sees('cancelled', 40);
      await act.cancel();
    },
  },
  {
    name: 'the exchange reports Pending Cancel late, after it has filled the order',
    why: 'two processes publish',
    expect: 'true',
    onCancel: (desk, request) => {
      desk.trade(100);
      desk.report({ ...pendingCancel(request), 14: '0', 151: '100', 6: '0' }).rejectCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange answers a status with Pending Cancel under the ClOrdID of the cancel',
    why: 'the last id of the chain names the order there',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.report(pendingCancel(request)).report({ ...pendingCancel(request), 150: 'I' });
      desk.answerCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange replaces the ClOrdID by that of a rejected cancel, and ends the order under it',
    why: 'the chain keeps the id of a request that failed',
    expect: 'true',
    onCancel: (desk, request) => {
      desk.rejectCancel(request, { 102: '2' }).trade(40, chainIds(request));
      desk.end('expired', chainIds(request));
    },
    script: cancelOnce,
  },
];
