import type { Habit } from '../habit.ts';
import { nextDay } from '../numbers.ts';

/** Longer than all of the adapter's and the gateway's times after which an answer counts as proof. */
const watchMs = 20_000;

/** Days and nights. */
export const dayHabits: readonly Habit[] = [
  {
    name: 'the exchange fills an order whose answer is lost, and has forgotten it on the next day',
    why: 'day orders are gone after the night, and numbers begin at 1',
    expect: 'safe',
    onOrder: (desk) => {
      desk.takeSilently().trade(100, 'nothing');
      desk.acceptor.isOpen = false;
      desk.acceptor.cut();
    },
    script: nextDay,
    watchMs,
  },
  {
    name: 'the exchange forgets a resting day order over night without a word',
    why: 'the end of day orders is not reported there',
    expect: 'safe',
    script: async (act) => {
      await act.sees('pending');
      await nextDay(act);
    },
    watchMs: 8_000,
  },
  {
    name: 'the exchange reports the trades of the evening only in the morning, under new numbers',
    why: 'the session ended before the closing auction',
    expect: 'true',
    orders: [{ time_in_force: 'gtc' }],
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      const trade = desk.trade(100, 'nothing');
      await nextDay(act);
      desk.sayTrade(trade);
    },
  },
  {
    name: 'the exchange uses an ExecID of the day before for another trade of a good-till-cancelled order',
    why: 'ExecIDs begin at 1 each morning',
    expect: 'safe',
    orders: [{ time_in_force: 'gtc' }],
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      desk.trade(40, { 17: '1' });
      await act.sees('partially_filled', 40);
      await nextDay(act);
      desk.trade(40, { 17: '1' });
    },
  },
  {
    name: 'the exchange loses the answer to a cancel, and the night comes',
    why: 'cancels of the last second',
    expect: 'safe',
    onCancel: (desk) => void desk.end('cancelled', 'nothing'),
    script: async (act) => {
      await act.sees('pending');
      await act.cancel();
      await nextDay(act);
    },
    watchMs: 8_000,
  },
];
