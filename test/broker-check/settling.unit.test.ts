/** The checks of orders whose answers were lost, with an adapter that the test makes up. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Breach, NotRun } from '../../src/broker-check/check.ts';
import {
  answersKept,
  doubtsSettle,
  inDoubt,
  refusalsHold,
  sentDuring,
  unknownHonest,
} from '../../src/broker-check/checks/settling.ts';
import { lastSubmission, listedAfter, submissionChecks } from '../../src/broker-check/checks/submissions.ts';
import type { CheckSession, SentOrder } from '../../src/broker-check/session.ts';
import { type Report, ReportKind, ReportSchema } from '../../src/gen/marina/broker/v1/orders_pb.ts';
import { passTime } from '../support/passing-time.ts';

const exchange = { call: 'a call', request: {}, status: 'OK', tookMs: 1 };
const report = create(ReportSchema, { number: 4n, clientOrderId: 'o1', kind: ReportKind.ACCEPTED });

function sent(code: status, answer?: object): SentOrder {
  const request = { notAfter: timestampFromMs(0) };
  return { id: 'o1', request, outcome: { code, answer, exchange } } as unknown as SentOrder;
}

interface Adapter {
  /** The finds of the look-ups in turn, the last one for ever; undefined: it has no answer. */
  readonly found: readonly (boolean | undefined)[];
  readonly reports?: readonly Report[];
  readonly streamed?: readonly Report[];
}

function begin({ found, reports = [report], streamed = [] }: Adapter): CheckSession {
  let looks = 0;
  const look = () => {
    const isFound = found[Math.min(looks, found.length - 1)];
    looks += 1;
    return isFound;
  };
  const session = {
    settings: { waits: { hookMs: 1_000, skewMs: 0, settleMs: 1 } },
    follower: { shown: () => exchange },
    streamed: () => streamed,
    streamedReport: async () => streamed[0],
    lookUp: async () => {
      const isFound = look();
      return { answer: isFound === undefined ? undefined : { found: isFound, reports }, exchange };
    },
    recorded: async () => ({ found: look() === true, reports, exchanges: [exchange] }),
  };
  return session as unknown as CheckSession;
}

/** The verdict of a check. */
async function verdict(checked: Promise<void>): Promise<string> {
  try {
    await checked;
    return 'kept';
  } catch (error) {
    if (error instanceof Breach) return 'breach';
    if (error instanceof NotRun) return 'not run';
    throw error;
  }
}

describe('an order that broker-check sent in a storm', () => {
  const answered = sent(status.OK, { report });
  const refused = sent(status.FAILED_PRECONDITION);
  const lost = sent(status.UNAVAILABLE);

  it('an order that broker-check sent in a storm is in doubt unless it was answered with a report or refused for good', () => {
    const all = [
      answered,
      refused,
      lost,
      sent(status.OK, {}),
      sent(status.DEADLINE_EXCEEDED),
      sent(status.ALREADY_EXISTS),
    ];
    assert.deepEqual(inDoubt(all), all.slice(2));
  });

  it('an order that broker-check sent in a storm is in the record with the very report that answered it', async () => {
    const other = create(ReportSchema, { ...report, exchangeOrderId: 'another' });
    for (const [adapter, expected] of [
      [{ found: [true] }, 'kept'],
      [{ found: [false] }, 'breach'],
      [{ found: [true], reports: [] }, 'breach'],
      [{ found: [true], reports: [other] }, 'breach'],
    ] as const) {
      assert.equal(await verdict(answersKept(begin(adapter), [refused, lost, answered])), expected);
      assert.equal(await verdict(answersKept(begin(adapter), [refused, lost])), 'kept');
    }
  });

  it('an order that broker-check sent in a storm is nowhere if it was refused for good', async () => {
    for (const [adapter, expected] of [
      [{ found: [false] }, 'kept'],
      [{ found: [true] }, 'breach'],
      [{ found: [false], streamed: [report] }, 'breach'],
    ] as const) {
      assert.equal(await verdict(refusalsHold(begin(adapter), [answered, lost, refused])), expected);
      assert.equal(await verdict(refusalsHold(begin(adapter), [answered, lost])), 'kept');
    }
  });

  it('an order that broker-check sent in a storm is not said to be unknown while it is in doubt, if the adapter has it afterwards', async (context) => {
    for (const [first, adapter, expected] of [
      [false, { found: [false] }, 'kept'],
      [false, { found: [true] }, 'breach'],
      [false, { found: [undefined, undefined, true] }, 'breach'],
      [false, { found: [false], streamed: [report] }, 'breach'],
      [false, { found: [undefined] }, 'not run'],
      [true, { found: [true] }, 'kept'],
      [undefined, { found: [true] }, 'kept'],
    ] as const) {
      const lookUp = { answer: first === undefined ? undefined : { found: first }, exchange } as never;
      const checked = () => verdict(unknownHonest(begin(adapter), [{ sent: lost, lookUp }]));
      assert.equal(await passTime(context, checked), expected, `${first}`);
    }
  });

  it('an order that broker-check sent in a storm settles for good: the look-up says one thing from then on, and the stream says the same', async (context) => {
    const settles = (adapter: Adapter, all: readonly SentOrder[]) =>
      passTime(context, () => verdict(doubtsSettle(begin(adapter), all)));
    for (const [adapter, expected] of [
      [{ found: [false] }, 'kept'],
      [{ found: [true], streamed: [report] }, 'kept'],
      [{ found: [false, false, true], streamed: [report] }, 'breach'],
      [{ found: [true, true, false], streamed: [report] }, 'breach'],
      [{ found: [true] }, 'breach'],
      [{ found: [false], streamed: [report] }, 'breach'],
    ] as const) {
      assert.equal(await settles(adapter, [answered, refused, lost]), expected, JSON.stringify(adapter.found));
      assert.equal(await settles(adapter, [answered, refused]), 'kept');
    }
  });

  it('an order that broker-check sent in a storm is sent as long as the hook works, and is no verdict if that fails', async () => {
    let count = 0;
    const session = {
      newOrder: async () => ({}),
      send: async () => {
        count += 1;
        return lost;
      },
    } as unknown as CheckSession;
    const during = await sentDuring(session, async () => {
      while (count < 1) await turn();
    });
    assert.equal(during.length, count);
    // A send that is under way when the hook ends counts too.
    let isSent = false;
    const slow = {
      newOrder: async () => ({}),
      send: async () => {
        for (let turns = 0; turns < 5; turns += 1) await turn();
        isSent = true;
        return lost;
      },
    } as unknown as CheckSession;
    assert.deepEqual([await sentDuring(slow, async () => {}), isSent], [[lost], true]);
    await assert.rejects(
      sentDuring(session, async () => assert.fail('the command failed')),
      NotRun,
    );
  });
});

