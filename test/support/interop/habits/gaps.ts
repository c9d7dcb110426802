import assert from 'node:assert/strict';
import { withoutOrigSendingTime } from '../altered-bytes.ts';
import type { Habit } from '../habit.ts';
import { fillWhileAway, tradeWhileAway, whileAway } from '../numbers.ts';

/** Longer than all of the adapter's and the gateway's times after which an answer counts as proof. */
const watchMs = 20_000;

/** Messages that are missed while the line is down, or are passed over. */
export const gapHabits: readonly Habit[] = [
  {
    name: 'the exchange sends a missed fill again when it is asked',
    why: 'the usual way',
    expect: 'quiet',
    script: fillWhileAway,
  },
  {
    name: 'the exchange passes over a missed fill by a gap fill, and lists complete orders nowhere',
    why: 'engines that keep no messages pass over all of them',
    expect: 'finding',
    manners: () => ({ isPassedOver: () => true }),
    script: fillWhileAway,
  },
  {
    name: 'the exchange passes over a missed part of a good-till-cancelled order',
    why: 'engines that keep no messages pass over all of them',
    expect: 'finding',
    orders: [{ time_in_force: 'gtc' }],
    manners: () => ({ isPassedOver: () => true }),
    script: tradeWhileAway(40),
  },
  {
    name: 'the exchange passes over a missed part by a gap fill without PossDupFlag',
    why: 'many engines leave the flag out',
    expect: 'finding',
    orders: [{ time_in_force: 'gtc' }],
    settings: { MARINA_FIX_MASS_STATUS: 'false' },
    manners: ({ numbers }) => ({
      isPassedOver: () => true,
      gapFill: (from, newNumber) => [numbers.gapFill(from, newNumber, false)],
    }),
    script: tradeWhileAway(40),
  },
  {
    name: 'the exchange passes over missed parts one by one, by gap fills without PossDupFlag',
    why: 'it makes one for each message that it does not keep',
    expect: 'finding',
    orders: [{ time_in_force: 'gtc' }],
    settings: { MARINA_FIX_MASS_STATUS: 'false' },
    manners: ({ numbers }) => ({
      isPassedOver: () => true,
      gapFill: (from, newNumber) =>
        Array.from({ length: newNumber - from }, (_, at) => numbers.gapFill(from + at, from + at + 1, false)),
    }),
    script: tradeWhileAway(30, 10),
  },
  {
    name: 'the exchange answers a ResendRequest for a missed part by SequenceReset in reset mode',
    why: 'it keeps no messages',
    expect: 'finding',
    orders: [{ time_in_force: 'gtc' }],
    settings: { MARINA_FIX_MASS_STATUS: 'false' },
    manners: (acceptor) => ({
      isPassedOver: () => true,
      gapFill: (from, newNumber) => [acceptor.numbers.make('4', [[36, String(newNumber)]], { number: from })],
    }),
    script: tradeWhileAway(40),
  },
  {
    name: 'the exchange tests the line before it sends again what is missing',
    why: 'it must know that somebody is there before it sends again',
    expect: 'quiet',
    manners: (acceptor) => ({ loggedOn: () => acceptor.send('1', [[112, 'before-the-gap']]) }),
    script: async (act) => {
      await fillWhileAway(act);
      const ids = act.acceptor.received('0').map((message) => message.text(112));
      assert.ok(ids.includes('before-the-gap'), 'the TestReqID was not given back');
    },
  },
  {
    name: 'the exchange passes over a missed fill, and answers no mass status',
    why: 'mass status is optional',
    expect: 'finding',
    settings: { MARINA_FIX_MASS_STATUS: 'false' },
    manners: () => ({ isPassedOver: () => true }),
    script: fillWhileAway,
  },
  {
    name: 'the exchange passes over a missed end of an order',
    why: 'engines that keep no messages pass over all of them',
    expect: 'true',
    manners: () => ({ isPassedOver: () => true }),
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await whileAway(act, () => void desk.end('cancelled'));
    },
  },
  {
    name: 'the exchange loses a fill and passes over it by a gap fill that nobody asked for',
    why: 'it notices the hole itself, and has no message to send again',
    expect: 'finding',
    script: async ({ desk, acceptor, sees }) => {
      await sees('pending');
      const filled = await desk();
      const number = acceptor.numbers.nextOut;
      filled.trade(100, { how: { isLost: true } });
      acceptor.write(acceptor.numbers.gapFill(number, number + 1));
    },
  },
  {
    name: 'the exchange loses a fill and goes on by SequenceReset in reset mode',
    why: 'the way out of every trouble with numbers',
    expect: 'finding',
    script: async ({ desk, acceptor, sees }) => {
      await sees('pending');
      (await desk()).trade(100, { how: { isLost: true } });
      const number = acceptor.numbers.nextOut;
      acceptor.send('4', [[36, String(number)]], { number });
    },
  },
  {
    name: 'the exchange answers the mass status after a reconnect with "unknown order" of orders that rest',
    why: 'a status is served by another machine than the book',
    expect: 'safe',
    orders: [{ quantity: 10 }, { quantity: 20 }, { quantity: 30 }, { quantity: 40 }],
    onStatus: (desk, request) => void desk.unknown(request, { 103: refusalOf(desk.order.terms.quantity) }),
    onMassStatus: (desk, request) =>
      void desk.unknown(request, { 584: request.text(584), 790: null, 103: refusalOf(desk.order.terms.quantity) }),
    script: async (act) => {
      await act.sees('pending', 0, 3);
      await whileAway(act, () => undefined);
    },
    watchMs: 5_000,
  },
  {
    name: 'the exchange answers the status after a reconnect with ExecType Rejected of orders that rest',
    why: 'a status is served by another machine than the book',
    expect: 'safe',
    orders: [{ quantity: 10 }, { quantity: 20 }, { quantity: 30 }, { quantity: 40 }],
    onStatus: (desk, request) => void desk.unknown(request, { 150: '8', 103: refusalOf(desk.order.terms.quantity) }),
    onMassStatus: (desk, request) =>
      void desk.unknown(request, {
        150: '8',
        584: request.text(584),
        790: null,
        103: refusalOf(desk.order.terms.quantity),
      }),
    script: async (act) => {
      await act.sees('pending', 0, 3);
      await whileAway(act, () => undefined);
    },
    watchMs: 5_000,
  },
  {
    name: 'the exchange answers an order only after a reconnect',
    why: 'the line broke right after the order',
    expect: 'true',
    onOrder: (desk) => {
      desk.accept({ how: { isLost: true } }).trade(40, { how: { isLost: true } });
      desk.acceptor.cut();
    },
  },
  {
    name: 'the exchange sends missed fills again without OrigSendingTime',
    why: 'it is forgotten in many engines',
    expect: 'safe',
    manners: () => ({ write: (bytes, socket) => void socket.write(withoutOrigSendingTime(bytes)) }),
    script: fillWhileAway,
  },
  {
    name: 'the exchange sends at most five messages again for each question',
    why: 'resends are limited to protect the others',
    expect: 'true',
    manners: (acceptor) => ({
      receive: (message) => {
        if (message.type !== '2' || message.number !== acceptor.numbers.nextIn) return false;
        acceptor.numbers.nextIn += 1;
        const from = Number(message.text(7));
        const last = Number(message.text(16)) || acceptor.numbers.nextOut - 1;
        for (const bytes of acceptor.numbers.resend(from, Math.min(last, from + 4))) acceptor.write(bytes);
        return true;
      },
    }),
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await whileAway(act, () => {
        for (let part = 0; part < 20; part += 1) desk.trade(5);
      });
    },
  },
  {
    name: 'the exchange has the order in its book, and lost its number in a fail-over',
    why: 'the session and the book are stored by two machines',
    expect: 'safe',
    onOrder: (desk, message) => {
      desk.takeSilently().trade(100, 'nothing');
      desk.acceptor.numbers.nextIn = message.number;
      desk.acceptor.cut();
    },
    onStatus: (desk, request) => void desk.unknown(request),
    watchMs,
  },
  {
    name: 'the exchange never read an order, and asks for its number again',
    why: 'the line broke while the order was on its way',
    expect: 'safe',
    manners: (acceptor) => {
      let isFirst = true;
      return {
        receive: (message) => {
          if (message.type !== 'D' || !isFirst) return false;
          isFirst = false;
          acceptor.cut();
          return true;
        },
      };
    },
    watchMs,
  },
  {
    name: 'the exchange asks for everything from 1 again at each Logon',
    why: 'engines without a store do that',
    expect: 'quiet',
    manners: (acceptor) => ({
      loggedOn: () =>
        acceptor.send('2', [
          [7, '1'],
          [16, '0'],
        ]),
    }),
    script: fillWhileAway,
  },
  {
    name: 'the exchange asks for everything from 1 again in the middle of the day',
    why: 'an operator of the exchange does that',
    expect: 'quiet',
    script: async ({ acceptor, sees, desk }) => {
      await sees('pending');
      acceptor.send('2', [
        [7, '1'],
        [16, '0'],
      ]);
      (await desk()).trade(100);
    },
  },
];

function refusalOf(quantity: bigint): string | null {
  return { 10: '5', 20: '99', 30: '0' }[Number(quantity)] ?? null;
}
