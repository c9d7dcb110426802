import type { Wording } from '../desk.ts';
import type { Habit } from '../habit.ts';

/** One true trade of 40, worded in some way. */
function fortyWorded(name: string, why: string, said: Wording, expect: Habit['expect'] = 'safe'): Habit {
  return { name, why, expect, onOrder: (desk) => void desk.accept().trade(40, said) };
}

const missing: readonly Habit[] = [37, 11, 17, 150, 39, 1, 55, 54, 38, 40, 151, 14, 6, 60, 31, 32].map((tag) =>
  fortyWorded(`the exchange leaves field ${tag} out of a trade`, 'engines leave out what they hold for known', {
    [tag]: null,
  }),
);

const counts: readonly Habit[] = [
  ...(['0', '10', '60', '100', '140', '-40', 'abc', '40.5', '99999999999999999999999', '4e1'] as const).map((text) =>
    fortyWorded(`the exchange counts CumQty ${text} in a trade of 40`, 'counts come from another process than trades', {
      14: text,
    }),
  ),
  ...(['40.0', '40.00', '0000040', '0000000000000040.000000'] as const).flatMap((text) => [
    fortyWorded(
      `the exchange writes CumQty 40 as ${text}`,
      'Qty is a float in FIX, and records of fixed width are padded',
      { 14: text },
      'quiet',
    ),
    fortyWorded(
      `the exchange writes LastQty 40 as ${text}`,
      'Qty is a float in FIX, and records of fixed width are padded',
      { 32: text },
      'quiet',
    ),
    fortyWorded(
      `the exchange writes OrderQty 100 as ${text.replace('40', '100')}`,
      'Qty is a float in FIX',
      { 38: text.replace('40', '100') },
      'quiet',
    ),
    fortyWorded(
      `the exchange writes LeavesQty 60 as ${text.replace('40', '60')}`,
      'Qty is a float in FIX',
      { 151: text.replace('40', '60') },
      'quiet',
    ),
  ]),
  ...(['0', '100', '-60', '40', 'none'] as const).map((text) =>
    fortyWorded(`the exchange says LeavesQty ${text} after a trade of 40 of 100`, 'counts come from another process', {
      151: text,
    }),
  ),
  ...(['0', '-40', '40.5', 'forty', '99999999999999999999999', '4000000000', '140', ' 40', '+40'] as const).map(
    (text) =>
      fortyWorded(`the exchange says LastQty ${text} where 40 traded`, 'a field of another width or meaning', {
        32: text,
      }),
  ),
  ...(['0', '-10', '99999999999999999999', '1E3', '10,00', 'market', '10.00.0', '0.00000001'] as const).map((text) =>
    fortyWorded(`the exchange says LastPx ${text}`, 'a price in another format', { 31: text }),
  ),
  fortyWorded('the exchange says an AvgPx of 0', 'AvgPx is not computed', { 6: '0' }, 'safe'),
  fortyWorded(
    'the exchange says an AvgPx a hundred times too high',
    'AvgPx is in another unit',
    { 6: '100000' },
    'safe',
  ),
  fortyWorded(
    'the exchange writes prices with eight decimals',
    'prices are decimals of fixed width',
    {
      edit: (fields) =>
        fields.map(([tag, value]) => [
          tag,
          [31, 44].includes(tag) ? `00${value}${value.includes('.') ? '' : '.'}000000` : value,
        ]),
    },
    'quiet',
  ),
];

const disagreeing: readonly Habit[] = (
  [
    ['0', 'New'],
    ['2', 'Filled'],
    ['4', 'Canceled'],
    ['8', 'Rejected'],
    ['C', 'Expired'],
    ['A', 'Pending New'],
    ['Z', 'something unknown'],
  ] as const
).map(([status, word]) =>
  fortyWorded(`the exchange says a trade of 40 of 100 with OrdStatus ${word}`, 'OrdStatus is that of another moment', {
    39: status,
  }),
);

