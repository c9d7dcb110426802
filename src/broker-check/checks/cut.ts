import { status } from '@grpc/grpc-js';
import { CancelOutcome, ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { pause } from '../../kit/worker.ts';
import { checks, expect, NotRun, needing } from '../check.ts';
import { type CheckSession, poll, type SentOrder } from '../session.ts';
import { refusedForGood } from './orders.ts';
import { doubtsSettle, inDoubt, overdue, refusalsHold, sendShort, sentDuring, unknownHonest } from './settling.ts';

const sendsWhileCut = 3;
const never = new AbortController().signal;

const cutting = needing('cut', 'account', 'rest');

/** The adapter while it is cut off from its exchange, and after that. */
export const cutChecks = checks({
  'cut-not-accepted': cutting.must(
    'While the exchange is away, no order is accepted: the adapter alone accepts nothing',
    async (session) => {
      const { whileCut } = await cutOff(session);
      for (const { outcome } of whileCut) {
        const isAccepted = outcome.answer?.report?.kind === ReportKind.ACCEPTED;
        expect(!isAccepted, 'it was accepted (or the command does not cut)', outcome.exchange);
      }
    },
  ),
  'cut-calls-end': cutting.should(
    'While the exchange is away, sends, look-ups and cancels end before their deadline',
    async (session) => {
      const { whileCut, lookUp, cancel } = await cutOff(session);
      for (const { exchange } of [...whileCut.map(({ outcome }) => outcome), lookUp, cancel]) {
        expect(exchange.status !== 'DEADLINE_EXCEEDED', `it took ${exchange.tookMs} ms`, exchange);
      }
    },
  ),
  'cut-once': cutting.must(
    'While the exchange is away, an id that was taken before is not refused with FAILED_PRECONDITION',
    async (session) => {
      const { open, copy } = await cutOff(session);
      const { exchange } = copy.outcome;
      const isRefused = copy.outcome.code === status.FAILED_PRECONDITION;
      expect(!isRefused, 'it was refused for good, and the exchange has it', open.outcome.exchange, exchange);
    },
  ),
  'cut-look-up-honest': cutting.must(
    'While the exchange is away, the look-up of an order has its reports or ends with a status, and is never "not found"',
    async (session) => {
      const { open, lookUp } = await cutOff(session);
      const { answer, exchange } = lookUp;
      const has = answer?.found && answer.reports.some(({ number }) => number === open.report.number);
      expect(answer === undefined || has === true, 'it does not have the order', open.outcome.exchange, exchange);
    },
  ),
  'cut-cancel-honest': cutting.must(
    'While the exchange is away, no cancel of an open order has an outcome',
    async (session) => {
      const { open, cancel } = await cutOff(session);
      const { answer, exchange } = cancel;
      const what = `it is ${answer && CancelOutcome[answer.outcome]}`;
      expect(answer === undefined, what, open.outcome.exchange, exchange);
    },
  ),
  'cut-stream-alive': cutting.should(
    'While the exchange is away, the stream of reports goes on with a message every second',
    async (session) => {
      const { messages, heldMs } = await cutOff(session);
      expect(messages > 0, `there was none in ${heldMs} ms`, session.follower.shown([]));
    },
  ),
  'cut-comes-back': cutting.must('When the exchange is back, orders are taken again', async (session) => {
    const { back, hookMs, last } = await cutOff(session);
    expect(back, `none was accepted within ${hookMs} ms`, ...(last ? [last.outcome.exchange] : []));
  }),
  'cut-refusals-hold': cutting.must(
    'What ended with FAILED_PRECONDITION while the exchange was away is not taken when it is back',
    async (session) => {
      const { whileCutting, whileCut } = await cutOff(session);
      await refusalsHold(session, [...whileCutting, ...whileCut]);
    },
  ),
  'cut-doubts-settle': cutting.must(
    'When the exchange is back, the look-up says for good what became of each order that had no clear answer',
    async (session) => {
      const { whileCutting, whileCut, back } = await cutOff(session);
      if (!back) throw new NotRun('the exchange did not come back');
      await doubtsSettle(session, [...whileCutting, ...whileCut]);
    },
  ),
  'cut-unknown-honest': cutting.must(
    'An order in doubt is not "not found" while the exchange is away, when it is found afterwards',
    async (session) => {
      const { looked, back } = await cutOff(session);
      if (!back) throw new NotRun('the exchange did not come back');
      await unknownHonest(session, looked);
    },
  ),
  'cut-once-after-refusal': cutting.must(
    'When the exchange is back, an id that ended with FAILED_PRECONDITION while it was away is ALREADY_EXISTS',
    async (session) => {
      const { whileCutting, whileCut, back } = await cutOff(session);
      if (!back) throw new NotRun('the exchange did not come back');
      const refused = [...whileCutting, ...whileCut].find(({ outcome }) => outcome.code === status.FAILED_PRECONDITION);
      if (refused !== undefined) await refusedForGood(session, refused);
    },
  ),
  'cut-open-order': cutting.must(
    'When the exchange is back, an order that was open can be cancelled',
    async (session) => {
      const { open, back } = await cutOff(session);
      if (!back) throw new NotRun('the exchange did not come back');
      const { answer, exchange } = await session.call('Orders', 'cancelOrder', { clientOrderId: open.id });
      expect(answer !== undefined, `the cancel ended with ${exchange.status}`, open.outcome.exchange, exchange);
      const isCancelled = answer.report?.kind === ReportKind.CANCELLED;
      expect(isCancelled, 'it was not cancelled', open.outcome.exchange, exchange);
    },
  ),
});

/** Cuts the adapter off and connects it again, once in a run. */
function cutOff(session: CheckSession) {
  return session.once('cut', async () => {
    const { hooks, waits } = session.settings;
    const { hookMs, quietMs, skewMs } = waits;
    const open = await session.place('rest');
    await session.settled();
    session.isDisturbed = true;
    try {
      const whileCutting = await sentDuring(session, hooks.cut);
      const startedAt = performance.now();
      const before = session.follower.arrivals.flat().length;
      const whileCut: SentOrder[] = [];
      for (let count = 0; count < sendsWhileCut; count += 1) whileCut.push(await sendShort(session));
      const copy = await session.send({ ...open.request, id: open.id, notAfter: session.inTime() });
      const lookUp = await session.lookUp(open.id);
      const cancel = await session.call('Orders', 'cancelOrder', { clientOrderId: open.id });
      const doubts = inDoubt([...whileCutting, ...whileCut]);
      await overdue(doubts, skewMs);
      const looked = await Promise.all(doubts.map(async (sent) => ({ sent, lookUp: await session.lookUp(sent.id) })));
      // Long enough for a message of the stream.
      await pause(Math.max(0, quietMs + 500 - (performance.now() - startedAt)), never);
      const messages = session.follower.arrivals.flat().length - before;
      const heldMs = Math.round(performance.now() - startedAt);
      await hooks.mend?.().catch((error: unknown) => {
        throw new NotRun((error as Error).message);
      });
      let last: SentOrder | undefined;
      const back = await poll(hookMs, async () => {
        last = await sendShort(session);
        return last.outcome.answer?.report?.kind === ReportKind.ACCEPTED || undefined;
      });
      return {
        open,
        whileCutting,
        whileCut,
        copy,
        lookUp,
        looked,
        cancel,
        messages,
        heldMs,
        back: back === true,
        hookMs,
        last,
      };
    } finally {
      session.isDisturbed = false;
    }
  });
}
