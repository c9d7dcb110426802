import assert from 'node:assert/strict';
import { eventually } from '../../eventually.ts';
import type { Habit } from '../habit.ts';
import { fillWhileAway } from '../numbers.ts';

/** Logon, Logout, heartbeats and numbers. */
export const mannerHabits: readonly Habit[] = [
  {
    name: 'the exchange cancels resting orders if the session ends without a Logout, and the adapter is restarted',
    why: 'cancel on disconnect',
    expect: 'quiet',
    script: async ({ chain, acceptor, sees, desk }) => {
      await sees('pending');
      const before = acceptor.received('5').length;
      const { nextIn } = acceptor.numbers;
      await chain.stopAdapter();
      const logout = acceptor.received('5').at(before);
      if (logout === undefined) (await desk()).end('cancelled');
      assert.ok(logout !== undefined, 'the adapter stopped without a Logout');
      assert.ok(logout.number >= nextIn, 'the Logout has a number of its own');
      await chain.startAdapter();
      await chain.up();
    },
  },
  {
    name: 'the exchange does not answer the Logout of an adapter that stops',
    why: 'an engine that is busy',
    expect: 'quiet',
    manners: () => ({ receive: (message) => message.type === '5' }),
    script: async ({ chain, acceptor, sees }) => {
      await sees('pending');
      await chain.stopAdapter();
      assert.ok(acceptor.received('5').length > 0, 'the adapter stopped without a Logout');
      acceptor.manners = {};
      acceptor.numbers.nextIn += 1;
      await chain.startAdapter();
      await chain.up();
    },
  },
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
    name: 'the exchange asks with a TestReqID that is not ASCII',
    why: 'a name of a machine in another language',
    expect: 'quiet',
    script: async ({ acceptor, sees }) => {
      await sees('pending');
      acceptor.send('1', [[112, 'Prüfung-₦']]);
      await eventually(() => {
        const ids = acceptor.received('0').map((message) => message.text(112));
        assert.ok(ids.includes('Prüfung-₦'), 'the TestReqID was not given back');
      });
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
    name: 'the exchange takes five messages a second',
    why: 'fair use',
    expect: 'true',
    settings: { MARINA_FIX_MESSAGES_PER_SECOND: '5' },
    script: async ({ acceptor, place }) => {
      const before = acceptor.log.length;
      await Promise.all(Array.from({ length: 14 }, (_, at) => place({ quantity: 1 + at })));
      const times = acceptor.log
        .slice(before)
        .filter(({ way, message }) => way === 'in' && ['D', 'F', 'H'].includes(message.type))
        .map(({ message }) => Date.parse(message.text(52).replace(/^(\d{4})(\d\d)(\d\d)-(.*)$/, '$1-$2-$3T$4Z')));
      for (const [at, time] of times.entries()) {
        const within = times.slice(at).filter((each) => each < time + 1_000).length;
        assert.ok(within <= 5, `${within} messages came within a second`);
      }
    },
  },
  {
    name: 'the exchange loses the last second in a fail-over to its recovery site',
    why: 'it is copied there asynchronously',
    expect: 'safe',
    script: async ({ acceptor, sees, placed, chain }) => {
      await sees('pending');
      const lost = acceptor.orders.get(placed[0]?.id ?? '');
      assert.ok(lost !== undefined);
      lost.isTaken = false;
      acceptor.isOpen = false;
      acceptor.cut();
      acceptor.numbers.nextOut -= 2;
      acceptor.numbers.nextIn -= 1;
      acceptor.isOpen = true;
      await chain.agreeOnNumbers();
    },
    watchMs: 8_000,
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
    name: 'the exchange refuses one Logon',
    why: 'it opens late',
    expect: 'quiet',
    manners: (acceptor) => {
      let left = 1;
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