const types: readonly Habit[] = [
  fortyWorded('the exchange says ExecType 1, partial fill, as FIX 4.2 does', 'the engine was made for FIX 4.2', {
    150: '1',
  }),
  fortyWorded('the exchange says ExecType f in lower case', 'a hand-made engine', { 150: 'f' }),
  fortyWorded(
    'the exchange reports the first trade as ExecType New with OrdStatus 1',
    'New and first fill are one message there',
    { 150: '0' },
  ),
  fortyWorded('the exchange reports a trade as Restated', 'the trade came out of an auction', { 150: 'D', 378: '99' }),
  fortyWorded('the exchange reports a trade as a status', 'the engine answers only from its cache', { 150: 'I' }),
  fortyWorded('the exchange reports a trade with an unknown ExecType', 'an own extension', { 150: 'X' }),
  {
    name: 'the exchange says ExecType 2, fill, as FIX 4.2 does',
    why: 'the engine was made for FIX 4.2',
    expect: 'safe',
    onOrder: (desk) => void desk.accept().trade(100, { 150: '2' }),
  },
  {
    name: 'the exchange fills an order with ExecTypes 1 and 2 and ExecTransType 0, as FIX 4.2 does',
    why: 'the engine was made for FIX 4.2',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept({ 20: '0' });
      desk.trade(40, { 150: '1', 20: '0' });
      desk.trade(60, { 150: '2', 20: '0' });
    },
  },
  ...(['5', '7', '9', 'B', 'E', '6', 'L', 'J', 'K'] as const).map(
    (execType): Habit => ({
      name: `the exchange says ExecType ${execType} of a resting order in passing`,
      why: 'a state that only that exchange has',
      expect: 'true',
      onOrder: (desk) => void desk.accept().report({ 150: execType }),
    }),
  ),
  {
    name: 'the exchange repeats a trade as released to clearing (ExecType K)',
    why: 'post-trade states go out on the same session',
    expect: 'true',
    version: 'FIXT.1.1',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade(trade, { 150: 'K', 17: desk.acceptor.newId('K') });
    },
  },
];

const repeats: readonly Habit[] = [
  {
    name: 'the exchange sends a trade twice',
    why: 'a publisher that delivers at least once',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().sayTrade(desk.trade(40)),
  },
  {
    name: 'the exchange sends a trade again with PossResend',
    why: 'it does not know whether it was sent before a fail-over',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().sayTrade(desk.trade(40), { how: { header: [[97, 'Y']] } }),
  },
  {
    name: 'the exchange sends a trade for the first time with PossResend',
    why: 'it does not know whether it was sent before a fail-over',
    expect: 'true',
    onOrder: (desk) => void desk.accept().trade(40, { how: { header: [[97, 'Y']] } }),
  },
  {
    name: 'the exchange sends a trade again under a new ExecID and counts it once',
    why: 'ExecIDs are made when messages are',
    expect: 'safe',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.sayTrade({ ...trade, execId: desk.acceptor.newId('T') });
    },
  },
  {
    name: 'the exchange says New twice',
    why: 'a publisher that delivers at least once',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().accept(),
  },
  {
    name: 'the exchange says Cancelled twice',
    why: 'one comes from the book and one from the cancel',
    expect: 'quiet',
    onOrder: (desk) => void desk.accept().end('cancelled').report({ 150: '4' }),
  },
  {
    name: 'the exchange says New after the order has filled',
    why: 'two processes publish',
    expect: 'true',
    onOrder: (desk) => {
      desk.takeSilently().trade(100);
      desk.report({ 150: '0', 39: '0', 151: '100', 14: '0' });
    },
  },
  {
    name: 'the exchange sends two trades in the wrong order',
    why: 'two processes publish',
    expect: 'safe',
    onOrder: (desk) => {
      const first = desk.accept().trade(40, 'nothing');
      desk.trade(60, {});
      desk.sayTrade(first, { 39: '1', 14: '40', 151: '60' });
    },
  },
  {
    name: 'the exchange uses one ExecID for two trades of other quantities',
    why: 'ExecIDs are numbers of the auction',
    expect: 'safe',
    onOrder: (desk) => {
      const first = desk.accept().trade(40);
      desk.trade(60, { 17: first.execId });
    },
  },
  {
    name: 'the exchange uses one ExecID for two trades at other prices',
    why: 'ExecIDs are numbers of the auction',
    expect: 'safe',
    onOrder: (desk) => {
      const first = desk.accept().trade(40, {}, 990n);
      desk.trade(40, { 17: first.execId }, 980n);
    },
  },
  {
    name: 'the exchange uses one ExecID for two trades that are the same but for CumQty',
    why: 'ExecIDs are numbers of the auction',
    expect: 'safe',
    onOrder: (desk) => {
      const first = desk.accept().trade(40);
      desk.trade(40, { 17: first.execId });
    },
  },
  {
    name: 'the exchange fills an order whole under the ExecID of its New',
    why: 'ExecIDs are numbers of the order',
    expect: 'safe',
    onOrder: (desk) => {
      desk.accept({ 17: desk.order.orderId });
      desk.trade(100, { 17: desk.order.orderId });
    },
  },
  {
    name: 'the exchange cancels an order under the ExecID of a trade',
    why: 'ExecIDs are numbers of the order',
    expect: 'safe',
    onOrder: (desk) => {
      const trade = desk.accept().trade(40);
      desk.end('cancelled', { 17: trade.execId });
    },
  },
  {
    name: 'the exchange uses the same ExecIDs for two orders',
    why: 'ExecIDs count the executions of an order',
    expect: 'quiet',
    orders: [{}, { quantity: 50 }],
    onOrder: (desk) => {
      desk.accept({ 17: '1' });
      desk.trade(50, { 17: '2' });
    },
  },
  {
    name: 'the exchange says ExecID 0 in everything but trades',
    why: 'ExecID 0 was the rule for status messages until FIX 4.2',
    expect: 'true',
    onOrder: (desk) => {
      desk.accept({ 17: '0' }).trade(40);
      desk.end('cancelled', { 17: '0' });
    },
  },
];

