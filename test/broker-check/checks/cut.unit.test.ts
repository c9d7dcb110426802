/** The checks of an adapter that was cut off from its exchange, with what the test makes up of that time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { cutChecks } from '../../../src/broker-check/checks/cut.ts';
import { CancelOutcome, ReportKind, ReportSchema } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { passTime } from '../../support/passing-time.ts';
import { ReportList, rightBroker } from '../../support/right-broker.ts';
import {
  type Asked,
  ended,
  type Script,
  scriptedSession,
  type Verdict,
  verdictOf,
} from '../../support/scripted-adapter.ts';

const { ALREADY_EXISTS, DEADLINE_EXCEEDED, FAILED_PRECONDITION, NOT_FOUND, OK, UNAVAILABLE } = status;
const { ACCEPTED, CANCELLED, REJECTED } = ReportKind;

const recorded = (code: status) => ({ call: 'a call', request: {}, status: status[code], tookMs: 1 });
const endedWith = (code: status) => ({ code, answer: undefined, exchange: recorded(code) });
const answeredWith = (answer: object) => ({ code: OK, answer, exchange: recorded(OK) });
const accepted = answeredWith({ report: { number: 8n, kind: ACCEPTED } });

/** An order that was sent when its time was over already. */
const sent = (id: string, outcome: object) => ({
  id,
  request: { clientOrderId: id, notAfter: timestampFromMs(0) },
  outcome,
});
const lost = sent('lost', endedWith(UNAVAILABLE));
const refused = sent('refused', endedWith(FAILED_PRECONDITION));

/** The answers of an adapter that keeps each promise, while it was cut off and afterwards. */
const kept = {
  open: { ...sent('open', accepted), report: { number: 8n } },
  whileCutting: [sent('first', accepted), lost],
  whileCut: [refused, sent('lost too', endedWith(UNAVAILABLE))],
  copy: sent('open', endedWith(ALREADY_EXISTS)),
  lookUp: answeredWith({ found: true, reports: [{ number: 7n }, { number: 8n }] }),
  looked: [{ sent: lost, lookUp: endedWith(UNAVAILABLE) }],
  cancel: endedWith(UNAVAILABLE),
  ...{ messages: 1, heldMs: 2_000, back: true, hookMs: 1_000, last: sent('last', accepted) },
};

type Cut = { [Name in keyof typeof kept]?: unknown };

/** The orders that the adapter has when the exchange is back. */
const has = (...ids: readonly string[]): Script => ({
  lookUpOrder: ({ clientOrderId }: Asked) => ({ found: ids.includes(clientOrderId) }),
});
const right: Script = {
  ...has('first', 'open'),
  submitOrder: ended(ALREADY_EXISTS),
  cancelOrder: { outcome: CancelOutcome.CANCELLED, report: { kind: CANCELLED } },
};

