import type { Habit } from '../habit.ts';

/** Habits that every engine has, so that the other rows are known to differ from something that works. */
export const plainHabits: readonly Habit[] = [
  {
    name: 'the exchange fills an order in two parts at two prices',
    why: 'the usual life of an order',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept();
      desk.trade(40, {}, 990n);
      desk.trade(60);
    },
  },
  {
    name: 'the exchange cancels a resting order for the partner',
    why: 'the usual life of an order',
    expect: 'quiet',
    script: async ({ cancel, sees }) => {
      await sees('pending');
      await cancel();
    },
  },
  {
    name: 'the exchange rejects an order',
    why: 'the usual life of an order',
    expect: 'quiet',
    onOrder: (desk) => void desk.end('rejected'),
  },
  {
    name: 'the exchange lets the rest of an order expire',
    why: 'the usual life of an order',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end('expired');
    },
  },
];
