/** The checks of sends and cancels, with answers that the test makes up. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { Breach, type Check, NotOffered, NotRun } from '../../src/broker-check/check.ts';
import { cancelChecks } from '../../src/broker-check/checks/cancels.ts';
import { orderChecks } from '../../src/broker-check/checks/orders.ts';
import type { CheckSession } from '../../src/broker-check/session.ts';
import { CancelOutcome, type Report, ReportKind, ReportSchema } from '../../src/gen/marina/broker/v1/orders_pb.ts';

const exchange = { call: 'a call', request: {}, status: 'a status', tookMs: 1 };
const { ACCEPTED, CANCELLED, REJECTED, TRADE } = ReportKind;

function report(number: bigint, kind: ReportKind, more: object = {}): Report {
  return create(ReportSchema, { number, clientOrderId: 'o1', kind, at: timestampFromMs(5), ...more });
}

const taken = (answered: Report | undefined) => ({ code: status.OK, answer: { report: answered }, exchange });
const ended = (code: status) => ({ code, answer: undefined, exchange });
type Outcome = ReturnType<typeof taken> | ReturnType<typeof ended>;

async function found(all: readonly Check[], id: string, session: object): Promise<string> {
  const check = all.find((each) => each.id === id) ?? assert.fail(`there is no check ${id}`);
  try {
    await check.run(session as CheckSession);
    return 'kept';
  } catch (error) {
    if (error instanceof Breach) return 'breach';
    if (error instanceof NotOffered) return 'not offered';
    if (error instanceof NotRun) return 'not run';
    throw error;
  }
}

describe('a cancel, as broker-check sees it', () => {
  const cancelled = report(2n, CANCELLED);
  const done = (answered: Report | undefined, outcome = CancelOutcome.CANCELLED) => {
    return { code: status.OK, answer: { outcome, report: answered }, exchange };
  };
  const tooLate = done(undefined, CancelOutcome.TOO_LATE);

  interface Adapter {
    /** The answers to cancels in turn, the last one for ever. */
    readonly answers: readonly object[];
    readonly recorded?: readonly Report[];
    readonly streamed?: Report | undefined;
    readonly placed?: Report;
  }

  const verdict = (
    id: string,
    { answers, recorded = [cancelled], placed = report(1n, ACCEPTED), ...more }: Adapter,
  ) => {
    let calls = 0;
    const streamed = 'streamed' in more ? more.streamed : cancelled;
    return found(cancelChecks, id, {
      settings: { quantity: 1n, waits: { settleMs: 1 } },
      follower: { until: async (holds: () => boolean) => holds(), shown: () => exchange },
      place: async () => ({ id: 'o1', report: placed, outcome: taken(placed) }),
      once: (_: string, work: () => Promise<unknown>) => work(),
      newId: () => 'o9',
      streamed: () => [report(1n, TRADE, { quantity: 1n, priceKobo: 1n })],
      recorded: async () => ({ reports: recorded, found: true, exchanges: [exchange] }),
      streamedReport: async () => streamed,
      call: async () => {
        calls += 1;
        return answers[Math.min(calls, answers.length) - 1];
      },
    });
  };

  const other = report(2n, CANCELLED, { exchangeOrderId: 'another' });
  const cases: [check: string, expected: string, adapter: Adapter][] = [
    ['cancel-open', 'kept', { answers: [done(cancelled)] }],
    ['cancel-open', 'breach', { answers: [ended(status.UNAVAILABLE)] }],
    ['cancel-open', 'breach', { answers: [done(cancelled, CancelOutcome.TOO_LATE)] }],
    ['cancel-open', 'breach', { answers: [done(undefined)] }],
    ['cancel-open', 'breach', { answers: [done(report(2n, ACCEPTED))] }],
    ['cancel-open', 'breach', { answers: [done(report(2n, CANCELLED, { clientOrderId: 'o2' }))] }],
    ['cancel-open', 'breach', { answers: [done(report(0n, CANCELLED))] }],
    ['cancel-recorded', 'kept', { answers: [done(cancelled)] }],
    ['cancel-recorded', 'not run', { answers: [ended(status.UNAVAILABLE)] }],
    ['cancel-recorded', 'breach', { answers: [done(cancelled)], recorded: [report(1n, ACCEPTED)] }],
    ['cancel-recorded', 'breach', { answers: [done(cancelled)], streamed: undefined }],
    ['cancel-recorded', 'breach', { answers: [done(cancelled)], recorded: [other] }],
    ['cancel-recorded', 'breach', { answers: [done(cancelled)], streamed: other }],
    ['cancel-again', 'kept', { answers: [done(cancelled)] }],
    ['cancel-again', 'not run', { answers: [ended(status.UNAVAILABLE)] }],
    ['cancel-again', 'breach', { answers: [done(cancelled), ended(status.NOT_FOUND)] }],
    ['cancel-again', 'breach', { answers: [done(cancelled), tooLate] }],
    ['cancel-again', 'breach', { answers: [done(cancelled), done(undefined)] }],
    ['cancel-again', 'breach', { answers: [done(cancelled), done(report(3n, CANCELLED))] }],
    ['cancel-at-once', 'kept', { answers: [ended(status.ABORTED), done(cancelled)] }],
    ['cancel-at-once', 'breach', { answers: [done(cancelled), ended(status.ABORTED), done(report(3n, CANCELLED))] }],
    ['cancel-at-once-answered', 'kept', { answers: [done(cancelled)] }],
    ['cancel-at-once-answered', 'breach', { answers: [ended(status.ABORTED), done(cancelled)] }],
    ['cancel-filled', 'kept', { answers: [tooLate] }],
    ['cancel-filled', 'breach', { answers: [done(cancelled)] }],
    ['cancel-rejected', 'kept', { answers: [tooLate], placed: report(1n, REJECTED) }],
    ['cancel-rejected', 'breach', { answers: [done(cancelled)], placed: report(1n, REJECTED) }],
    ['cancel-rejected', 'not run', { answers: [tooLate] }],
    ['cancel-unknown-no-outcome', 'kept', { answers: [ended(status.UNAVAILABLE)] }],
    ['cancel-unknown-no-outcome', 'breach', { answers: [tooLate] }],
    ['cancel-unknown-not-found', 'kept', { answers: [ended(status.NOT_FOUND)] }],
    ['cancel-unknown-not-found', 'breach', { answers: [ended(status.UNAVAILABLE)] }],
    ['cancel-unknown-not-found', 'not run', { answers: [tooLate] }],
  ];

  it('a cancel, as broker-check sees it, has one outcome and one report, the same in each place', async () => {
    for (const [at, [id, expected, adapter]] of cases.entries()) {
      assert.equal(await verdict(id, adapter), expected, `${id}, case ${at}`);
    }
    assert.deepEqual(
      [...new Set(cases.map(([id]) => id))],
      cancelChecks.map(({ id }) => id),
      'each check has its cases',
    );
  });
});

