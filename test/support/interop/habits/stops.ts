import assert from 'node:assert/strict';
import { eventually } from '../../eventually.ts';
import type { Acceptor, Manners } from '../acceptor.ts';
import type { Desk } from '../desk.ts';
import type { Act, Habit } from '../habit.ts';
import type { WireMessage } from '../wire.ts';

/**
 * Cancel on disconnect: the book cancels what rests if a connection ends without a Logout of the adapter. What it cancels is
 * reported, so a row fails because the partner's orders are to rest.
 */
function cancelOnDisconnect(acceptor: Acceptor, manners: Manners = {}): Manners {
  let hasLoggedOut = false;
  return {
    ...manners,
    receive: (message) => {
      if (message.type === 'A') hasLoggedOut = false;
      if (message.type === '5') hasLoggedOut = true;
      return manners.receive?.(message) ?? false;
    },
    closed: () => {
      if (hasLoggedOut) return;
      for (const order of acceptor.orders.values()) if (order.open > 0n) acceptor.desk(order).end('cancelled');
    },
  };
}

/** The messages that came on the connection that a stop ends, from its Logon on. */
function lastConnection(acceptor: Acceptor): WireMessage[] {
  const came = acceptor.log.filter(({ way }) => way === 'in').map(({ message }) => message);
  return came.slice(came.findLastIndex(({ type }) => type === 'A'));
}

/** The Logout must be written once, and no order, cancel or question behind it. */
function assertGoodbye(acceptor: Acceptor): void {
  const came = lastConnection(acceptor).map(({ type }) => type);
  assert.equal(
    came.filter((type) => type === '5').length,
    1,
    `the stop wrote no Logout, or several: ${came.join(' ')}`,
  );
  const behind = came.slice(came.indexOf('5')).filter((type) => ['D', 'F', 'H', 'AF'].includes(type));
  assert.deepEqual(behind, [], 'something was written behind the Logout');
}

/** A stop and a start, between which something may happen. The resting order must rest afterwards. */
async function restart(act: Act, signal: 'SIGTERM' | 'SIGINT', between: () => void | Promise<void> = () => undefined) {
  await act.sees('pending');
  const { code } = await act.chain.signalAdapter(signal);
  assert.equal(code, 0, 'a planned stop ends with 0');
  assertGoodbye(act.acceptor);
  await between();
  await act.chain.startAdapter();
  await act.chain.up();
  await act.sees('pending');
}

/** Planned restarts. */
export const restartHabits: readonly Habit[] = (['SIGTERM', 'SIGINT'] as const).flatMap((signal): Habit[] => [
  {
    name: `the exchange cancels on disconnect, and the adapter is restarted by ${signal}`,
    why: 'a planned restart must not cancel what rests',
    expect: 'quiet',
    orders: [{}, { time_in_force: 'gtc' }, { side: 'sell' }],
    manners: cancelOnDisconnect,
    script: (act) => restart(act, signal),
  },
  {
    name: `the exchange cancels on disconnect and answers no Logout, and the adapter is restarted by ${signal}`,
    why: 'an engine that is busy',
    expect: 'quiet',
    manners: (acceptor) =>
      cancelOnDisconnect(acceptor, {
        receive: ({ type, number }) => {
          if (type !== '5') return false;
          acceptor.numbers.nextIn = number + 1;
          return true;
        },
      }),
    script: (act) => restart(act, signal),
  },
  {
    name: `the exchange cancels on disconnect, and orders are placed while the adapter stops by ${signal}`,
    why: 'partners do not know of a restart',
    expect: 'true',
    manners: cancelOnDisconnect,
    script: async (act) => {
      await act.sees('pending');
      const placing = Array.from({ length: 20 }, (_, at) => act.place({ quantity: 1 + at }));
      const { code } = await act.chain.signalAdapter(signal);
      assert.equal(code, 0, 'a planned stop ends with 0');
      assertGoodbye(act.acceptor);
      await act.chain.startAdapter();
      await act.chain.up();
      await Promise.all(placing);
    },
  },
]);

/** Waits for the stop, and has the session up again with an exchange that behaves as usual. */
async function stopAndStart({ chain, acceptor }: Act): Promise<void> {
  const { code } = await chain.signalAdapter('SIGTERM');
  assert.equal(code, 0, 'a planned stop ends with 0');
  assertGoodbye(acceptor);
  acceptor.manners = {};
  await chain.startAdapter();
  await chain.up();
}

/** The events between the adapter's Logout and its answer. */
const crossings: readonly (readonly [string, string, (desk: Desk) => void])[] = [
  ['fills the order', 'the Logout and the fill cross', (desk) => void desk.trade(100)],
  ['trades a part of the order', 'the Logout and the trade cross', (desk) => void desk.trade(40)],
  ['cancels the order', 'the Logout and the end cross', (desk) => void desk.end('cancelled')],
  ['loses a fill', 'its Logout has a number behind a gap', (desk) => void desk.trade(100, { how: { isLost: true } })],
  ['asks for a Heartbeat', 'it makes sure that all was read', ({ acceptor }) => acceptor.send('1', [[112, 'BYE']])],
  [
    'asks for everything from 1 again',
    'the specification lets it ask for what it lacks first',
    ({ acceptor }) =>
      acceptor.send('2', [
        [7, '1'],
        [16, '0'],
      ]),
  ],
];

