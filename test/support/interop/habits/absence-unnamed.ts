import type { Habit } from '../habit.ts';
import { lost } from './absence-gaps.ts';

/** A report that names no order of ours, and is about one. Each row has its own session, because it may be about any order in doubt. */
export const absenceUnnamedHabits: readonly Habit[] = [
  lost('reports New without ClOrdID and OrderID', 'a report that names no order may be about any', async ({ desk }) => {
    (await desk()).report({ 150: '0', edit: (fields) => fields.filter(([tag]) => tag !== 11 && tag !== 37) });
  }),
  lost('reports New under a ClOrdID cut to 20 characters', 'its tables have 20 characters', async ({ desk }) => {
    const side = await desk();
    side.report({ 11: side.order.terms.clOrdId.slice(0, 20), 150: '0' });
  }),
  lost('reports New under a ClOrdID in capital letters', 'its tables know no small letters', async ({ desk }) => {
    const side = await desk();
    side.report({ 11: side.order.terms.clOrdId.toUpperCase(), 150: '0' });
  }),
];
