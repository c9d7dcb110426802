import { answered, checks, expect, must, NotOffered, needed, optional, resting } from '../check.ts';
import { completeUntilPast } from './every-kind.ts';
import { isSameReport } from './rules.ts';

const sends = 5;

/** LookUpOrder: the broker's status of one order. */
export const lookUpChecks = checks({
  'look-up-unknown': must(
    'The look-up of an id that never came says found: false, without reports, and is no status',
    async (session) => {
      const { answer, exchange } = answered(await session.lookUp(session.newId()));
      expect(!answer.found && answer.reports.length === 0, 'it was found', exchange);
    },
  ),
  'look-up-current': resting.must('The look-up knows what was answered before it was asked', async (session) => {
    for (let count = 0; count < sends; count += 1) {
      const { id, outcome } = await session.send(await session.newOrder('rest'));
      const report = outcome.answer?.report;
      if (report === undefined) continue;
      const { answer, exchange } = needed(await session.lookUp(id), 'the look-up');
      const has = answer.found && answer.reports.some(({ number }) => number === report.number);
      expect(has, `it does not have report ${report.number} of the answer`, outcome.exchange, exchange);
    }
  }),
  'look-up-same-report': resting.must(
    'A report is the same in the answer, in the look-up and in the stream',
    async (session) => {
      const { id, report, outcome } = await session.place('rest');
      const { reports, exchanges } = await session.recorded(id);
      const recorded = reports.find(({ number }) => number === report.number);
      const isSame = recorded === undefined || isSameReport(recorded, report);
      expect(isSame, `report ${report.number} differs from the answer`, outcome.exchange, ...exchanges);
      const streamed = await session.streamedReport(id, ({ number }) => number === report.number);
      const agrees = streamed === undefined || isSameReport(streamed, report);
      expect(agrees, `report ${report.number} differs in the stream`, outcome.exchange, ...exchanges);
    },
  ),
  'look-up-after-number': resting.must(
    'A look-up from a number has only later reports, and the order stays found',
    async (session) => {
      const { id, report, outcome } = await session.place('rest');
      const { found, reports, exchanges } = await session.recorded(id, report.number);
      expect(found, 'it is not found', outcome.exchange, ...exchanges);
      const isLater = reports.every(({ number }) => number > report.number);
      expect(isLater, 'it has reports up to that number', outcome.exchange, ...exchanges);
    },
  ),
  'complete-until-stated': optional('The look-up states until when the record is complete', async (session) => {
    const { answer } = needed(await session.lookUp(session.newId()), 'the look-up');
    if (answer.completeUntil === undefined) throw new NotOffered('complete_until is absent');
  }),
  'complete-until-past': must('complete_until is never later than now', async (session) =>
    completeUntilPast(session, await session.lookUp(session.newId())),
  ),
});
