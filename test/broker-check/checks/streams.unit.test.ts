/** The checks of streams of reports, with streams that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { status } from '@grpc/grpc-js';
import { Breach } from '../../../src/broker-check/check.ts';
import { applicationStreamChecks } from '../../../src/broker-check/checks/application-stream.ts';
import {
  denseFromFirst,
  statesItsLast,
  statesNoMoreThanSent,
  streamChecks,
} from '../../../src/broker-check/checks/streams.ts';
import { withdrawalStreamChecks } from '../../../src/broker-check/checks/withdrawal-stream.ts';
import { ReportKind } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { passTime } from '../../support/passing-time.ts';
import { type RightBroker, rightBroker } from '../../support/right-broker.ts';
import {
  type Asked,
  type CheckCase,
  ended,
  holdCases,
  type Script,
  scriptedSession,
  verdictOf,
} from '../../support/scripted-adapter.ts';

interface Message {
  readonly reports: readonly { readonly number: bigint }[];
  readonly lastNumber: bigint;
}
type Stream = readonly (Message | Error)[];

const message = (numbers: readonly (number | bigint)[], last: number | bigint = numbers.at(-1) ?? 0): Message => ({
  reports: numbers.map((number) => ({ number: BigInt(number) })),
  lastNumber: BigInt(last),
});
const upTo = (count: number, from = 1) => Array.from({ length: count }, (_, at) => from + at);
const broken = ended(status.UNAVAILABLE);

/** Opens a stream with these messages. Behind them it ends. */
function stream(script: Stream) {
  const opened: bigint[] = [];
  const open = async function* (after: bigint) {
    opened.push(after);
    for (const each of script) {
      if (each instanceof Error) throw each;
      yield each as never;
    }
  };
  return { open, opened };
}

async function verdict(checked: Promise<void>): Promise<string> {
  try {
    await checked;
    return 'kept';
  } catch (error) {
    assert.ok(error instanceof Breach, String(error));
    return `breach: ${error.message}`;
  }
}

describe('a stream from its begin, as broker-check sees it', () => {
  it('a stream from its begin has report 1 first and no gap, in the first message and in those behind it', async () => {
    for (const [script, expected] of [
      [[message([])], /kept/],
      [[message([1, 2, 3]), message([4]), message([])], /kept/],
      [[message([1])], /kept/],
      [[message([2])], /in the place of report 1 is report 2/],
      [[message([0, 1])], /in the place of report 1 is report 0/],
      [[message([1, 2, 2])], /in the place of report 3 is report 2/],
      [[message([1, 2, 4])], /in the place of report 3 is report 4/],
      [[message([1, 2]), message([4]), message([])], /in the place of report 3 is report 4/],
      [[message([1, 3, 2])], /in the place of report 2 is report 3/],
      [[], /it ended with OK/],
      [[broken], /it ended with UNAVAILABLE/],
      // That it breaks behind reports says nothing about them.
      [[message([1, 2]), broken], /kept/],
      [[message([1, 3]), broken], /in the place of report 2 is report 3/],
      // A quiet stream has nothing more to say.
      [[message([]), message([2])], /kept/],
      // A bounded look: reports up to the thousandth are looked at, and those of the same message.
      [[message(upTo(999)), message([1_001])], /in the place of report 1000/],
      [[message(upTo(1_000)), message([1_002])], /kept/],
      [[message(upTo(500)), message(upTo(500, 501)), message([1_002])], /kept/],
    ] as const) {
      const { open, opened } = stream(script);
      assert.match(await verdict(denseFromFirst('a stream', open, 10_000)), expected);
      assert.deepEqual(opened, [0n]);
    }
  });

  it('a stream from beyond its last report brings nothing, and says where its last report is', async () => {
    const beyond = 2n ** 52n;
    for (const [script, expected] of [
      [[message([], 7)], /kept/],
      [[message([], 0)], /kept/],
      [[message([], beyond - 1n)], /kept/],
      [[message([], beyond)], /it states/],
      [[message([], beyond + 1n)], /it states/],
      [[message([beyond + 1n], 7)], /it brought reports/],
      [[message([1], 1)], /it brought reports/],
      [[], /it ended with OK/],
      [[broken], /it ended with UNAVAILABLE/],
    ] as const) {
      const { open, opened } = stream(script);
      assert.match(await verdict(statesItsLast('a stream', open, 10_000)), expected);
      assert.deepEqual(opened, [beyond]);
    }
  });

  it('a stream states no later number than the last report that it sent, in each of its first messages', async () => {
    for (const [script, expected] of [
      [[message([], 0)], /kept/],
      [[], /kept/],
      [[broken], /kept/],
      [[message([1, 2], 2), message([], 2), message([3], 3)], /kept/],
      [[message([1, 2], 1)], /kept/],
      [[message([], 1)], /it states 1 after report 0/],
      [[message([1, 2], 3), message([3], 3)], /it states 3 after report 2/],
      [[message([1, 2], 2), message([], 3)], /it states 3 after report 2/],
      [[message([1], 1), message([2], 2), message([], 3)], /it states 3 after report 2/],
      [[message([2, 1], 2)], /kept/],
      [[message([1], 2), message([2], 2), message([3], 3)], /it states 2 after report 1/],
      [[message([1], 1), message([2], 2), message([3], 3), message([], 9)], /kept/],
    ] as const) {
      const { open, opened } = stream(script);
      assert.match(await verdict(statesNoMoreThanSent('a stream', open)), expected);
      assert.deepEqual(opened, [0n]);
    }
  });

  it('each kind of reports is looked at in the stream of its own', async () => {
    for (const [checks, prefix, opens] of [
      [streamChecks, 'stream', 'openReports'],
      [applicationStreamChecks, 'application-stream', 'openApplicationReports'],
      [withdrawalStreamChecks, 'withdrawal-stream', 'openWithdrawalReports'],
    ] as const) {
      for (const [id, wrong] of [
        [`${prefix}-from-first`, message([2], 2)],
        [`${prefix}-beyond-last`, message([1], 1)],
        [`${prefix}-last-number`, message([], 1)],
      ] as const) {
        const is = async (each: string, script: Stream) => {
          const session = Object.assign(scriptedSession({ answers: {} }), { [each]: stream(script).open });
          return (await verdictOf(checks, id, session)).is;
        };
        assert.equal(await is(opens, [message([], 0)]), 'kept', id);
        assert.equal(await is(opens, [wrong]), 'breach', id);
      }
    }
  });
});

