import type { Wording } from '../desk.ts';
import type { Habit } from '../habit.ts';
import { utcTimestamp } from '../wire.ts';

/** Sections A, C, F and G of the order state change matrices: how an order lives and ends. */
export const matrixLifeHabits: readonly Habit[] = [
  {
    name: 'the exchange says Pending New, New and Filled',
    why: 'matrix A.1.a',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.report({ 150: 'A', 39: 'A' }).accept().trade(100);
    },
  },
  {
    name: 'the exchange says Pending New and then Rejected',
    why: 'matrix A.1.b',
    expect: 'quiet',
    onOrder: (desk) => void desk.report({ 150: 'A', 39: 'A', 151: '100' }).end('rejected', { 103: '0' }),
  },
  {
    name: 'the exchange trades 40 and says Done For Day of a day order',
    why: 'matrix A.1.c',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end('expired', { 150: '3', 39: '3' });
    },
  },
  {
    name: 'the exchange says Done For Day of a filled order',
    why: 'Done For Day comes before Filled in the order of precedence, and each order of the day gets one',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(100);
      desk.report({ 150: '3', 39: '3' });
    },
  },
  {
    name: 'the exchange says Calculated of a filled order with commission and settlement',
    why: 'matrix A: the contract note of the evening',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(100);
      desk.report({ 150: 'B', 39: 'B', 12: '1.35', 13: '3', 64: '20261130', 118: '1001.35' });
    },
  },
  {
    name: 'the exchange says Pending New after New and a trade',
    why: 'two processes publish',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.report({ 150: 'A', 39: 'A', 14: '0', 151: '100', 6: '0' });
    },
  },
  {
    name: 'the exchange says New with CumQty 0 after a part has traded',
    why: 'two processes publish',
    expect: 'true',
    onOrder: (desk) => {
      desk.takeSilently().trade(40);
      desk.report({ 150: '0', 39: '0', 14: '0', 151: '100', 6: '0' });
    },
  },
  {
    name: 'the exchange says Cancelled, and Expired at the end of the day',
    why: 'the evening run reports each day order',
    expect: 'true',
    onOrder: (desk) => void desk.accept().end('cancelled').report({ 150: 'C', 39: 'C' }),
  },
  {
    name: 'the exchange says Expired, and Done For Day of the same order',
    why: 'the evening run reports each day order',
    expect: 'true',
    onOrder: (desk) => {
      desk.accept().trade(40);
      desk.end('expired').report({ 150: '3', 39: '3' });
    },
  },
  {
    name: 'the exchange says Filled, and Cancelled with nothing left',
    why: 'the order leaves the book, and the book reports each order that leaves',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept().trade(100);
      desk.report({ 150: '4', 39: '4' });
    },
  },
  {
    name: 'the exchange guarantees a price by Stopped and fills at a better one',
    why: 'matrix G: a specialist stops the order',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().report({ 150: '7', 39: '7', 44: desk.acceptor.price(1_000n) });
      desk.trade(100, {}, 990n);
    },
  },
  {
    name: 'the exchange suspends an order in a trading halt with LeavesQty 0, restates it, and trades',
    why: 'a circuit breaker takes orders out of the book for a while',
    expect: 'true',
    onOrder: (desk) => {
      desk.accept().report({ 150: '9', 39: '9', 151: '0' }).report({ 150: 'D', 378: '7' });
      desk.trade(40);
    },
  },
  {
    name: 'the exchange trades with OrdStatus Suspended and Stopped',
    why: 'both come before Partially Filled in the order of precedence',
    expect: 'quiet',
    onOrder: (desk) => {
      desk.accept().trade(40, { 39: '9' });
      desk.trade(20, { 39: '7' });
    },
  },
  {
    name: 'the exchange cancels a suspended order by itself',
    why: 'the halt lasts, and the book is emptied',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().report({ 150: '9', 39: '9' }).end('cancelled', { 378: '6' }),
  },
  {
    name: 'the exchange rejects a second delivery of the order as a duplicate, and the first one rests',
    why: 'matrix G: a router of the exchange delivers the order twice',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().report({ 150: '8', 39: '8', 37: 'NONE', 103: '6', 151: '0' }),
    watchMs: 3_000,
  },
  {
    name: 'the exchange rejects a second delivery of the order as a duplicate before it says New of the first one',
    why: 'matrix G: a router of the exchange delivers the order twice',
    expect: 'safe',
    excuse: 'the exchange had rejected the order before',
    onOrder: (desk) => void desk.report({ 150: '8', 39: '8', 37: 'NONE', 103: '6', 151: '0', 14: '0' }).accept(),
    watchMs: 3_000,
  },
  {
    name: 'the exchange says New of an order again with PossResend and another ExecID',
    why: 'matrix G: PossResend of a report after a fail-over',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().accept({ how: { header: [[97, 'Y']] } }),
  },
  {
    name: 'the exchange says Cancelled again with PossResend and another ExecID',
    why: 'matrix G: PossResend of a report after a fail-over',
    expect: 'quiet',
    onOrder: (desk) =>
      void desk
        .accept()
        .end('cancelled')
        .report({ 150: '4', how: { header: [[97, 'Y']] } }),
  },
  ...(['C', '4'] as const).flatMap((type): Habit[] => {
    const word = type === 'C' ? 'Expired' : 'Cancelled';
    const end = type === 'C' ? 'expired' : 'cancelled';
    return [
      {
        name: `the exchange ends an immediate-or-cancel order as ${word} without a trade`,
        why: 'matrix F: engines differ in the word',
        expect: 'quiet',
        orders: [{ time_in_force: 'ioc' }],
        onOrder: (desk) => void desk.accept().end(end),
      },
      {
        name: `the exchange ends an immediate-or-cancel order as ${word} after 40, without New`,
        why: 'matrix F: New may be left out before a trade',
        expect: 'quiet',
        orders: [{ time_in_force: 'ioc' }],
        onOrder: (desk) => {
          desk.takeSilently().trade(40);
          desk.end(end);
        },
      },
      {
        name: `the exchange ends an immediate-or-cancel order as ${word} before it reports the trade of 40`,
        why: 'two processes publish',
        expect: 'safe',
        excuse: 'the trade comes in the same moment',
        orders: [{ time_in_force: 'ioc' }],
        onOrder: (desk) => {
          const trade = desk.accept().trade(40, 'nothing');
          desk.end(end).sayTrade(trade);
        },
      },
      {
        name: `the exchange ends a fill-or-kill order as ${word} without New`,
        why: 'matrix F: the order never was in the book',
        expect: 'quiet',
        orders: [{ time_in_force: 'fok' }],
        onOrder: (desk) => void desk.takeSilently().end(end),
      },
      {
        name: `the exchange ends the rest of a market order as ${word}`,
        why: 'there was no other side left',
        expect: 'quiet',
        orders: [{ type: 'market', price_kobo: undefined }],
        onOrder: (desk) => {
          desk.accept().trade(40, {}, 1_013n);
          desk.end(end, { 378: '99' });
        },
      },
      {
        name: `the exchange ends a market order as ${word} without a trade and without New`,
        why: 'there was no other side at all',
        expect: 'quiet',
        orders: [{ type: 'market', price_kobo: undefined }],
        onOrder: (desk) => void desk.takeSilently().end(end),
      },
    ];
  }),
  {
    name: 'the exchange turns the rest of a market order into a limit order',
    why: 'a market-to-limit order: what is left rests at the last price',
    expect: 'quiet',
    orders: [{ type: 'market', price_kobo: undefined }],
    onOrder: (desk) => {
      const price = desk.acceptor.price(1_000n);
      desk.accept().trade(40);
      desk.report({ 150: 'D', 378: '3', 40: '2', 44: price }).trade(60, { 40: '2', 44: price });
    },
  },
  ...(
    [
      ['without milliseconds', { 60: utcTimestamp(Date.now()).slice(0, 17) }],
      ['with microseconds', { 60: `${utcTimestamp(Date.now())}123` }],
      ['of ten minutes ago', { 60: utcTimestamp(Date.now() - 600_000) }],
      ['of a minute ahead', { 60: utcTimestamp(Date.now() + 60_000) }],
    ] as const satisfies readonly (readonly [string, Wording])[]
  ).map(
    ([what, said]): Habit => ({
      name: `the exchange fills an order with a TransactTime ${what}`,
      why: 'clocks and precisions differ, and all of these are legal',
      expect: 'quiet',
      onOrder: (desk) => void desk.accept().trade(100, said),
    }),
  ),
];
