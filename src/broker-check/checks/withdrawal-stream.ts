import { checks, expect, needed, needing, withdrawing } from '../check.ts';
import type { CheckSession } from '../session.ts';
import { reportsById } from './every-kind.ts';
import { lookUp } from './sent-withdrawals.ts';
import { denseFromFirst, longestSilence, statesItsLast, statesNoMoreThanSent } from './streams.ts';
import { isSameReport, lifeProblem, reportProblem, shownReport } from './withdrawal-rules.ts';

const streamName = 'Withdrawals.StreamWithdrawalReports';

/** The stream of reports about withdrawals, and what it brought over the run. */
export const withdrawalStreamChecks = checks({
  'withdrawal-stream-from-first': needing('Withdrawals').must(
    'The stream of reports about withdrawals begins with report 1 from 0, and goes on without a gap',
    (session) => denseFromFirst(streamName, session.openWithdrawalReports, session.settings.waits.silenceMs),
  ),
  'withdrawal-stream-beyond-last': needing('Withdrawals').should(
    'A stream of them from a number that was never reached brings nothing, and states a last_number below it',
    (session) => statesItsLast(streamName, session.openWithdrawalReports, session.settings.waits.silenceMs),
  ),
  'withdrawal-stream-last-number': needing('Withdrawals').should(
    'last_number is never above the last report about withdrawals that was sent',
    (session) => statesNoMoreThanSent(streamName, session.openWithdrawalReports),
  ),
  'withdrawal-stream-alive': withdrawing.must(
    'An open stream of reports about withdrawals is never silent for five seconds',
    async (session) => {
      const { silenceMs } = session.settings.waits;
      const follower = session.withdrawalFollower;
      const longest = await longestSilence(follower, silenceMs + 500);
      expect(longest < silenceMs, `it was silent for ${longest} ms`, follower.shown([]));
    },
  ),
});

/** Checks of everything that came about withdrawals in the run. */
export const withdrawalRunChecks = checks({
  'withdrawal-reports-dense': withdrawing.must(
    'The stream of reports about withdrawals has every number once, in order and without a gap',
    async (session) => {
      await settled(session);
      const follower = session.withdrawalFollower;
      const near = follower.reports.slice(-4).map(shownReport);
      expect(follower.gaps.length === 0, follower.gaps.join('; '), follower.shown(near));
    },
  ),
  'withdrawal-answers-streamed': withdrawing.must(
    'Every report of the answer to a withdrawal comes in the stream too, as it was answered',
    async (session) => {
      await settled(session);
      const follower = session.withdrawalFollower;
      for (const { outcome } of session.withdrawals) {
        const report = outcome.answer?.report;
        if (report === undefined || report.number <= follower.from) continue;
        const streamed = follower.byNumber.get(report.number);
        if (streamed === undefined && follower.gaps.length > 0) continue; // `withdrawal-reports-dense` says it.
        const isSame = streamed !== undefined && isSameReport(streamed, report);
        const what = `report ${report.number} of the answer is ${streamed ? 'another' : 'not'} in the stream`;
        expect(isSame, what, outcome.exchange, follower.shown(streamed ? [shownReport(streamed)] : []));
      }
    },
  ),
  'withdrawal-look-up-complete': withdrawing.must(
    'The look-up of a withdrawal has every report about it that the stream has',
    async (session) => {
      for (const [id, reports] of await byWithdrawal(session)) {
        const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
        const lacking = reports.find((report) => {
          const kept = answer.reports.find(({ number }) => number === report.number);
          return kept === undefined || !isSameReport(kept, report);
        });
        const streamed = session.withdrawalFollower.shown(lacking ? [shownReport(lacking)] : []);
        expect(lacking === undefined, `it does not have report ${lacking?.number}`, streamed, exchange);
      }
    },
  ),
  'withdrawal-life': withdrawing.must(
    'A withdrawal is accepted, paid or rejected first and ends once; only a bank returns one, and only after it was paid',
    async (session) => {
      for (const [id, reports] of await byWithdrawal(session)) {
        const destination = session.withdrawals.find((sent) => sent.id === id)?.request.destination;
        const problem =
          lifeProblem(reports, destination) ?? reports.map(reportProblem).find((each) => each !== undefined);
        const streamed = session.withdrawalFollower.shown(reports.map(shownReport));
        expect(problem === undefined, `${id}: ${problem}`, streamed);
      }
    },
  ),
});

/** Waits until the stream has everything that answers of this run have. */
async function settled(session: CheckSession): Promise<void> {
  const most = session.withdrawals.reduce((last, { outcome }) => {
    const number = outcome.answer?.report?.number ?? 0n;
    return number > last ? number : last;
  }, 0n);
  const follower = session.withdrawalFollower;
  await follower.until(() => follower.last >= most, session.settings.waits.settleMs);
}

/** The withdrawals of this run that the stream has reports about, each with them. */
async function byWithdrawal(session: CheckSession) {
  await settled(session);
  return reportsById(session.withdrawals, session.withdrawalFollower.reports, (report) => report.clientWithdrawalId);
}