describe('the silence of a stream, as broker-check sees it', () => {
  const [silenceMs, quietMs] = [1_000, 400];

  /** The verdict of a check about a stream with messages at these times. It is 10,000 ms. */
  async function silent({ mock }: TestContext, checks: Asked, id: string, arrivals: readonly (readonly number[])[]) {
    mock.method(performance, 'now', () => 10_000);
    const follower = {
      arrivals: arrivals.map((each) => each.map((at) => ({ at }))),
      until: async (holds: () => boolean) => holds(),
      shown: () => ({}),
    };
    const waits = { silenceMs, quietMs };
    const session = { settings: { waits }, follower, applicationFollower: follower, withdrawalFollower: follower };
    const { is } = await verdictOf(checks, id, session as never);
    mock.restoreAll();
    return is;
  }

  it('the silence of a stream may be a millisecond shorter than the one after which it counts as dead', async (context) => {
    const every = (ms: number) => [
      Array.from({ length: Math.ceil(10_000 / ms) + 1 }, (_, at) => 10_000 - at * ms).reverse(),
    ];
    for (const [checks, id] of [
      [streamChecks, 'stream-alive'],
      [applicationStreamChecks, 'application-stream-alive'],
      [withdrawalStreamChecks, 'withdrawal-stream-alive'],
    ] as const) {
      assert.equal(await silent(context, checks, id, every(silenceMs - 1)), 'kept', id);
      assert.equal(await silent(context, checks, id, every(silenceMs)), 'breach', id);
      assert.equal(
        await silent(context, checks, id, [
          [1_000, 2_500],
          [8_400, 9_200, 9_995],
        ]),
        'breach',
        `${id}: before`,
      );
      assert.equal(await silent(context, checks, id, [[1_000], []]), 'breach', `${id}: no message`);
    }
    for (const [ms, expected] of [
      [quietMs, 'kept'],
      [quietMs + 1, 'breach'],
      [silenceMs - 1, 'breach'],
      [silenceMs, 'not run'],
    ] as const) {
      assert.equal(await silent(context, streamChecks, 'stream-every-second', every(ms)), expected, `${ms}`);
    }
  });
});

describe('several streams of reports, as broker-check sees them', () => {
  type Case = CheckCase<RightBroker>;
  /** An adapter whose streams after the one that is followed are changed. */
  const openings =
    (change: (after: bigint, opened: number, messages: Asked, nth: number) => Asked) =>
    (session: Asked, right: RightBroker): void => {
      let opened = 0;
      for (const id of ['one', 'two']) right.orders.add({ clientOrderId: id, kind: ReportKind.ACCEPTED });
      const openReports = (after: bigint, signal: AbortSignal) => {
        const number = opened;
        opened += 1;
        return right.orders.open((each, nth) => change(after, number, each, nth))(after, signal);
      };
      Object.assign(session, { openReports });
      session.follow(0n);
    };
  const same = (_: bigint, __: number, each: Asked) => each;
  const waits = { settleMs: 150 };

  async function holds(
    id: string,
    expected: Case[1],
    change: Parameters<typeof openings>[0] = same,
    answers: Script = {},
  ) {
    const check = streamChecks.filter((each) => each.id === id);
    await holdCases(check, rightBroker, [[id, expected, answers, { waits }]], openings(change));
  }

  it('a stream from any number has the next report first, and each report as it was before', async () => {
    const id = 'stream-any-position';
    await holds(id, 'kept');
    await holds(id, 'not run', same, { submitOrder: ended(status.UNAVAILABLE), lookUpOrder: {} });
    for (const wrong of [1, 2, 3]) {
      const only = (change: (each: Asked) => Asked) => (_: bigint, opened: number, each: Asked) =>
        opened === wrong ? change(each) : each;
      await holds(
        id,
        'breach',
        only((each) => ({ ...each, reports: each.reports.slice(1) })),
      );
      await holds(id, 'breach', (after, opened, each) =>
        opened === wrong ? { ...each, reports: [{ ...each.reports[0], number: after }, ...each.reports] } : each,
      );
      await holds(
        id,
        'breach',
        only((each) => ({ ...each, reports: each.reports.map((one: Asked) => ({ ...one, exchangeOrderId: 'X' })) })),
      );
      await holds(
        id,
        'breach',
        only(() => ended(status.OUT_OF_RANGE)),
      );
    }
  });

  it('a new report comes in each of several streams that are open at the same time', async (context) => {
    const id = 'stream-several';
    await holds(id, 'kept');
    await holds(id, 'not run', same, { submitOrder: ended(status.UNAVAILABLE) });
    for (const wrong of [1, 3]) {
      const without = (_: bigint, opened: number, each: Asked, nth: number) =>
        opened === wrong && nth > 0 ? { ...each, reports: [] } : each;
      await holds(id, 'breach', without);
      await passTime(context, async () => {
        await holds(id, 'breach', (_, opened, each) => (opened === wrong ? ended(status.OUT_OF_RANGE) : each));
        return true;
      });
    }
  });
});