describe('an adapter that was cut off from its exchange, as broker-check sees it', () => {
  /** The verdict about an adapter that was cut off like this, and answers like that when the exchange is back. */
  async function verdictAbout(id: string, cut: Cut, answers: Script, streamed: readonly string[]): Promise<Verdict> {
    const session = scriptedSession({ answers: { ...right, ...answers } });
    Object.assign(session, {
      openReports: new ReportList(ReportSchema).open(),
      once: async () => ({ ...kept, ...cut }),
      streamed: (order: string) => streamed.filter((each) => each === order).map(() => create(ReportSchema)),
      streamedReport: async (order: string) => (streamed.includes(order) ? {} : undefined),
    });
    session.follow(0n);
    const found = await verdictOf(cutChecks, id, session);
    await session.close();
    return found;
  }

  const late = [refused, sent('refused too', endedWith(FAILED_PRECONDITION))];
  const cases: [id: string, expected: Verdict['is'], cut?: Cut, answers?: Script, streamed?: string[]][] = [
    ['cut-not-accepted', 'kept'],
    ['cut-not-accepted', 'kept', { whileCut: [sent('o', answeredWith({ report: { kind: REJECTED } }))] }],
    ['cut-not-accepted', 'breach', { whileCut: [sent('o', accepted), lost, lost] }],
    ['cut-not-accepted', 'breach', { whileCut: [lost, lost, sent('o', accepted)] }],

    ['cut-calls-end', 'kept'],
    ['cut-calls-end', 'breach', { whileCut: [sent('o', endedWith(DEADLINE_EXCEEDED)), lost] }],
    ['cut-calls-end', 'breach', { whileCut: [lost, sent('o', endedWith(DEADLINE_EXCEEDED))] }],
    ['cut-calls-end', 'breach', { lookUp: endedWith(DEADLINE_EXCEEDED) }],
    ['cut-calls-end', 'breach', { cancel: endedWith(DEADLINE_EXCEEDED) }],

    ['cut-once', 'kept'],
    ['cut-once', 'kept', { copy: sent('open', endedWith(UNAVAILABLE)) }],
    ['cut-once', 'breach', { copy: refused }],

    ['cut-look-up-honest', 'kept'],
    ['cut-look-up-honest', 'kept', { lookUp: endedWith(UNAVAILABLE) }],
    ['cut-look-up-honest', 'breach', { lookUp: answeredWith({ found: false, reports: [] }) }],
    ['cut-look-up-honest', 'breach', { lookUp: answeredWith({ found: true, reports: [{ number: 7n }] }) }],
    ['cut-look-up-honest', 'breach', { lookUp: answeredWith({ found: false, reports: [{ number: 8n }] }) }],

    ['cut-cancel-honest', 'kept'],
    ['cut-cancel-honest', 'breach', { cancel: answeredWith({ outcome: CancelOutcome.CANCELLED }) }],
    ['cut-cancel-honest', 'breach', { cancel: answeredWith({ outcome: CancelOutcome.TOO_LATE }) }],

    ['cut-stream-alive', 'kept'],
    ['cut-stream-alive', 'breach', { messages: 0 }],

    ['cut-comes-back', 'kept'],
    ['cut-comes-back', 'breach', { back: false }],

    ['cut-refusals-hold', 'kept'],
    ['cut-refusals-hold', 'kept', {}, has('lost', 'lost too')],
    // It refused an order for good, in the moment of the cut or after it, and has it later.
    ...['refused', 'refused too'].flatMap((order): typeof cases => [
      ['cut-refusals-hold', 'breach', { whileCutting: late, whileCut: [] }, has(order)],
      ['cut-refusals-hold', 'breach', { whileCutting: [], whileCut: late }, has(order)],
      ['cut-refusals-hold', 'breach', { whileCutting: [], whileCut: late }, {}, [order]],
    ]),
    ['cut-refusals-hold', 'not run', {}, { lookUpOrder: ended(UNAVAILABLE) }],

    ['cut-doubts-settle', 'kept'],
    ['cut-doubts-settle', 'kept', {}, has('lost', 'lost too'), ['lost', 'lost too']],
    ['cut-doubts-settle', 'not run', { back: false }],
    ...['lost', 'lost too'].flatMap((order): typeof cases => [
      ['cut-doubts-settle', 'breach', {}, has(order)],
      ['cut-doubts-settle', 'breach', {}, {}, [order]],
    ]),
    ['cut-doubts-settle', 'breach', {}, { lookUpOrder: ended(UNAVAILABLE) }],

    ['cut-unknown-honest', 'kept'],
    ['cut-unknown-honest', 'kept', {}, has('lost')],
    ['cut-unknown-honest', 'not run', { back: false }],
    ['cut-unknown-honest', 'breach', { looked: [{ sent: lost, lookUp: answeredWith({ found: false }) }] }, has('lost')],
    ['cut-unknown-honest', 'kept', { looked: [{ sent: lost, lookUp: answeredWith({ found: false }) }] }],

    ['cut-once-after-refusal', 'kept'],
    ['cut-once-after-refusal', 'kept', { whileCut: [lost] }, { submitOrder: accepted.answer }],
    ['cut-once-after-refusal', 'not run', { back: false }],
    ['cut-once-after-refusal', 'breach', {}, { submitOrder: accepted.answer }],
    ['cut-once-after-refusal', 'breach', {}, { submitOrder: ended(FAILED_PRECONDITION) }],
    ['cut-once-after-refusal', 'breach', {}, has('refused')],
    ['cut-once-after-refusal', 'breach', { whileCutting: [lost, refused], whileCut: [] }, has('refused')],

    ['cut-open-order', 'kept'],
    ['cut-open-order', 'not run', { back: false }],
    ['cut-open-order', 'breach', {}, { cancelOrder: ended(NOT_FOUND) }],
    ['cut-open-order', 'breach', {}, { cancelOrder: { outcome: CancelOutcome.TOO_LATE } }],
    [
      'cut-open-order',
      'breach',
      {},
      { cancelOrder: ({ clientOrderId }: Asked) => (clientOrderId === 'open' ? {} : kept) },
    ],
  ];

  it('an adapter that was cut off accepts nothing alone, denies nothing, and settles everything when the exchange is back', async (context) => {
    for (const [at, [id, expected, cut = {}, answers = {}, streamed = []]] of cases.entries()) {
      const found = await passTime(context, () => verdictAbout(id, cut, answers, streamed));
      assert.equal(found?.is, expected, `${id}, case ${at}: ${found?.why}`);
      if (expected === 'breach') assert.ok(found?.shown.length ?? 0, `${id}, case ${at}, shows no call`);
    }
    const without = cutChecks.map(({ id }) => id).filter((id) => !cases.some(([of]) => of === id));
    assert.deepEqual(without, [], 'these checks have no case');
  });
});

