import type { Act, Habit } from '../habit.ts';
import { whileAway } from '../numbers.ts';
import { absenceSettings } from './absence.ts';

const watchMs = 10_000;

/** An order that the exchange took, whose New was lost, and of which it knows nothing later. */
export function lost(
  name: string,
  why: string,
  happens: (act: Act) => Promise<void>,
  also: Partial<Habit> = {},
): Habit {
  // Without an answer until it has happened, so that no answer comes before.
  const happened = new Set<string>();
  return {
    name: `the exchange ${name}, and says "unknown order" then of an order that it took`,
    why,
    expect: 'safe',
    settings: absenceSettings,
    onOrder: (desk) => void desk.takeSilently(),
    onStatus: (desk, request) => {
      if (happened.has(request.text(1))) desk.unknown(request);
    },
    script: async (act) => {
      await act.desk();
      await happens(act);
      happened.add(act.partner.partner.account);
    },
    watchMs,
    ...also,
  };
}

/** Messages in the gap were not read, and may have been about the order. */
export const absenceGapHabits: readonly Habit[] = [
  lost('passes over the New by a gap fill', 'it keeps no messages', async ({ acceptor, desk }) => {
    const number = acceptor.numbers.nextOut;
    (await desk()).report({ 150: '0', how: { isLost: true } });
    acceptor.write(acceptor.numbers.gapFill(number, number + 1));
  }),
  lost('passes over the New by SequenceReset', 'the way out of every trouble', async ({ acceptor, desk }) => {
    (await desk()).report({ 150: '0', how: { isLost: true } });
    const number = acceptor.numbers.nextOut;
    acceptor.send('4', [[36, String(number)]], { number });
  }),
  lost(
    'reports New while the line is down and passes over it',
    'it keeps no messages',
    async (act) => {
      const desk = await act.desk();
      await whileAway(act, () => void desk.report({ 150: '0' }));
    },
    { manners: () => ({ isPassedOver: () => true }) },
  ),
  lost('reports New with a field that has no tag', 'a damaged message', async ({ desk }) => {
    (await desk()).report({ 150: '0', also: [[Number.NaN, 'x']] });
  }),
  lost('reports New with a Text of 70,000 characters', 'a message that is too long', async ({ desk }) => {
    (await desk()).report({ 150: '0', 58: 'x'.repeat(70_000) });
  }),
];
