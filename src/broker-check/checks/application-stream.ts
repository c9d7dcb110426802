import { applying, checks, expect, needed, needing } from '../check.ts';
import type { CheckSession } from '../session.ts';
import { isSameReport, lifeProblem, reportProblem, shownReport } from './application-rules.ts';
import { reportsById } from './every-kind.ts';
import { lookUp } from './sent-applications.ts';
import { denseFromFirst, longestSilence, statesItsLast, statesNoMoreThanSent } from './streams.ts';

const streamName = 'Applications.StreamApplicationReports';

/** The stream of reports about applications, and what it brought over the run. */
export const applicationStreamChecks = checks({
  'application-stream-from-first': needing('Applications').must(
    'The stream of reports about applications begins with report 1 from 0, and goes on without a gap',
    (session) => denseFromFirst(streamName, session.openApplicationReports, session.settings.waits.silenceMs),
  ),
  'application-stream-beyond-last': needing('Applications').should(
    'A stream of them from a number that was never reached brings nothing, and states a last_number below it',
    (session) => statesItsLast(streamName, session.openApplicationReports, session.settings.waits.silenceMs),
  ),
  'application-stream-last-number': needing('Applications').should(
    'last_number is never above the last report about applications that was sent',
    (session) => statesNoMoreThanSent(streamName, session.openApplicationReports),
  ),
  'application-stream-alive': applying.must(
    'An open stream of reports about applications is never silent for five seconds',
    async (session) => {
      const { silenceMs } = session.settings.waits;
      const follower = session.applicationFollower;
      const longest = await longestSilence(follower, silenceMs + 500);
      expect(longest < silenceMs, `it was silent for ${longest} ms`, follower.shown([]));
    },
  ),
});

/** Checks of everything that came about applications in the run. */
export const applicationRunChecks = checks({
  'application-reports-dense': applying.must(
    'The stream of reports about applications has every number once, in order and without a gap',
    async (session) => {
      await settled(session);
      const follower = session.applicationFollower;
      const near = follower.reports.slice(-4).map(shownReport);
      expect(follower.gaps.length === 0, follower.gaps.join('; '), follower.shown(near));
    },
  ),
  'application-answers-streamed': applying.must(
    'Every report of the answer to an application comes in the stream too, as it was answered',
    async (session) => {
      await settled(session);
      const follower = session.applicationFollower;
      for (const { outcome } of session.applications) {
        const report = outcome.answer?.report;
        if (report === undefined || report.number <= follower.from) continue;
        const streamed = follower.byNumber.get(report.number);
        if (streamed === undefined && follower.gaps.length > 0) continue; // `application-reports-dense` says it.
        const isSame = streamed !== undefined && isSameReport(streamed, report);
        const what = `report ${report.number} of the answer is ${streamed ? 'another' : 'not'} in the stream`;
        expect(isSame, what, outcome.exchange, follower.shown(streamed ? [shownReport(streamed)] : []));
      }
    },
  ),
  'application-look-up-complete': applying.must(
    'The look-up of an application has every report about it that the stream has',
    async (session) => {
      for (const [id, reports] of await byApplication(session)) {
        const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
        const lacking = reports.find((report) => {
          const kept = answer.reports.find(({ number }) => number === report.number);
          return kept === undefined || !isSameReport(kept, report);
        });
        const streamed = session.applicationFollower.shown(lacking ? [shownReport(lacking)] : []);
        expect(lacking === undefined, `it does not have report ${lacking?.number}`, streamed, exchange);
      }
    },
  ),
  'application-life': applying.must(
    'An application is accepted or rejected first, and ends once; one that is open has the code of its account',
    async (session) => {
      for (const [id, reports] of await byApplication(session)) {
        const problem = lifeProblem(reports) ?? reports.map(reportProblem).find((each) => each !== undefined);
        const streamed = session.applicationFollower.shown(reports.map(shownReport));
        expect(problem === undefined, `${id}: ${problem}`, streamed);
      }
    },
  ),
});

/** Waits until the stream has everything that answers of this run have. */
async function settled(session: CheckSession): Promise<void> {
  const most = session.applications.reduce((last, { outcome }) => {
    const number = outcome.answer?.report?.number ?? 0n;
    return number > last ? number : last;
  }, 0n);
  const follower = session.applicationFollower;
  await follower.until(() => follower.last >= most, session.settings.waits.settleMs);
}

/** The applications of this run that the stream has reports about, each with them. */
async function byApplication(session: CheckSession) {
  await settled(session);
  return reportsById(session.applications, session.applicationFollower.reports, (report) => report.clientApplicationId);
}
