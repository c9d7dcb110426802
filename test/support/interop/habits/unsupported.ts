import assert from 'node:assert/strict';
import { eventually } from '../../eventually.ts';
import type { Desk } from '../desk.ts';
import type { Act, Habit } from '../habit.ts';
import { whileAway } from '../numbers.ts';
import { utcTimestamp, type WireField } from '../wire.ts';

/** The answers to the message of a number: BusinessMessageReject and Reject. */
function answersTo({ acceptor }: Act, number: number): string[] {
  return ['j', '3'].flatMap((type) =>
    acceptor
      .received(type)
      .filter((each) => each.find(45) === String(number))
      .map((each) => `${type} 372=${each.find(372)} 380=${each.find(380) ?? 'none'}`),
  );
}

/** Waits until all was read, and requires exactly one BusinessMessageReject that says that the type is not supported. */
async function assertRefusedOnce(act: Act, type: string, number: number): Promise<void> {
  await act.acceptor.barrier();
  await eventually(() => assert.deepEqual(answersTo(act, number), [`j 372=${type} 380=3`]));
}

function about({ order }: Desk): WireField[] {
  return [
    [37, order.orderId],
    [11, order.terms.clOrdId],
    [55, order.terms.symbol],
    [54, order.terms.side],
  ];
}

/** Messages that say nothing of an order of ours. */
const idle: readonly (readonly [string, string, WireField[]])[] = [
  [
    'News',
    'B',
    [
      [148, 'the market closes at 14:00'],
      [33, '1'],
      [58, 'half day'],
    ],
  ],
  [
    'TradingSessionStatus of a halt',
    'h',
    [
      [336, 'MAIN'],
      [340, '1'],
    ],
  ],
  [
    'Email',
    'C',
    [
      [164, 'E1'],
      [94, '0'],
      [147, 'hello'],
      [33, '1'],
      [58, 'x'],
    ],
  ],
  ['a type of the broker', 'U9', [[5001, 'x']]],
  ['a type of two letters of a later version', 'DZ', [[58, 'x']]],
  ['a type of small letters', 'zz', [[58, 'x']]],
  [
    'XMLnonFIX with a document',
    'n',
    [
      [212, '9'],
      [213, '<a>1=2</a'],
    ],
  ],
];

/** Messages that tell of an order what only an ExecutionReport may tell. */
const telling: readonly (readonly [string, string, (desk: Desk) => WireField[], (desk: Desk) => void])[] = [
  [
    'a trade in a TradeCaptureReport only',
    'AE',
    (desk) => [
      [571, 'TR1'],
      [487, '0'],
      [55, desk.order.terms.symbol],
      [32, '40'],
      [31, desk.acceptor.price(1_000n)],
      [552, '1'],
      [54, desk.order.terms.side],
      [37, desk.order.orderId],
      [11, desk.order.terms.clOrdId],
    ],
    (desk) => void desk.trade(40, 'nothing'),
  ],
  [
    'the end of an order in an OrderMassCancelReport only',
    'r',
    (desk) => [
      [37, 'M1'],
      [530, '7'],
      [531, '7'],
      [533, '1'],
      [534, '1'],
      [41, desk.order.terms.clOrdId],
      [535, desk.order.orderId],
    ],
    (desk) => void desk.end('cancelled', 'nothing'),
  ],
  [
    'the end of an order in a ListStatus only',
    'N',
    (desk) => [
      [66, 'L1'],
      [429, '2'],
      [82, '1'],
      [83, '1'],
      [68, '1'],
      [73, '1'],
      [11, desk.order.terms.clOrdId],
      [14, '0'],
      [39, '4'],
      [151, '0'],
      [84, '100'],
      [6, '0'],
    ],
    (desk) => void desk.end('cancelled', 'nothing'),
  ],
  [
    'a trade in an AllocationReport only',
    'AS',
    (desk) => [[755, 'A1'], [73, '1'], ...about(desk), [53, '40'], [6, desk.acceptor.price(1_000n)]],
    (desk) => void desk.trade(40, 'nothing'),
  ],
  [
    'that it does not know a trade (DontKnowTrade) after it had reported it',
    'Q',
    (desk) => [...about(desk), [17, desk.order.trades[0]?.execId ?? ''], [127, 'D'], [32, '40']],
    (desk) => {
      const trade = desk.trade(40);
      trade.isBusted = true;
    },
  ],
];