/** Messages that cross the Logout of a planned stop. */
export const crossingHabits: readonly Habit[] = crossings.map(([what, why, happens]) => ({
  name: `the exchange ${what} between the Logout of the adapter and its own`,
  why,
  expect: 'quiet',
  manners: (acceptor) =>
    cancelOnDisconnect(acceptor, {
      receive: ({ type }) => {
        const order = [...acceptor.orders.values()].findLast(({ open }) => open > 0n);
        if (type === '5' && order !== undefined) happens(acceptor.desk(order));
        return false;
      },
    }),
  script: async (act) => {
    await act.sees('pending');
    await stopAndStart(act);
  },
}));

/** Planned stops, and other ends of a session that nobody should notice. */
export const stopHabits: readonly Habit[] = [
  {
    name: 'the exchange answers the Logout of a stop only after the adapter has gone, and cancels on disconnect',
    why: 'an engine that is busy',
    expect: 'quiet',
    manners: (acceptor) => {
      let isLate = false;
      return cancelOnDisconnect(acceptor, {
        receive: ({ type, number }) => {
          if (type !== '5') return false;
          acceptor.numbers.nextIn = number + 1;
          isLate = true;
          return true;
        },
        closed: () => {
          // Its own Logout takes a number, and is never read.
          if (isLate) acceptor.send('5', [], { isLost: true });
          isLate = false;
        },
      });
    },
    script: (act) => restart(act, 'SIGTERM'),
  },
  {
    name: 'the exchange reports New of an order only after the Logout of a stop',
    why: 'the order and the stop cross',
    expect: 'true',
    orders: [],
    manners: (acceptor) =>
      cancelOnDisconnect(acceptor, {
        receive: ({ type }) => {
          if (type !== '5') return false;
          for (const order of acceptor.orders.values()) {
            if (order.isTaken && order.filled === 0n && order.end === undefined) acceptor.desk(order).accept();
          }
          return false;
        },
      }),
    onOrder: (desk) => void desk.takeSilently(),
    script: async (act) => {
      const placing = act.place();
      await eventually(() => assert.ok(act.acceptor.ordersOf(act.partner.partner.account).length > 0, 'no order came'));
      await stopAndStart(act);
      await placing;
      await act.sees('pending');
    },
  },
  {
    name: 'the exchange confirms a cancel between the Logout of the adapter and its own',
    why: 'the cancel and the stop cross',
    expect: 'true',
    onCancel: () => undefined,
    manners: (acceptor) =>
      cancelOnDisconnect(acceptor, {
        receive: ({ type }) => {
          if (type !== '5') return false;
          const request = acceptor.received('F').at(-1);
          const order = acceptor.orders.get(request?.text(41) ?? '');
          if (request !== undefined && order !== undefined) acceptor.desk(order).answerCancel(request);
          return false;
        },
      }),
    script: async (act) => {
      await act.sees('pending');
      const cancelling = act.cancel();
      await act.asked('F');
      await stopAndStart(act);
      await cancelling;
      await act.sees('cancelled', 0);
    },
  },
  {
    name: 'the exchange logs out itself, and cancels on disconnect unless its Logout is answered',
    why: 'the end of its day comes before that of the adapter',
    expect: 'quiet',
    manners: cancelOnDisconnect,
    script: async (act) => {
      await act.sees('pending');
      const before = act.acceptor.received('5').length;
      act.acceptor.send('5', [[58, 'end of day']]);
      await eventually(() =>
        assert.ok(act.acceptor.received('5').length > before, 'the Logout of the exchange was not answered'),
      );
      await act.chain.up();
      await act.sees('pending');
    },
  },
  {
    name: 'the exchange cancels on disconnect, and the adapter gets SIGTERM and SIGINT one behind the other',
    why: 'somebody is impatient',
    expect: 'quiet',
    manners: cancelOnDisconnect,
    script: async (act) => {
      await act.sees('pending');
      const ended = act.chain.signalAdapter('SIGTERM');
      await Promise.all([ended, act.chain.signalAdapter('SIGINT')]);
      assertGoodbye(act.acceptor);
      await act.chain.startAdapter();
      await act.chain.up();
      await act.sees('pending');
    },
  },
  {
    name: 'the exchange cancels on disconnect, and an operator logs the session out and on again',
    why: 'a fail-over test',
    expect: 'quiet',
    manners: cancelOnDisconnect,
    script: async (act) => {
      await act.sees('pending');
      await act.chain.restartAdapter(await act.chain.operatorSettings());
      await act.chain.operate('LogOut', { reason: 'fail-over test' });
      assertGoodbye(act.acceptor);
      // An order meanwhile is refused as never sent.
      await act.place({ quantity: 7 });
      await act.chain.operate('LogOn', { reason: 'the test is over' });
      await act.chain.up();
      await act.sees('pending');
    },
  },
  {
    name: 'the exchange is away when the adapter gets SIGTERM, and takes the next Logon',
    why: 'both sides restart at the same time',
    expect: 'quiet',
    manners: cancelOnDisconnect,
    script: async (act) => {
      await act.sees('pending');
      act.acceptor.manners = {};
      act.acceptor.isOpen = false;
      act.acceptor.cut();
      const { code } = await act.chain.signalAdapter('SIGTERM');
      assert.equal(code, 0, 'a planned stop ends with 0');
      act.acceptor.isOpen = true;
      await act.chain.startAdapter();
      await act.chain.up();
      await act.sees('pending');
    },
  },
];
