import { status } from '@grpc/grpc-js';
import { type Report, ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { checks, expect, NotRun, needed, needing } from '../check.ts';
import type { Batch, NumberedReport } from '../follower.ts';
import { readStream } from '../follower.ts';
import { type CheckSession, type PlacedOrder, poll, type SentOrder, shownReport } from '../session.ts';
import { isSameReport as isSameApplicationReport } from './application-rules.ts';
import { notTakenAgain } from './orders.ts';
import { isSameReport } from './rules.ts';
import { allocateAgain, booked, recordsKept } from './sent-allocations.ts';
import { accepted, applyAgain, lookUp } from './sent-applications.ts';
import { answersKept, doubtsSettle, refusalsHold, sendShort, sentDuring } from './settling.ts';
import { streamShown } from './streams.ts';
import { lastSubmission, listedAfter } from './submissions.ts';

const restarting = needing('restart', 'account', 'rest');

/** Checks that a restart changes nothing that it must not change. */
export const restartChecks = checks({
  'restart-comes-back': needing('restart').must(
    'After a restart the adapter answers again, and takes orders',
    async (session) => {
      const { placed, isTrading } = await restarted(session);
      const last = session.sends.at(-1);
      expect(placed === undefined || isTrading, 'no order was taken', ...(last ? [last.outcome.exchange] : []));
    },
  ),
  'restart-once': restarting.must('After a restart the id of an earlier order is ALREADY_EXISTS', async (session) => {
    const { placed } = await restarted(session);
    if (placed === undefined) throw new NotRun('no order was placed before');
    await notTakenAgain(session, placed);
  }),
  'restart-look-up': restarting.must('After a restart the look-up has every report that it had', async (session) => {
    const { placed } = await restarted(session);
    if (placed === undefined) throw new NotRun('no order was placed before');
    const { found, reports, exchanges } = await session.recorded(placed.id);
    expect(found, 'the order is not found', placed.outcome.exchange, ...exchanges);
    const kept = reports.find(({ number }) => number === placed.report.number);
    const isKept = kept !== undefined && isSameReport(kept, placed.report);
    expect(isKept, `report ${placed.report.number} is not there as it was`, placed.outcome.exchange, ...exchanges);
  }),
  'restart-numbers': restarting.must(
    'After a restart each report has the number and the content that it had',
    async (session) => {
      const { reports: before } = await restarted(session);
      const last = before.at(-1);
      if (last === undefined) throw new NotRun('there were no reports');
      const enough = (batches: readonly Batch<NumberedReport>[]) =>
        batches.some(({ reports }) => reports.some(({ number }) => number >= last.number));
      const bound = { enough, boundMs: session.settings.waits.settleMs };
      const { reports, ended } = await readStream(session.openReports, session.follower.from, bound);
      const after = new Map(reports.map((report) => [report.number, report]));
      const other = before.find((report) => {
        const now = after.get(report.number);
        return now === undefined || !isSameReport(now, report);
      });
      const now = other && after.get(other.number);
      const shown = streamShown('Orders.StreamReports', session.follower.from, now ? [shownReport(now)] : [], ended);
      const what = `report ${other?.number} is ${now === undefined ? 'gone' : 'another'}`;
      expect(other === undefined, what, session.follower.shown(other ? [shownReport(other)] : []), shown);
    },
  ),
  'restart-numbers-go-on': restarting.must(
    'After a restart new reports have the numbers that follow',
    async (session) => {
      const { last } = await restarted(session);
      const { report, outcome } = await session.place('rest');
      expect(report.number > last, `after report ${last} came report ${report.number}`, outcome.exchange);
    },
  ),
  'restart-answers-kept': restarting.must(
    'What was answered with a report while the adapter went away is in the record afterwards',
    async (session) => answersKept(session, (await restarted(session)).whileAway),
  ),
  'restart-refusals-hold': restarting.must(
    'What ended with FAILED_PRECONDITION while the adapter was away is never taken',
    async (session) => refusalsHold(session, (await restarted(session)).whileAway),
  ),
  'restart-doubts-settle': restarting.must(
    'After a restart the look-up says for good what became of each order that had no clear answer',
    async (session) => doubtsSettle(session, (await restarted(session)).whileAway),
  ),
  'restart-open-order': restarting.must('After a restart an open order can be cancelled', async (session) => {
    const { open } = await restarted(session);
    if (open === undefined) throw new NotRun('no order was placed before');
    const { answer, exchange } = await session.call('Orders', 'cancelOrder', { clientOrderId: open.id });
    expect(answer !== undefined, `the cancel ended with ${exchange.status}`, open.outcome.exchange, exchange);
    const isCancelled = answer.report?.kind === ReportKind.CANCELLED;
    expect(isCancelled, 'it was not cancelled', open.outcome.exchange, exchange);
  }),
  'restart-submissions': needing('restart', 'Submissions', 'account', 'rest').must(
    'After a restart the list of submissions is the same, with all notes',
    async (session) => {
      const { submissions: before } = await restarted(session);
      const first = before[0];
      if (first === undefined) throw new NotRun('nothing was listed before');
      const { submissions, exchanges } = await listedAfter(session, first.number - 1n);
      const after = new Map(submissions.map((each) => [each.number, each]));
      const other = before.find(({ number, clientId, note }) => {
        const now = after.get(number);
        return now === undefined || now.clientId !== clientId || !Buffer.from(now.note).equals(Buffer.from(note));
      });
      expect(other === undefined, `submission ${other?.number} is not as it was`, ...exchanges);
    },
  ),
  'restart-allocations': needing('restart', 'Allocations', 'account', 'allocate').must(
    'After a restart the id of an earlier allocation is ALREADY_EXISTS, and all records are as they were',
    async (session) => {
      const { allocated } = await restarted(session);
      if (allocated === undefined) throw new NotRun('nothing was allocated before');
      await allocateAgain(session, allocated);
      await recordsKept(session);
    },
  ),
  'restart-applications': needing('restart', 'Applications', 'apply').must(
    'After a restart the id of an earlier application is ALREADY_EXISTS, and its reports are as they were',
    async (session) => {
      const { applied } = await restarted(session);
      if (applied === undefined) throw new NotRun('no application was accepted before');
      await applyAgain(session, applied);
      const { answer, exchange } = needed(await lookUp(session, applied.id), 'the look-up');
      const kept = answer.reports.find(({ number }) => number === applied.report.number);
      const isKept = kept !== undefined && isSameApplicationReport(kept, applied.report);
      expect(isKept, `report ${applied.report.number} is not there as it was`, applied.outcome.exchange, exchange);
    },
  ),
});

/** Restarts the adapter, once in a run. */
function restarted(session: CheckSession) {
  return session.once('restart', async () => {
    const { hooks, waits, rest, account, allocateKobo, application } = session.settings;
    const canTrade = rest !== undefined && account !== undefined;
    const placed = canTrade ? await placedOrNone(session) : undefined;
    const open = canTrade ? await placedOrNone(session) : undefined;
    const allocated = account !== undefined && allocateKobo !== undefined ? await orNone(booked(session)) : undefined;
    const applied = application !== undefined ? await orNone(accepted(session)) : undefined;
    await session.settled();
    const submissions = await submissionsBefore(session);
    const reports: readonly Report[] = [...session.follower.reports];
    const { last } = session.follower;
    session.isDisturbed = true;
    try {
      const restart = async () => {
        await hooks.restart?.();
      };
      const whileAway = canTrade ? await sentDuring(session, restart) : await withoutSends(restart);
      session.reconnect();
      const back = await poll(waits.hookMs, async () => {
        const { answer } = await session.call('Orders', 'getCapabilities', {});
        return answer;
      });
      const { exchange } = await session.call('Orders', 'getCapabilities', {});
      expect(back !== undefined, `it did not answer again within ${waits.hookMs} ms`, exchange);
      const isTrading = canTrade ? await trades(session) : false;
      return { placed, open, allocated, applied, submissions, reports, last, whileAway, isTrading };
    } finally {
      session.isDisturbed = false;
    }
  });
}

/** Waits until an order is taken. */
async function trades(session: CheckSession): Promise<boolean> {
  const taken = await poll(session.settings.waits.hookMs, async () => {
    const { outcome } = await sendShort(session);
    return outcome.answer?.report;
  });
  return taken !== undefined;
}

async function withoutSends(restart: () => Promise<void>): Promise<SentOrder[]> {
  await restart().catch((error: unknown) => {
    throw new NotRun((error as Error).message);
  });
  return [];
}

function orNone<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch(() => undefined);
}

async function placedOrNone(session: CheckSession): Promise<PlacedOrder | undefined> {
  return orNone(session.place('rest'));
}

/** The last submissions before the restart; none if they cannot be listed. */
async function submissionsBefore(session: CheckSession) {
  const { code } = await session.call('Submissions', 'listSubmissions', { limit: 1 });
  if (code !== status.OK) return [];
  const last = await lastSubmission(session);
  return (await listedAfter(session, last > 20n ? last - 20n : 0n)).submissions;
}