describe('a cut that broker-check makes', () => {
  /** Cuts an adapter off that is told so, and returns the verdict of each check, in turn. */
  async function cutWith(fails: { cut?: boolean; mend?: boolean; staysAway?: boolean } = {}) {
    const right = rightBroker();
    const steps: string[] = [];
    let isAway = false;
    const session = scriptedSession({
      waits: { settleMs: 1_000, hookMs: 1_000, quietMs: 500, skewMs: 0 },
      settings: {
        hooks: {
          cut: async () => {
            steps.push('cut');
            isAway = true;
            if (fails.cut) throw new Error('the command failed');
          },
          mend: async () => {
            steps.push('mend');
            isAway = fails.staysAway ?? false;
            if (fails.mend) throw new Error('the command failed');
          },
        },
      },
      answers: {
        ...right.answers,
        submitOrder: (request: Asked) => {
          const isKnown = right.orders.reports.some(({ clientOrderId }) => clientOrderId === request.clientOrderId);
          return isAway && !isKnown ? ended(UNAVAILABLE) : right.answers.submitOrder(request);
        },
        cancelOrder: (request: Asked) => (isAway ? ended(UNAVAILABLE) : right.answers.cancelOrder(request)),
      },
    });
    Object.assign(session, { openReports: right.orders.open() });
    session.follow(0n);
    const verdicts: Record<string, Verdict> = {};
    for (const { id } of cutChecks) verdicts[id] = await verdictOf(cutChecks, id, session);
    const { isDisturbed, calls, sends } = session;
    await session.close();
    return { verdicts, steps, isDisturbed, calls, sends };
  }

  it('a cut that broker-check makes is made once for all checks, and is over afterwards', async (context) => {
    const cut = (await passTime(context, () => cutWith(), { date: true })) ?? assert.fail('it did not end');
    const broken = Object.entries(cut.verdicts).filter(([, { is }]) => is !== 'kept');
    // The stream of the adapter has no messages of its own.
    assert.deepEqual(
      broken.map(([id]) => id),
      ['cut-stream-alive'],
    );
    assert.deepEqual(cut.steps, ['cut', 'mend']);
    assert.equal(cut.isDisturbed, false);
    assert.deepEqual([cut.calls.at(0)?.isDisturbed, cut.calls.at(-1)?.isDisturbed], [false, false]);
    assert.ok(cut.calls.some(({ isDisturbed }) => isDisturbed));
    const [open] = cut.sends;
    const copy = cut.sends.findLast(({ id }) => id === open?.id);
    assert.deepEqual({ ...copy?.request, notAfter: undefined }, { ...open?.request, notAfter: undefined });
  });

  it('a cut that broker-check cannot make or mend is no verdict about the adapter', async (context) => {
    for (const fails of [{ cut: true }, { mend: true }]) {
      const cut = (await passTime(context, () => cutWith(fails), { date: true })) ?? assert.fail('it did not end');
      assert.deepEqual(new Set(Object.values(cut.verdicts).map(({ is }) => is)), new Set(['not run']));
      assert.equal(cut.isDisturbed, false, 'the calls of later checks count again');
    }
  });

  it('an adapter that stays away after a cut is found, and is not judged by what it would do afterwards', async (context) => {
    const cut =
      (await passTime(context, () => cutWith({ staysAway: true }), { date: true })) ?? assert.fail('it did not end');
    const { 'cut-comes-back': back, ...others } = cut.verdicts;
    assert.equal(back?.is, 'breach');
    assert.equal(back?.shown.length, 1, 'the last send is shown');
    for (const id of ['cut-doubts-settle', 'cut-unknown-honest', 'cut-once-after-refusal', 'cut-open-order']) {
      assert.equal(others[id]?.is, 'not run', id);
    }
  });
});