/** Messages of types that are not supported. */
export const unsupportedHabits: readonly Habit[] = [
  ...idle.map(
    ([what, type, fields]): Habit => ({
      name: `the exchange sends ${what}, and is told once by a BusinessMessageReject that it is not supported`,
      why: 'a message without an answer is a message that was lost',
      expect: 'quiet',
      script: async (act) => {
        await act.sees('pending');
        const number = act.acceptor.numbers.nextOut;
        act.acceptor.send(type, fields);
        (await act.desk()).trade(100);
        await assertRefusedOnce(act, type, number);
        // The same again, as an answer to a ResendRequest that nobody made.
        act.acceptor.send(type, fields, {
          number,
          header: [
            [43, 'Y'],
            [122, utcTimestamp(Date.now())],
          ],
        });
        await assertRefusedOnce(act, type, number);
        await act.sees('filled', 100);
      },
    }),
  ),
  ...telling.map(
    ([what, type, fields, happens]): Habit => ({
      name: `the exchange tells ${what}`,
      why: 'what it says there is of money, and is not booked',
      expect: 'finding',
      script: async (act) => {
        await act.sees('pending');
        const desk = await act.desk();
        happens(desk);
        const number = act.acceptor.numbers.nextOut;
        act.acceptor.send(type, fields(desk));
        await assertRefusedOnce(act, type, number);
      },
    }),
  ),
  {
    name: 'the exchange refuses the BusinessMessageReject of its News by a BusinessMessageReject',
    why: 'it does not support that type either, and two engines must not answer each other for ever',
    expect: 'quiet',
    script: async (act) => {
      const { acceptor } = act;
      await act.sees('pending');
      const number = acceptor.numbers.nextOut;
      acceptor.send('B', [[148, 'x']]);
      await assertRefusedOnce(act, 'B', number);
      const refusal = acceptor.received('j').find((each) => each.find(45) === String(number));
      const behind = acceptor.numbers.nextOut;
      acceptor.send('j', [
        [45, refusal?.text(34) ?? ''],
        [372, 'j'],
        [380, '3'],
      ]);
      acceptor.send('3', [
        [45, refusal?.text(34) ?? ''],
        [372, 'j'],
        [373, '11'],
      ]);
      await acceptor.barrier();
      assert.deepEqual([...answersTo(act, behind), ...answersTo(act, behind + 1)], []);
      (await act.desk()).trade(100);
      await act.sees('filled', 100);
    },
  },
  {
    name: 'the exchange sends News while the line is down, and sends it again among missed fills',
    why: 'it keeps all messages',
    expect: 'quiet',
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      const number = act.acceptor.numbers.nextOut;
      await whileAway(act, () => {
        act.acceptor.send('B', [[148, 'x']]);
        desk.trade(40);
        act.acceptor.send('AE', [[571, 'TR9']]);
        desk.trade(60);
      });
      await assertRefusedOnce(act, 'B', number);
      await act.sees('filled', 100);
    },
  },
  {
    name: 'the exchange sends News between the Logon and the answer to the first TestRequest',
    why: 'a greeting of the day',
    expect: 'quiet',
    manners: (acceptor) => ({ loggedOn: () => acceptor.send('B', [[148, 'good morning']]) }),
    script: async (act) => {
      await act.sees('pending');
      const desk = await act.desk();
      await whileAway(act, () => void desk.trade(100));
      await act.sees('filled', 100);
    },
  },
  {
    name: 'the exchange sends two hundred News at once before a fill',
    why: 'the prices of the day come as News there',
    expect: 'quiet',
    script: async (act) => {
      await act.sees('pending');
      for (let count = 0; count < 200; count += 1) act.acceptor.send('B', [[148, `price ${count}`]]);
      (await act.desk()).trade(100);
      await act.sees('filled', 100);
    },
  },
];