const words: readonly Habit[] = [
  ...(
    [
      ['an ExecID of 200 characters', { 17: `T${'9'.repeat(199)}` }],
      ['an OrderID of 100 characters', { 37: `X${'9'.repeat(99)}` }],
      ['an ExecID with letters outside ASCII', { 17: 'Trade-ñ-₦-1' }],
      ['an OrderID with spaces', { 37: 'BOOK 7 / 12' }],
      ['another OrderID than before', { 37: 'SOMETHING-ELSE' }],
      ['a Text of 20,000 characters', { 58: 'x'.repeat(20_000) }],
      ['a Text with an equals sign and ₦', { 58: 'limit=₦10 only' }],
      ['an EncodedText of the right length', { 354: '6', 355: 'ñññ' }],
      ['a TransactTime without milliseconds', { 60: '20261126-10:00:00' }],
      ['a TransactTime with nanoseconds', { 60: '20261126-10:00:00.123456789' }],
      ['a TransactTime with a leap second', { 60: '20161231-23:59:60' }],
      ['a TransactTime that is no time', { 60: 'now' }],
      ['a TransactTime of tomorrow', { 60: '20991126-10:00:00.000' }],
      ['LastQty twice', { also: [[32, '70']] }],
      ['LastPx twice', { also: [[31, '1']] }],
      ['CumQty twice', { also: [[14, '90']] }],
      ['ClOrdID twice', { also: [[11, 'ANOTHER']] }],
      ['ExecType twice', { also: [[150, '4']] }],
      [
        'parties of the other firm',
        {
          also: [
            [453, '2'],
            [448, 'FIRM'],
            [447, 'D'],
            [452, '1'],
            [448, 'OTHER'],
            [447, 'D'],
            [452, '17'],
          ],
        },
      ],
      [
        'contra brokers with quantities',
        {
          also: [
            [382, '1'],
            [375, 'OTHER'],
            [437, '70'],
            [438, '20261126-10:00:00'],
          ],
        },
      ],
      [
        'legs with their own LastPx',
        {
          also: [
            [555, '2'],
            [600, 'LEG1'],
            [637, '5'],
            [600, 'LEG2'],
            [637, '7'],
          ],
        },
      ],
      [
        'legs whose fields have the tags of the order',
        {
          also: [
            [555, '2'],
            [600, 'LEG1'],
            [54, '2'],
            [32, '7'],
            [31, '1'],
            [600, 'LEG2'],
            [54, '2'],
          ],
        },
      ],
      [
        'a group of orders with other ClOrdIDs and quantities',
        {
          also: [
            [73, '2'],
            [11, 'A1'],
            [37, 'A2'],
            [38, '500'],
            [11, 'B1'],
            [37, 'B2'],
            [38, '600'],
          ],
        },
      ],
      [
        'a group of fills inside (NoFills)',
        {
          also: [
            [1362, '2'],
            [1363, 'F1'],
            [1364, '9'],
            [1365, '15'],
            [1363, 'F2'],
            [1364, '9'],
            [1365, '25'],
          ],
        },
      ],
      [
        'a group that has fewer entries than its count',
        {
          also: [
            [453, '9'],
            [448, 'FIRM'],
          ],
        },
      ],
      [
        'tags of its own',
        {
          also: [
            [5001, 'x'],
            [20_007, '14=999'],
          ],
        },
      ],
      ['RawData with a separator inside', { 95: '7', 96: '14=1\u00019' }],
    ] as const satisfies readonly (readonly [string, Wording])[]
  ).map(([what, said]) =>
    fortyWorded(`the exchange reports a trade with ${what}`, 'engines add, repeat and widen fields', said),
  ),
];

export const executionHabits: readonly Habit[] = [
  ...missing,
  ...counts,
  ...disagreeing,
  ...types,
  ...repeats,
  ...words,
];
