import { status } from '@grpc/grpc-js';
import { CancelOutcome, ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { answered, checks, expect, filling, must, NotRun, rejecting, resting, should } from '../check.ts';
import type { CheckSession } from '../session.ts';
import { filled } from './fills.ts';
import { isSameReport, reportProblem } from './rules.ts';

const cancelsAtOnce = 20;

/** Cancels. */
export const cancelChecks = checks({
  'cancel-open': resting.must(
    'The cancel of an open order is CANCELLED, with the whole report of it',
    async (session) => {
      const { id } = await session.place('rest');
      const { answer, exchange } = answered(await cancel(session, id));
      expect(answer.outcome === CancelOutcome.CANCELLED, `it is ${CancelOutcome[answer.outcome]}`, exchange);
      const { report } = answer;
      expect(report !== undefined, 'the answer has no report', exchange);
      expect(report.kind === ReportKind.CANCELLED, `the report is ${ReportKind[report.kind]}`, exchange);
      expect(report.clientOrderId === id, `the report is about ${report.clientOrderId}`, exchange);
      const problem = reportProblem(report);
      expect(problem === undefined, `${problem}`, exchange);
    },
  ),
  'cancel-recorded': resting.must(
    'The report of a cancel is in the look-up at once, and in the stream',
    async (session) => {
      const { id } = await session.place('rest');
      const { answer, exchange } = await cancel(session, id);
      const report = answer?.report;
      if (report === undefined) throw new NotRun('the cancel was not answered with a report');
      const { reports, exchanges } = await session.recorded(id);
      const recorded = reports.find(({ number }) => number === report.number);
      expect(recorded !== undefined, `the look-up does not have report ${report.number}`, exchange, ...exchanges);
      const streamed = await session.streamedReport(id, ({ number }) => number === report.number);
      expect(streamed !== undefined, `the stream does not have report ${report.number}`, exchange);
      const isSame = isSameReport(recorded, report) && isSameReport(streamed, report);
      expect(isSame, `report ${report.number} differs`, exchange, ...exchanges);
    },
  ),
  'cancel-again': resting.must(
    'A second cancel of a cancelled order is answered with the same report',
    async (session) => {
      const { id } = await session.place('rest');
      const first = await cancel(session, id);
      const again = await cancel(session, id);
      const exchanges = [first.exchange, again.exchange];
      if (first.answer?.report === undefined) throw new NotRun('the first was not answered with a report');
      expect(again.answer !== undefined, `the second ended with ${again.exchange.status}`, ...exchanges);
      const { outcome, report } = again.answer;
      expect(outcome === CancelOutcome.CANCELLED, `the second is ${CancelOutcome[outcome]}`, ...exchanges);
      const isSame = report !== undefined && isSameReport(report, first.answer.report);
      expect(isSame, 'the second has another report', ...exchanges);
    },
  ),
  'cancel-at-once': resting.must(
    `Of ${cancelsAtOnce} cancels at the same time, those that are answered have the one report`,
    async (session) => {
      const outcomes = await cancelledAtOnce(session);
      const numbers = new Set(outcomes.flatMap(({ answer }) => (answer?.report ? [answer.report.number] : [])));
      const exchanges = outcomes.map(({ exchange }) => exchange);
      expect(numbers.size <= 1, `there are ${numbers.size} reports`, ...exchanges);
    },
  ),
  'cancel-at-once-answered': resting.should(
    `Of ${cancelsAtOnce} cancels at the same time, none ends with a status`,
    async (session) => {
      for (const { answer, exchange } of await cancelledAtOnce(session)) {
        expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
      }
    },
  ),
  'cancel-filled': filling.must('The cancel of a filled order is TOO_LATE, without a report', async (session) => {
    const { id } = await filled(session);
    const { answer, exchange } = answered(await cancel(session, id));
    expect(answer.outcome === CancelOutcome.TOO_LATE, `it is ${CancelOutcome[answer.outcome]}`, exchange);
  }),
  'cancel-rejected': rejecting.must('The cancel of a rejected order is TOO_LATE', async (session) => {
    const { id, report } = await session.place('reject');
    if (report.kind !== ReportKind.REJECTED) throw new NotRun('the order was not rejected');
    const { answer, exchange } = answered(await cancel(session, id));
    expect(answer.outcome === CancelOutcome.TOO_LATE, `it is ${CancelOutcome[answer.outcome]}`, exchange);
  }),
  'cancel-unknown-no-outcome': must('The cancel of an id that never came has no outcome', async (session) => {
    const { answer, exchange } = await cancel(session, session.newId());
    expect(answer === undefined, 'it was answered', exchange);
  }),
  'cancel-unknown-not-found': should(
    'If the cancel of an id that never came ends with a status, that is NOT_FOUND',
    async (session) => {
      const { answer, code, exchange } = await cancel(session, session.newId());
      if (answer !== undefined) throw new NotRun('it was answered');
      expect(code === status.NOT_FOUND, `it ended with ${exchange.status}`, exchange);
    },
  ),
});

function cancel(session: CheckSession, clientOrderId: string) {
  return session.call('Orders', 'cancelOrder', { clientOrderId });
}

/** The outcomes of several cancels of an open order at the same time. Both checks look at the same. */
function cancelledAtOnce(session: CheckSession) {
  return session.once('cancels at once', async () => {
    const { id } = await session.place('rest');
    return Promise.all(Array.from({ length: cancelsAtOnce }, () => cancel(session, id)));
  });
}
