import type { Habit } from '../habit.ts';
import { nextDay, whileAway } from '../numbers.ts';

/** Numbers and ids that are used again, and what crosses a restart. */
export const matrixDayHabits: readonly Habit[] = [
  {
    name: 'the exchange gives an order of today the OrderID that an ended order had yesterday',
    why: 'OrderID is unique for a day only',
    expect: 'true',
    onOrder: (desk) => void desk.accept({ 37: '1' }),
    script: async (act) => {
      await act.sees('pending');
      (await act.desk()).trade(100, { 37: '1' });
      await act.sees('filled', 100);
      await nextDay(act);
      await act.place();
      await act.sees('pending', 0, 1);
      (await act.desk(1)).trade(100, { 37: '1' });
      await act.sees('filled', 100, 1);
    },
  },
  ...(['3', 'j'] as const).map(
    (type): Habit => ({
      name: `the exchange rejects by ${type === '3' ? 'a Reject' : 'a BusinessMessageReject'} the number that an order in doubt had on the day before`,
      why: 'numbers begin at 1 each day, and the reject is about a message of today',
      expect: 'safe',
      orders: [{ time_in_force: 'gtc' }],
      onOrder: (desk) => void desk.takeSilently(),
      onStatus: () => undefined,
      script: async (act) => {
        await act.asked('D');
        const order = act.acceptor.received('D').find((each) => each.find(11) === act.placed[0]?.id);
        await nextDay(act);
        act.acceptor.send(type, [[45, order?.text(34) ?? ''], [372, 'D'], type === '3' ? [373, '99'] : [380, '0']]);
      },
      watchMs: 3_000,
    }),
  ),
  {
    name: 'the exchange confirms a cancel while the adapter is down',
    why: 'an adapter is restarted at any time',
    expect: 'quiet',
    onCancel: () => undefined,
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await act.cancel();
      await act.asked('F');
      const request = act.acceptor.received('F').find((each) => each.find(41) === act.placed[0]?.id);
      await act.chain.stopAdapter();
      act.acceptor.cut();
      if (request !== undefined) desk.answerCancel(request);
      await act.chain.startAdapter();
      await act.chain.up();
    },
  },
  {
    name: 'the exchange loses one trade, and reports two more before it sends all three again',
    why: 'the answer to a ResendRequest takes a moment',
    expect: 'quiet',
    script: async ({ desk, sees }) => {
      await sees('pending');
      const side = await desk();
      side.trade(10, { how: { isLost: true } });
      side.trade(20);
      side.trade(30);
    },
  },
  {
    name: 'the exchange uses one number for two trades',
    why: 'two threads write at once',
    expect: 'finding',
    script: async ({ desk, sees, acceptor, chain }) => {
      await sees('pending');
      const side = await desk();
      side.trade(20);
      side.trade(30, { how: { number: acceptor.numbers.nextOut - 1 } });
      await chain.up();
    },
  },
  {
    name: 'the exchange passes over New and sends the trade behind it again',
    why: 'only trades are kept for a resend there',
    expect: 'true',
    manners: () => ({ isPassedOver: (message) => message.find(150) !== 'F' }),
    onOrder: (desk) => {
      desk.accept({ how: { isLost: true } }).trade(40, { how: { isLost: true } });
      desk.acceptor.cut();
    },
  },
  {
    name: 'the exchange cancels a partly filled order while the line is down, and passes over the end only',
    why: 'only trades are kept for a resend there',
    expect: 'true',
    manners: () => ({ isPassedOver: (message) => message.find(150) !== 'F' }),
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await whileAway(act, () => {
        desk.trade(40);
        desk.end('cancelled');
      });
    },
  },
];
