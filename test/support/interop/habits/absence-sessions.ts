import assert from 'node:assert/strict';
import type { Habit } from '../habit.ts';
import { nextDay, whileAway } from '../numbers.ts';
import { absenceSettings } from './absence.ts';
import { lost } from './absence-gaps.ts';

/** Where the counterparty certifies absence: what happens to a session between an order and the answer that it is unknown. */
export const absenceSessionHabits: readonly Habit[] = [
  lost('begins a new day', 'the order was sent in an earlier numbering', nextDay),
  lost('begins its numbers anew by agreement', 'the order was sent in an earlier numbering', async ({ chain }) => {
    await chain.agreeOnNumbers();
  }),
  {
    ...lost(
      'answers on the next connection the question of the last one',
      'an answer that was kept',
      async () => undefined,
    ),
    onStatus: () => undefined,
    script: async (act) => {
      await act.asked('H');
      const request = act.acceptor.received('H').find((each) => each.find(11) === act.placed[0]?.id);
      assert.ok(request !== undefined);
      const desk = await act.desk();
      await whileAway(act, () => void desk.unknown(request));
    },
  },
  {
    ...lost(
      'knows orders only a minute after it has read them',
      'the certified time is not over',
      async () => undefined,
    ),
    settings: { MARINA_FIX_ABSENCE_PROOF_MS: '60000' },
  },
  {
    ...lost(
      'answers the first question behind the second one without its name',
      'the certified time',
      async () => undefined,
    ),
    settings: { MARINA_FIX_ABSENCE_PROOF_MS: '8000' },
    onStatus: firstQuestionLate(),
  },
  {
    name: 'the exchange never read an order, asks for its number again, and says "unknown order" as it certifies',
    why: 'the line broke while the order was on its way',
    expect: 'true',
    settings: absenceSettings,
    manners: (acceptor) => {
      let isFirst = true;
      return {
        receive: ({ type }) => {
          if (type !== 'D' || !isFirst) return false;
          isFirst = false;
          acceptor.cut();
          return true;
        },
      };
    },
    script: ({ sees }) => sees('refused', 0),
  },
  {
    name: 'the exchange says "unknown order" as it certifies to an adapter that was restored, and again once it is released',
    why: 'a restored adapter does not know what was sent since the backup',
    expect: 'true',
    settings: absenceSettings,
    onOrder: () => undefined,
    onStatus: (desk, request) => void desk.answerStatus(request),
    manners: (acceptor) => ({
      // Without an answer until the adapter is restored.
      receive: (message) => {
        if (message.type !== 'H') return false;
        acceptor.numbers.nextIn = message.number + 1;
        return true;
      },
    }),
    script: async (act) => {
      await act.desk();
      await act.chain.stopAdapter();
      await act.chain.run('restored');
      act.acceptor.manners = {};
      await act.chain.startAdapter();
      await act.chain.up();
      await act.asked('H', 3);
      await act.acceptor.barrier();
      await act.sees('uncertain', 0);
      await act.chain.run('release');
      await act.sees('refused', 0);
    },
  },
  lost(
    'says so to an adapter that was restored',
    'the backup may lack what it had said',
    async ({ chain, asked }) => {
      await asked('H');
      await chain.stopAdapter();
      await chain.run('restored');
      await chain.startAdapter();
      await chain.up();
    },
    { onStatus: unknownAfterTheFirst() },
  ),
];

/** The first question has no answer; the second one is answered at once, without OrdStatusReqID, and with the first one's age. */
function firstQuestionLate(): NonNullable<Habit['onStatus']> {
  let asked = 0;
  return (desk, request) => {
    asked += 1;
    if (asked === 2) desk.unknown(request, { 790: null });
  };
}

function unknownAfterTheFirst(): NonNullable<Habit['onStatus']> {
  let asked = 0;
  return (desk, request) => {
    asked += 1;
    if (asked > 1) desk.unknown(request);
  };
}
