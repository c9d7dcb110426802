import type { Habit } from '../habit.ts';
import type { WireField } from '../wire.ts';

/** Rejects that name an order's number, of a message that is not the order. */
const rejectsOfOthers: readonly Habit[] = (
  [
    ['SequenceReset', '4'],
    ['Heartbeat', '0'],
    ['Logon', 'A'],
    ['TestRequest', '1'],
    ['ResendRequest', '2'],
  ] as const
).flatMap(([word, type]) => [
  {
    name: `the exchange rejects a ${word} of ours under the number that an order had`,
    why: 'a gap fill has the number of the first message that it passes over',
    expect: 'safe',
    onOrder: (desk, message) => {
      desk.accept();
      desk.send('3', [
        [45, message.text(34)],
        [372, type],
        [373, '99'],
      ]);
    },
  },
  {
    name: `the exchange rejects a ${word} of ours under the number of an order that it has not answered`,
    why: 'a gap fill has the number of the first message that it passes over',
    expect: 'safe',
    onOrder: (desk, message) => {
      desk.takeSilently().send('3', [
        [45, message.text(34)],
        [372, type],
        [373, '99'],
      ]);
    },
    onStatus: () => undefined,
    watchMs: 4_000,
  },
]);

/** An order that was taken and is rejected all the same, in every form of a reject. */
const rejectsOfTaken: readonly Habit[] = (
  [
    [
      'a session-level Reject',
      '3',
      (number, id) => [
        [45, number],
        [372, 'D'],
        [373, '5'],
        [58, id],
      ],
    ],
    [
      'a session-level Reject without RefMsgType',
      '3',
      (number) => [
        [45, number],
        [373, '5'],
      ],
    ],
    [
      'a BusinessMessageReject',
      'j',
      (number, id) => [
        [45, number],
        [372, 'D'],
        [379, id],
        [380, '4'],
      ],
    ],
    [
      'a BusinessMessageReject without RefSeqNum',
      'j',
      (_, id) => [
        [372, 'D'],
        [379, id],
        [380, '4'],
      ],
    ],
    [
      'a BusinessMessageReject without BusinessRejectRefID',
      'j',
      (number) => [
        [45, number],
        [372, 'D'],
        [380, '4'],
      ],
    ],
  ] as const satisfies readonly (readonly [string, string, (number: string, id: string) => WireField[]])[]
).flatMap(([word, type, fields]) => [
  {
    name: `the exchange refuses with ${word} an order that it has acknowledged`,
    why: 'a late check of the dictionary',
    expect: 'safe',
    onOrder: (desk, message) => void desk.accept().send(type, fields(message.text(34), message.text(11))),
  },
  {
    name: `the exchange refuses with ${word} an order and fills it all the same`,
    why: 'the gateway rejects and passes on',
    excuse: 'the exchange itself had refused the order',
    expect: 'safe',
    onOrder: (desk, message) => {
      desk.takeSilently().send(type, fields(message.text(34), message.text(11)));
      desk.trade(100);
    },
  },
  {
    name: `the exchange refuses with ${word} an order that it does not take`,
    why: 'a required field of its own is missing',
    // Without a type it may be about another message of that number.
    expect: word.endsWith('RefMsgType') ? 'safe' : 'true',
    onOrder: (desk, message) => void desk.send(type, fields(message.text(34), message.text(11))),
  },
]);

