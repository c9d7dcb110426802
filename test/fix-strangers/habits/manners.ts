import assert from 'node:assert/strict';
import { eventually } from '../../support/eventually.ts';
import type { Habit } from '../habit.ts';
import { fillWhileAway } from '../numbers.ts';

/** Logon, Logout, heartbeats and numbers. */
export const mannerHabits: readonly Habit[] = [
  {
    name: 'the exchange logs out in the middle of an order',
    why: 'a restart of its engine',
    expect: 'true',
    onOrder: (desk) => {
      desk.acceptor.logOut('see you');
      desk.accept().trade(40);
    },
  },
  {
    name: 'the exchange answers the Logon with another HeartBtInt',
    why: 'it knows better',
    expect: 'quiet',
    manners: (acceptor) => ({ logonFields: () => logonFields(acceptor.version, '7') }),
    script: fillWhileAway,
  },
  {
    name: 'the exchange answers the Logon without HeartBtInt and EncryptMethod',
    why: 'it holds them for agreed',
    expect: 'true',
    manners: () => ({ logonFields: () => [] }),
    script: fillWhileAway,
  },
  {
    name: 'the exchange breaks the line three times right after the Logon',
    why: 'a load balancer that flaps',
    expect: 'quiet',
    manners: (acceptor) => {
      let left = 3;
      return {
        loggedOn: () => {
          if (left-- > 0) acceptor.cut();
        },
      };
    },
    script: fillWhileAway,
  },
  {
    name: 'the exchange never answers the first TestRequest of a connection',
    why: 'its engine answers nothing before it has sent all',
    expect: 'true',
    manners: (acceptor) => {
      let isFirst = true;
      return {
        loggedOn: () => {
          isFirst = true;
        },
        receive: (message) => {
          if (message.type !== '1' || !isFirst) return false;
          isFirst = false;
          acceptor.numbers.nextIn += 1;
          return true;
        },
      };
    },
    settings: { MARINA_FIX_HEARTBEAT_SECONDS: '2' },
    script: async (act) => {
      await fillWhileAway(act);
      const next = await act.place({ quantity: 70 });
      await act.sees('pending', 0, act.placed.indexOf(next));
    },
  },
  {
    name: 'the exchange sends an empty TestReqID',
    why: 'a monitor without a name',
    expect: 'true',
    script: async ({ acceptor, sees, desk }) => {
      await sees('pending');
      acceptor.send('1', [[112, '']]);
      (await desk()).trade(100);
      await sees('filled');
    },
  },
  {
    name: 'the exchange has a clock that is a minute slow',
    why: 'nobody looks after its clock',
    expect: 'quiet',
    script: async (act) => {
      act.acceptor.numbers.clockOffMs = -60_000;
      await fillWhileAway(act);
    },
  },
  {
    name: 'the exchange begins its numbers at 1 again in the middle of the day',
    why: 'an operator of the exchange resets the session',
    expect: 'true',
    script: async ({ acceptor, sees, desk, chain }) => {
      await sees('pending');
      const filled = await desk();
      acceptor.cut();
      acceptor.numbers.reset();
      await chain.agreeOnNumbers();
      filled.trade(100);
    },
  },
  {
    name: 'the exchange sets its numbers back by SequenceReset',
    why: 'an operator of the exchange resets the session',
    expect: 'true',
    script: async ({ acceptor, sees, desk, chain }) => {
      await sees('pending');
      const filled = await desk();
      acceptor.send('4', [[36, '1']]);
      await chain.agreeOnNumbers();
      filled.trade(100);
    },
  },
  {
    name: 'the exchange resets the numbers in its answer to a Logon that did not ask for it',
    why: 'engines that reset at each Logon',
    expect: 'true',
    manners: (acceptor) => ({
      logonFields: () => {
        acceptor.numbers.sent.clear();
        return [...logonFields(acceptor.version, '30'), [141, 'Y']];
      },
    }),
    script: async ({ acceptor, sees, desk, chain }) => {
      await sees('pending');
      const filled = await desk();
      acceptor.cut();
      await eventually(() => assert.ok(acceptor.received('A').length > 1));
      acceptor.manners = {};
      await chain.agreeOnNumbers();
      filled.trade(100);
    },
  },
  {
    name: 'the exchange refuses the Logon for a while',
    why: 'it opens late',
    expect: 'quiet',
    manners: (acceptor) => {
      let left = 2;
      return {
        logon: (message) => {
          if (left-- <= 0) return false;
          acceptor.numbers.nextIn = message.number + 1;
          acceptor.logOut('not yet open');
          return true;
        },
      };
    },
    script: fillWhileAway,
  },
];

function logonFields(version: string, heartBtInt: string): [number, string][] {
  return [[98, '0'], [108, heartBtInt], ...(version === 'FIXT.1.1' ? ([[1137, '9']] as [number, string][]) : [])];
}

/** Processes that die. */
export const killHabits: readonly Habit[] = [
  {
    name: 'the exchange takes an order, and the adapter is killed before it hears of it',
    why: 'machines die',
    expect: 'true',
    onOrder: (desk) => {
      desk.accept({ how: { isLost: true } }).trade(40, { how: { isLost: true } });
    },
    script: async ({ chain }) => {
      await chain.killAdapter();
      await chain.startAdapter();
      await chain.up();
    },
  },
  {
    name: 'the exchange fills an order while the gateway is dead',
    why: 'machines die',
    expect: 'quiet',
    script: async ({ chain, sees, desk }) => {
      await sees('pending');
      await chain.killGateway();
      (await desk()).trade(100);
      await chain.startGateway();
      await sees('filled');
    },
  },
];
