import {
  ApplicationFieldsSchema,
  ApplicationRejectReason,
  ApplicationReportKind,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import { answered, applying, checks, expect, NotRun, needed, needing } from '../check.ts';
import type { CheckSession, SentApplication } from '../session.ts';
import { isSameReport, reportProblem } from './application-rules.ts';
import { completeUntilPast, late, listedOnce, past, refusesLate, takenOnce } from './every-kind.ts';
import { accepted, apply, applyAgain, lookUp } from './sent-applications.ts';

const sendsAtOnce = 10;
const noCode = 'NO-SUCH-STATE';

/** Applications for accounts. Their documents have checks of their own. */
export const applicationChecks = checks({
  'applications-offered': needing('Applications').optional('The adapter opens accounts', async () => {}),
  'application-accepted': applying.must('A good application is accepted', async (session) => {
    const { answer, exchange } = answered((await apply(session)).outcome);
    expect(answer.report?.kind === ApplicationReportKind.ACCEPTED, 'it was not accepted', exchange);
  }),
  'application-answer-is-report': applying.must(
    'The answer to an application is the whole report that accepts or rejects it, with its reference',
    async (session) => {
      const { id, outcome } = await apply(session);
      const { answer, exchange } = needed(outcome, 'the send');
      const { report } = answer;
      expect(report !== undefined, 'the answer has no report', exchange);
      expect(report.clientApplicationId === id, `the report is about "${report.clientApplicationId}"`, exchange);
      const answers = report.kind === ApplicationReportKind.ACCEPTED || report.kind === ApplicationReportKind.REJECTED;
      expect(answers, `the report is ${ApplicationReportKind[report.kind]}`, exchange);
      const problem = reportProblem(report);
      expect(problem === undefined, `${problem}`, exchange);
    },
  ),
  'application-invalid-not-accepted': applying.must(
    'An application without a name, or from a state that the broker does not know, is not accepted',
    async (session) => {
      for (const { outcome } of await invalidOnes(session)) {
        const isAccepted = outcome.answer?.report?.kind === ApplicationReportKind.ACCEPTED;
        expect(!isAccepted, 'it was accepted', outcome.exchange);
      }
    },
  ),
  'application-rejection-is-report': applying.should(
    'A field that the broker does not accept is a rejection that names the field, and no status',
    async (session) => {
      const names: ReadonlySet<string> = new Set(ApplicationFieldsSchema.fields.map(({ name }) => name));
      for (const { outcome } of await invalidOnes(session)) {
        const { answer, exchange } = answered(outcome);
        const { kind, rejectReason, param } = answer.report ?? {};
        if (kind !== ApplicationReportKind.REJECTED) throw new NotRun('it was not rejected');
        const isInvalidField = rejectReason === ApplicationRejectReason.INVALID_FIELD;
        expect(isInvalidField, 'reject_reason is not INVALID_FIELD', exchange);
        expect(names.has(param ?? ''), `param is "${param}"`, exchange);
      }
    },
  ),
  'application-once': applying.must('The id of an application that comes again is ALREADY_EXISTS', async (session) =>
    applyAgain(session, await accepted(session)),
  ),
  'application-once-other-fields': applying.must(
    'The id of an application that comes again with other fields is ALREADY_EXISTS',
    async (session) => {
      const fields = { ...session.newFields(), firstName: 'Another' };
      await applyAgain(session, await accepted(session), { fields, note: Buffer.from('another') });
    },
  ),
  'application-once-at-once': applying.must(
    `Of ${sendsAtOnce} sends of one application at the same time, one is taken`,
    async (session) => {
      const [clientApplicationId, fields] = [session.newId(), session.newFields()];
      const sends = Array.from({ length: sendsAtOnce }, () => apply(session, { clientApplicationId, fields }));
      takenOnce(await Promise.all(sends));
    },
  ),
  'application-look-up-unknown': needing('Applications').must(
    'The look-up of an application that never came says found: false, without reports, and is no status',
    async (session) => {
      const { answer, exchange } = answered(await lookUp(session, session.newId()));
      expect(!answer.found && answer.reports.length === 0, 'it was found', exchange);
    },
  ),
  'application-look-up-current': applying.must(
    'The look-up of an application has the report of the answer, at once, and above its number the application stays found',
    async (session) => {
      const { id, report, outcome } = await accepted(session);
      const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
      const kept = answer.reports.find(({ number }) => number === report.number);
      const isSame = answer.found && kept !== undefined && isSameReport(kept, report);
      expect(isSame, `it does not have report ${report.number} of the answer`, outcome.exchange, exchange);
      const above = needed(await lookUp(session, id, report.number), 'the look-up');
      expect(above.answer.found, 'it is not found above a number', above.exchange);
      const isLater = above.answer.reports.every(({ number }) => number > report.number);
      expect(isLater, 'it has reports up to the number', above.exchange);
    },
  ),
  'application-not-after-honoured': applying.must(
    'If honours_not_after is declared, an application that comes later ends with FAILED_PRECONDITION',
    (session) => refusesLate(session, () => apply(session, { notAfter: past() })),
  ),
  'application-late-never-taken': applying.must(
    'An application that ended with FAILED_PRECONDITION is not in the record',
    async (session) => {
      const { id, outcome } = late(await apply(session, { notAfter: past() }));
      const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
      expect(!answer.found, 'the record has it', outcome.exchange, exchange);
    },
  ),
  'application-listed': needing('Applications', 'Submissions', 'apply').must(
    'An application is among the submissions, once, with its note',
    (session) => listedOnce(session, () => accepted(session)),
  ),
  'application-complete-until-past': needing('Applications').must(
    'complete_until of the look-up of an application is never later than now',
    async (session) => completeUntilPast(session, await lookUp(session, session.newId())),
  ),
});

/** Applications that no broker can take. All checks look at the same. */
function invalidOnes(session: CheckSession): Promise<SentApplication[]> {
  return session.once('invalid applications', async () => [
    await apply(session, { fields: { ...session.newFields(), firstName: '', lastName: '' } }),
    await apply(session, { fields: { ...session.newFields(), state: noCode } }),
  ]);
}