const pointless: readonly (readonly [string, string, WireField[]])[] = [
  [
    'a session-level Reject of a number that nothing had',
    '3',
    [
      [45, '999999'],
      [372, 'D'],
      [373, '1'],
    ],
  ],
  [
    'a session-level Reject of number 0',
    '3',
    [
      [45, '0'],
      [373, '0'],
    ],
  ],
  [
    'a session-level Reject without RefSeqNum',
    '3',
    [
      [372, 'D'],
      [58, 'bad message'],
    ],
  ],
  [
    'a session-level Reject of a number that is no number',
    '3',
    [
      [45, 'x'],
      [372, 'D'],
    ],
  ],
  [
    'a BusinessMessageReject without any reference',
    'j',
    [
      [372, 'D'],
      [380, '0'],
    ],
  ],
  [
    'a BusinessMessageReject of an id that is not ours',
    'j',
    [
      [372, 'D'],
      [379, 'NOBODY'],
      [380, '0'],
    ],
  ],
  [
    'a BusinessMessageReject of a message type that nobody sent',
    'j',
    [
      [45, '2'],
      [372, 'AE'],
      [380, '3'],
    ],
  ],
  [
    'News',
    'B',
    [
      [148, 'Trading opens at 10:00'],
      [33, '1'],
      [58, 'line'],
    ],
  ],
  [
    'a TradeCaptureReport',
    'AE',
    [
      [571, 'R1'],
      [570, 'N'],
      [55, 'SIM-REST'],
      [32, '40'],
      [31, '10'],
      [75, '20261126'],
    ],
  ],
  [
    'a TradingSessionStatus',
    'h',
    [
      [336, '1'],
      [340, '2'],
    ],
  ],
  [
    'a SecurityStatus',
    'f',
    [
      [55, 'SIM-REST'],
      [326, '2'],
    ],
  ],
  [
    'a UserResponse',
    'BF',
    [
      [923, 'U1'],
      [553, 'MARINA'],
      [926, '1'],
    ],
  ],
  ['a message type of its own', 'U7', [[5001, 'x']]],
  [
    'a DontKnowTrade about nothing',
    'Q',
    [
      [37, 'X'],
      [17, 'Y'],
      [127, 'A'],
    ],
  ],
  [
    'a NewOrderSingle of its own',
    'D',
    [
      [11, 'THEIRS'],
      [55, 'SIM-REST'],
      [54, '1'],
      [38, '5'],
      [40, '1'],
      [60, '20261126-10:00:00'],
    ],
  ],
  ['a Heartbeat with a TestReqID that nobody asked for', '0', [[112, 'who-asked']]],
  [
    'a ResendRequest of a number that was never sent',
    '2',
    [
      [7, '99999'],
      [16, '0'],
    ],
  ],
  [
    'a ResendRequest whose end is before its beginning',
    '2',
    [
      [7, '9'],
      [16, '3'],
    ],
  ],
];

/** Messages that concern no order must change none, and the session goes on. */
const noise: readonly Habit[] = pointless.map(([what, type, fields]) => ({
  name: `the exchange sends ${what} between an order and its fill`,
  why: 'a session carries more than orders',
  expect: 'true',
  script: async ({ desk, acceptor, sees }) => {
    await sees('pending');
    acceptor.send(type, fields);
    (await desk()).trade(100);
    await sees('filled', 100);
  },
}));

export const rejectHabits: readonly Habit[] = [
  ...rejectsOfOthers,
  ...rejectsOfTaken,
  ...noise,
  {
    name: 'the exchange asks again for an order that it has read, and rejects the gap fill',
    why: 'its dictionary wants PossDupFlag elsewhere',
    expect: 'quiet',
    script: async ({ acceptor, placed, sees }) => {
      await sees('pending');
      const sent = acceptor.received('D').find((each) => each.find(11) === placed[0]?.id);
      const number = sent?.text(34) ?? '';
      acceptor.send('2', [
        [7, number],
        [16, number],
      ]);
      await acceptor.barrier();
      acceptor.send('3', [
        [45, number],
        [372, '4'],
        [373, '1'],
      ]);
    },
  },
  {
    name: 'the exchange sends a flood of TestRequests',
    why: 'a monitor of the exchange is set too fast',
    expect: 'quiet',
    script: async ({ acceptor, desk }) => {
      for (let count = 0; count < 200; count += 1) acceptor.send('1', [[112, `FLOOD${count}`]]);
      (await desk()).trade(100);
    },
  },
];
