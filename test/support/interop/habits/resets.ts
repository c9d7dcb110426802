import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../eventually.ts';
import type { Acceptor } from '../acceptor.ts';
import type { Act, Habit } from '../habit.ts';
import { nextDay, tradeWhileAway, whileAway } from '../numbers.ts';
import type { WireField } from '../wire.ts';

const resetting = { MARINA_FIX_RESET_ON_LOGON: 'true' };

function fieldsOfLogon(acceptor: Acceptor, ...more: WireField[]): WireField[] {
  return [[98, '0'], [108, '30'], ...(acceptor.version === 'FIXT.1.1' ? ([[1137, '9']] as WireField[]) : []), ...more];
}

/** The last order that came, while it has no answer. */
function numberOf(act: Act): string {
  const order = act.acceptor.received('D').find((each) => each.find(11) === act.placed[0]?.id);
  return order?.text(34) ?? assert.fail('the order has not come');
}

/** Numbers that begin with each Logon, and those that do not. */
export const resetHabits: readonly Habit[] = [
  {
    name: 'the exchange begins its numbers with each Logon, and a line breaks while an order rests',
    why: 'MARINA_FIX_RESET_ON_LOGON is for it',
    expect: 'quiet',
    settings: resetting,
    script: async (act) => {
      await act.sees('pending');
      await whileAway(act, () => undefined);
      (await act.desk()).trade(100);
      await act.sees('filled', 100);
    },
  },
  {
    name: 'the exchange begins its numbers with each Logon, and fills an order while the line is down',
    why: 'what it reported meanwhile is gone, and only its counts tell of it',
    expect: 'finding',
    settings: resetting,
    script: tradeWhileAway(40),
  },
  {
    name: 'the exchange begins its numbers with each Logon, and cancels an order while the line is down',
    why: 'what it reported meanwhile is gone, and a question finds it',
    expect: 'true',
    settings: resetting,
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await whileAway(act, () => void desk.end('cancelled'));
    },
  },
  {
    name: 'the exchange begins its numbers with each Logon, and loses the New of an order with the line',
    why: 'what it reported meanwhile is gone, and a question finds it',
    expect: 'true',
    settings: resetting,
    onOrder: (desk) => {
      desk.accept({ how: { isLost: true } });
      desk.acceptor.cut();
    },
  },
  ...(['3', 'j'] as const).map(
    (type): Habit => ({
      name: `the exchange begins its numbers with each Logon, and rejects by ${type} the number that an order had on the last connection`,
      why: 'the number is of a message of this connection, and RefMsgType is filled from a table of numbers',
      expect: 'safe',
      settings: resetting,
      onOrder: (desk) => void desk.takeSilently(),
      onStatus: () => undefined,
      script: async (act) => {
        await act.desk();
        const number = numberOf(act);
        await whileAway(act, () => undefined);
        act.acceptor.send(type, [[45, number], [372, 'D'], type === '3' ? [373, '99'] : [380, '0']]);
        await act.acceptor.barrier();
      },
      watchMs: 3_000,
    }),
  ),
];

/** Numbers of earlier connections, and ResetSeqNumFlag. */
export const resetNumberHabits: readonly Habit[] = [
  {
    name: 'the exchange begins its numbers with each Logon, and asks for a number that an order had on the last connection',
    why: 'it has a message of the last connection in its buffer',
    expect: 'quiet',
    settings: resetting,
    script: async (act) => {
      await act.sees('pending');
      const number = numberOf(act);
      await whileAway(act, () => undefined);
      act.acceptor.send('2', [
        [7, number],
        [16, number],
      ]);
      (await act.desk()).trade(100);
      await act.sees('filled', 100);
    },
  },
  {
    name: 'the exchange begins its numbers with each Logon and does not say so in its answer',
    why: 'ResetSeqNumFlag is left out of the answer there',
    expect: 'safe',
    settings: resetting,
    manners: (acceptor) => ({ logonFields: () => fieldsOfLogon(acceptor) }),
    script: async (act) => {
      const desk = await act.desk();
      act.acceptor.cut();
      await eventually(() => assert.ok(act.acceptor.received('A').length > 1));
      desk.trade(40);
      await delay(1_000);
      act.acceptor.manners = {};
      act.acceptor.cut();
      await act.chain.up();
    },
  },
  {
    name: 'the exchange refuses ResetSeqNumFlag, and goes on with the numbers of the day',
    why: 'it resets by agreement only',
    expect: 'safe',
    script: async (act) => {
      await act.sees('pending');
      await act.chain.stopAdapter();
      act.acceptor.manners = {
        logon: (message) => {
          if (message.find(141) !== 'Y') return false;
          act.acceptor.logOut('ResetSeqNumFlag is not permitted');
          return true;
        },
      };
      const before = act.acceptor.received('A').length;
      await act.chain.startAdapter(resetting);
      await eventually(() => assert.ok(act.acceptor.received('A').length > before, 'no Logon came'));
      (await act.desk()).trade(40, 'nothing');
      await act.chain.stopAdapter();
      act.acceptor.manners = {};
      await act.chain.startAdapter({ MARINA_FIX_RESET_ON_LOGON: '' });
      await act.chain.agreeOnNumbers();
    },
  },
  {
    name: 'the exchange says 141=N in its answer to a Logon without ResetSeqNumFlag',
    why: 'a field that is always there',
    expect: 'quiet',
    manners: (acceptor) => ({ logonFields: () => fieldsOfLogon(acceptor, [141, 'N']) }),
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await whileAway(act, () => void desk.trade(100));
      await act.sees('filled', 100);
    },
  },
  {
    name: 'the exchange resets the numbers of the day by the first Logon only, and a line breaks',
    why: 'MARINA_FIX_RESETS_BY_LOGON is for it',
    expect: 'quiet',
    settings: { MARINA_FIX_RESETS_BY_LOGON: 'true' },
    orders: [{ time_in_force: 'gtc' }],
    script: async (act) => {
      await act.sees('pending');
      await nextDay(act);
      const desk = await act.desk();
      await whileAway(act, () => void desk.trade(100));
      await act.sees('filled', 100);
      const resets = act.acceptor
        .received('A')
        .slice(-2)
        .map((logon) => logon.find(141) ?? 'N');
      assert.deepEqual(resets, ['Y', 'N'], 'the first Logon of the day resets, and the second one does not');
    },
  },
];