describe('a send, as broker-check sees it', () => {
  interface Adapter {
    /** The answers to sends in turn, the last one for ever. */
    readonly answers: readonly Outcome[];
    readonly isFound?: boolean;
    readonly honours?: boolean;
    readonly placed?: Report;
    readonly before?: readonly object[];
  }

  const verdict = (id: string, { answers, isFound = false, honours = true, placed, before = [] }: Adapter) => {
    let sends = 0;
    let ids = 0;
    const sent: object[] = [...before];
    return found(orderChecks, id, {
      sends: sent,
      settings: { quantity: 5n, waits: { skewMs: 0, settleMs: 1 } },
      once: (_: string, work: () => Promise<unknown>) => work(),
      inTime: () => undefined,
      newOrder: async (_: string, more: object) => {
        ids += 1;
        return { id: `o${ids}`, ...more };
      },
      send: async (order: { id: string }) => {
        sends += 1;
        const one = { id: order.id, request: order, outcome: answers[Math.min(sends, answers.length) - 1] };
        sent.push(one);
        return one;
      },
      place: async () => ({ id: 'o1', request: {}, report: placed ?? report(1n, ACCEPTED), outcome: taken(placed) }),
      settled: async () => {},
      recorded: async () => ({ reports: [], found: isFound, exchanges: [exchange] }),
      call: async () => ({ answer: { honoursNotAfter: honours }, exchange }),
    });
  };

  const accepted = taken(report(1n, ACCEPTED));
  const late = ended(status.FAILED_PRECONDITION);
  const again = ended(status.ALREADY_EXISTS);
  const lost = ended(status.UNAVAILABLE);
  const cases: [check: string, expected: string, adapter: Adapter][] = [
    ['orders-taken', 'kept', { answers: [accepted] }],
    ['orders-taken', 'kept', { answers: [lost, accepted] }],
    ['orders-taken', 'breach', { answers: [lost] }],
    ['orders-taken', 'breach', { answers: [taken(report(1n, REJECTED))] }],
    ['answer-is-report', 'kept', { answers: [accepted] }],
    ['answer-is-report', 'kept', { answers: [taken(report(1n, REJECTED))] }],
    ['answer-is-report', 'not run', { answers: [lost] }],
    ['answer-is-report', 'breach', { answers: [taken(undefined)] }],
    ['answer-is-report', 'breach', { answers: [taken(report(1n, TRADE))] }],
    ['answer-is-report', 'breach', { answers: [taken(report(0n, ACCEPTED))] }],
    ['answer-is-report', 'breach', { answers: [taken(report(1n, ACCEPTED, { clientOrderId: 'o2' }))] }],
    ['rejection-is-report', 'kept', { answers: [taken(report(1n, REJECTED))] }],
    ['rejection-is-report', 'breach', { answers: [lost] }],
    ['rejection-is-report', 'breach', { answers: [accepted] }],
    ['rejection-has-reason', 'kept', { answers: [], placed: report(1n, REJECTED, { rejectReason: 1 }) }],
    ['rejection-has-reason', 'breach', { answers: [], placed: report(1n, REJECTED) }],
    ['rejection-has-reason', 'not run', { answers: [] }],
    ...['once', 'once-other-fields', 'once-late', 'once-after-rejection'].flatMap((id): typeof cases => [
      [id, 'kept', { answers: [again] }],
      [id, 'breach', { answers: [accepted] }],
      [id, 'breach', { answers: [late] }],
      [id, 'breach', { answers: [lost] }],
    ]),
    ['orders-at-once', 'not run', { answers: [lost] }],
    ['orders-at-once', 'breach', { answers: [accepted] }],
    ['not-after-honoured', 'kept', { answers: [late] }],
    ['not-after-honoured', 'breach', { answers: [accepted] }],
    ['not-after-honoured', 'not offered', { answers: [accepted], honours: false }],
    ['late-never-taken', 'kept', { answers: [late] }],
    ['late-never-taken', 'breach', { answers: [late], isFound: true }],
    ['late-never-taken', 'not run', { answers: [accepted] }],
    ['once-after-refusal', 'kept', { answers: [late, again] }],
    ['once-after-refusal', 'breach', { answers: [late, accepted] }],
    ['once-after-refusal', 'breach', { answers: [late, late] }],
    ['once-after-refusal', 'breach', { answers: [late, again], isFound: true }],
    ['once-after-refusal', 'not run', { answers: [accepted] }],
    ['status-means-not-taken', 'kept', { answers: [lost] }],
    ['status-means-not-taken', 'breach', { answers: [accepted, accepted, accepted, accepted, lost], isFound: true }],
    ...[accepted, late, again, ended(status.DEADLINE_EXCEEDED)].map((outcome): (typeof cases)[number] => {
      return ['status-means-not-taken', 'kept', { answers: [outcome], isFound: true }];
    }),
    // The answer to a repetition says nothing about the first send.
    [
      'status-means-not-taken',
      'kept',
      { answers: [accepted], isFound: true, before: [accepted, lost].map((outcome) => ({ id: 'o0', outcome })) },
    ],
    ['nonsense-not-accepted', 'kept', { answers: [lost, taken(report(1n, REJECTED))] }],
    ['nonsense-not-accepted', 'breach', { answers: [lost, lost, lost, lost, accepted] }],
    ['failed-precondition-for-late-only', 'kept', { answers: [ended(status.INVALID_ARGUMENT)] }],
    ['failed-precondition-for-late-only', 'breach', { answers: [late] }],
  ];

  it('a send, as broker-check sees it, is taken once, refused for good or in doubt, and never two of these', async () => {
    for (const [at, [id, expected, adapter]] of cases.entries()) {
      assert.equal(await verdict(id, adapter), expected, `${id}, case ${at}`);
    }
  });
});