describe('the list of submissions', () => {
  /** An adapter with so many submissions; `fault` changes a page. */
  const list = (count: number, fault = (page: { number: bigint }[], _from: bigint) => page) => {
    let calls = 0;
    const session = {
      call: async (_: string, __: string, { afterNumber, limit }: { afterNumber: bigint; limit: number }) => {
        calls += 1;
        const numbers = Array.from({ length: count }, (_, at) => ({ number: BigInt(at + 1), clientId: `o${at + 1}` }));
        const page = numbers.filter(({ number }) => number > afterNumber).slice(0, limit);
        return { code: status.OK, answer: { submissions: fault(page, afterNumber) }, exchange };
      },
    };
    return { session: session as unknown as CheckSession, calls: () => calls };
  };

  it('the list of submissions has a last number that is found in few calls, however many there are', async () => {
    for (const count of [...Array(20).keys(), 1_000, 1_023, 1_024, 1_025]) {
      const { session, calls } = list(count);
      assert.equal(await lastSubmission(session), BigInt(count));
      assert.ok(calls() <= 24, `${calls()} calls for ${count}`);
    }
  });

  it('the list of submissions is read behind a number to its end, page by page', async () => {
    for (const [count, after] of [
      [5, 0n],
      [1_000, 0n],
      [1_001, 0n],
      [2_000, 0n],
      [2_500, 499n],
      [5, 5n],
    ] as const) {
      const { submissions } = await listedAfter(list(count).session, after);
      assert.deepEqual(submissions.map(({ number }) => number).slice(0, 1), count > Number(after) ? [after + 1n] : []);
      assert.equal(submissions.length, count - Number(after));
    }
  });

  it('the list of submissions has each number once, in pages that are full until the last one', async () => {
    const dense = submissionChecks.find(({ id }) => id === 'submissions-dense') ?? assert.fail();
    const verdictOf = (count: number, fault?: Parameters<typeof list>[1]) =>
      verdict(dense.run(list(count, fault).session));
    for (const count of [0, 1, 5, 30]) assert.equal(await verdictOf(count), 'kept', `${count}`);
    assert.equal(await verdictOf(30, (page) => page.filter(({ number }) => number !== 30n)), 'kept');
    assert.equal(await verdictOf(30, (page) => page.filter(({ number }) => number !== 12n)), 'breach');
    assert.equal(
      await verdictOf(30, (page) => (page.length > 5 ? [...page, page[0] ?? assert.fail()] : page)),
      'breach',
    );
    const twice = (page: { number: bigint }[]) =>
      page.map((each) => (each.number === 12n ? { ...each, number: 13n } : each));
    assert.equal(await verdictOf(30, twice), 'breach');
    // A page that is one short although more follows.
    assert.equal(
      await verdictOf(30, (page, from) => (from === 0n && page.length === 10 ? page.slice(0, 9) : page)),
      'breach',
    );
    assert.equal(await verdictOf(30, (page, from) => (from === 27n ? page.slice(0, 1) : page)), 'breach');
  });
});
