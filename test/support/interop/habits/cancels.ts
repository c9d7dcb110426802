import assert from 'node:assert/strict';
import { eventually } from '../../eventually.ts';
import type { Act, Habit } from '../habit.ts';

/** A partner who wants the order cancelled asks until it is. */
async function cancelUntilDone(act: Act): Promise<void> {
  await act.sees('pending');
  await eventually(async () => {
    await act.cancel();
    assert.equal((await act.partner.view(act.placed[0]?.id ?? '')).state, 'cancelled');
  }, 40_000);
}

/** A partner who asks for one cancel of a resting order. */
async function cancelOnce(act: Act): Promise<void> {
  await act.sees('pending');
  await act.cancel();
}

/** Does something with the first cancel only, and honours the others. */
function firstOnly(habit: Pick<Habit, 'name' | 'why' | 'onCancel'>): Habit {
  const seen = new Set<string>();
  return {
    expect: 'true',
    script: cancelUntilDone,
    ...habit,
    onCancel: (desk, request) => {
      const key = desk.order.terms.clOrdId;
      if (seen.has(key)) desk.answerCancel(request);
      else habit.onCancel?.(desk, request);
      seen.add(key);
    },
  };
}

export const cancelHabits: readonly Habit[] = [
  firstOnly({
    name: 'the exchange loses one cancel',
    why: 'a cancel is lost inside the exchange',
    onCancel: () => undefined,
  }),
  firstOnly({
    name: 'the exchange rejects a cancel and names the order only by OrigClOrdID',
    why: 'the cancel never got a record of its own',
    onCancel: (desk, request) => void desk.rejectCancel(request, { 11: null, 102: '3' }),
  }),
  firstOnly({
    name: 'the exchange rejects a cancel under an unknown ClOrdID, with the right OrigClOrdID',
    why: 'it makes ids of its own for cancels',
    onCancel: (desk, request) => void desk.rejectCancel(request, { 11: 'CXL-1', 102: '99' }),
  }),
  firstOnly({
    name: 'the exchange rejects a cancel with ClOrdID and OrigClOrdID the wrong way round',
    why: 'a common mistake',
    onCancel: (desk, request) =>
      void desk.rejectCancel(request, { 11: request.text(41), 41: request.text(11), 102: '2' }),
  }),
  firstOnly({
    name: 'the exchange rejects a cancel without OrigClOrdID',
    why: 'it holds the ClOrdID for enough',
    onCancel: (desk, request) => void desk.rejectCancel(request, { 41: null, 102: '99' }),
  }),
  firstOnly({
    name: 'the exchange rejects a cancel because it has one under way',
    why: 'an earlier cancel hangs',
    onCancel: (desk, request) => void desk.rejectCancel(request, { 102: '3' }),
  }),
  firstOnly({
    name: 'the exchange refuses a cancel with a BusinessMessageReject',
    why: 'the book was not available',
    onCancel: (desk, request) =>
      void desk.send('j', [
        [45, request.text(34)],
        [372, 'F'],
        [379, request.text(11)],
        [380, '4'],
      ]),
  }),
  firstOnly({
    name: 'the exchange refuses a cancel with a BusinessMessageReject that names the order',
    why: 'it names what the cancel was about',
    onCancel: (desk, request) =>
      void desk.send('j', [
        [372, 'F'],
        [379, request.text(41)],
        [380, '4'],
      ]),
  }),
  firstOnly({
    name: 'the exchange refuses a cancel with a session-level Reject',
    why: 'a field of it is not in its dictionary',
    onCancel: (desk, request) =>
      void desk.send('3', [
        [45, request.text(34)],
        [372, 'F'],
        [373, '2'],
      ]),
  }),
  firstOnly({
    name: 'the exchange says Pending Cancel and loses the cancel then',
    why: 'the gateway took it, and the book never got it',
    onCancel: (desk, request) => void desk.report({ 150: '6', 39: '6', 11: request.text(11), 41: request.text(41) }),
  }),
  {
    name: 'the exchange answers every cancel with "unknown order" although the order rests',
    why: 'cancels are served by a cache',
    expect: 'safe',
    onCancel: (desk, request) => void desk.rejectCancel(request, { 37: 'NONE', 39: '8', 102: '1' }),
    script: cancelOnce,
    watchMs: 3_000,
  },
  {
    name: 'the exchange says "too late to cancel", and the order rests and fills later',
    why: 'the order was frozen in an auction',
    expect: 'true',
    onCancel: (desk, request) => void desk.rejectCancel(request, { 102: '0' }),
    script: async (act) => {
      await cancelOnce(act);
      (await act.desk()).trade(100);
    },
  },
  ...(['2', '4', '8', 'C'] as const).map(
    (status): Habit => ({
      name: `the exchange rejects a cancel with OrdStatus ${status}, and the order rests`,
      why: 'OrdStatus is a constant there',
      expect: 'safe',
      onCancel: (desk, request) => void desk.rejectCancel(request, { 39: status, 102: '0' }),
      script: cancelOnce,
      watchMs: 3_000,
    }),
  ),
  {
    name: 'the exchange fills the order while the cancel is on its way',
    why: 'a race of every market',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.trade(100);
      desk.rejectCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange fills a part while the cancel is on its way',
    why: 'a race of every market',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.trade(40);
      desk.answerCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel and reports a trade from before it afterwards',
    why: 'two processes publish',
    expect: 'safe',
    onCancel: (desk, request) => {
      const trade = desk.trade(40, 'nothing');
      desk.answerCancel(request).sayTrade(trade, { 39: '1' });
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange rejects a cancel and cancels the order by itself a moment later',
    why: 'the cancel came twice to it',
    expect: 'quiet',
    onCancel: (desk, request) => {
      desk.rejectCancel(request, { 102: '3' });
      desk.end('cancelled');
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange rejects a cancel as too late and cancels the order by itself a moment later',
    why: 'the order was being cancelled already',
    expect: 'true',
    onCancel: (desk, request) => {
      desk.rejectCancel(request, { 102: '0' });
      desk.end('cancelled');
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel twice',
    why: 'once for the request and once for the book',
    expect: 'quiet',
    onCancel: (desk, request) => void desk.answerCancel(request).report({ 150: '4' }),
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel under the ClOrdID of the order',
    why: 'it knows no second id',
    expect: 'quiet',
    onCancel: (desk, request) => void desk.answerCancel(request, { 11: request.text(41), 41: null }),
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel under the ClOrdID of the cancel without OrigClOrdID',
    why: 'it leaves out what is conditional',
    expect: 'true',
    onCancel: (desk, request) => void desk.answerCancel(request, { 41: null }),
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel under an id of its own with the right OrigClOrdID',
    why: 'it makes ids of its own for cancels',
    expect: 'true',
    onCancel: (desk, request) => void desk.answerCancel(request, { 11: 'CXL-7' }),
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel with an unknown OrigClOrdID and the right ClOrdID',
    why: 'OrigClOrdID names the order by an id of its own',
    expect: 'true',
    onCancel: (desk, request) => void desk.answerCancel(request, { 41: 'BOOK-7' }),
    script: cancelOnce,
  },
  {
    name: 'the exchange reports further trades under the ClOrdID of a rejected cancel',
    why: 'the last ClOrdID of the chain is what it reports under',
    expect: 'true',
    onCancel: (desk, request) => {
      desk.rejectCancel(request, { 102: '3' });
      desk.trade(40, { 11: request.text(11), 41: request.text(41) });
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange says Pending Cancel, Cancelled and then Pending Cancel again',
    why: 'two processes publish',
    expect: 'true',
    onCancel: (desk, request) => {
      const ids = { 11: request.text(11), 41: request.text(41) };
      desk
        .report({ ...ids, 150: '6', 39: '6' })
        .answerCancel(request)
        .report({ ...ids, 150: '6', 39: '6' });
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange confirms a cancel by Expired',
    why: 'the day ended meanwhile',
    expect: 'quiet',
    onCancel: (desk) => void desk.end('expired'),
    script: cancelOnce,
  },
  {
    name: 'the exchange answers a cancel with Cancelled, CumQty 40 and no trade of it',
    why: 'the trade is on its way on another link',
    expect: 'finding',
    onCancel: (desk, request) => {
      desk.trade(40, 'nothing');
      desk.answerCancel(request);
    },
    script: cancelOnce,
  },
  {
    name: 'the exchange answers two cancels of the partner at once',
    why: 'an impatient partner',
    expect: 'quiet',
    script: async (act) => {
      await act.sees('pending');
      await Promise.all([act.cancel(), act.cancel(), act.cancel()]);
    },
  },
  {
    name: 'the exchange never answers a cancel, and fills the order later',
    why: 'the cancel was lost inside the exchange',
    expect: 'true',
    onCancel: () => undefined,
    script: async (act) => {
      await cancelOnce(act);
      (await act.desk()).trade(100);
      await act.sees('filled');
    },
  },
  {
    name: 'the exchange answers a cancel of an order that it holds in doubt',
    why: 'the partner is in a hurry',
    expect: 'true',
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: () => undefined,
    script: async (act) => {
      await act.cancel();
      (await act.desk()).accept();
      await cancelUntilDone(act);
    },
  },
];
