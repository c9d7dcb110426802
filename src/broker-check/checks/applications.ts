import { toJsonString } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  ApplicationFieldsSchema,
  ApplicationRejectReason,
  type ApplicationReport,
  ApplicationReportKind,
  ApplicationReportSchema,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import { checks, expect, must, NotOffered, NotRun, optional, should } from '../check.ts';
import { shown } from '../exchange.ts';
import type { SentApplication, Session } from '../session.ts';
import { declared, past } from './orders.ts';
import { denseFromFirst, longestSilence, statesItsLast, statesNoMoreThanSent } from './streams.ts';
import { lastSubmission, listedAfter } from './submissions.ts';

const sendsAtOnce = 10;
const streamName = 'Applications.StreamApplicationReports';
const noCode = 'NO-SUCH-STATE';
const longestReference = 64;
const accountCode = /^[A-Z0-9]{1,64}$/;

type Fields = Partial<SentApplication['request']>;

/** An application of this run that was accepted. */
export interface Accepted extends SentApplication {
  readonly report: ApplicationReport;
}

/** Applications for accounts. Their documents have checks of their own. */
export const applicationChecks = checks({
  'applications-offered': optional('The adapter opens accounts', ['Applications'], async () => {}),
  'application-accepted': must('A good application is accepted', ['Applications', 'apply'], async (session) => {
    const { outcome } = await apply(session);
    const { answer, exchange } = outcome;
    expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
    expect(answer.report?.kind === ApplicationReportKind.ACCEPTED, 'it was not accepted', exchange);
  }),
  'application-answer-is-report': must(
    'The answer to an application is the whole report that accepts or rejects it, with its reference',
    ['Applications', 'apply'],
    async (session) => {
      const { id, outcome } = await apply(session);
      const { answer, exchange } = outcome;
      if (answer === undefined) throw new NotRun(`the send ended with ${exchange.status}`);
      const { report } = answer;
      expect(report !== undefined, 'the answer has no report', exchange);
      expect(report.clientApplicationId === id, `the report is about "${report.clientApplicationId}"`, exchange);
      const answers = report.kind === ApplicationReportKind.ACCEPTED || report.kind === ApplicationReportKind.REJECTED;
      expect(answers, `the report is ${ApplicationReportKind[report.kind]}`, exchange);
      const problem = reportProblem(report);
      expect(problem === undefined, `${problem}`, exchange);
    },
  ),
  'application-invalid-not-accepted': must(
    'An application without a name, or from a state that the broker does not know, is not accepted',
    ['Applications', 'apply'],
    async (session) => {
      for (const { outcome } of await invalidOnes(session)) {
        const isAccepted = outcome.answer?.report?.kind === ApplicationReportKind.ACCEPTED;
        expect(!isAccepted, 'it was accepted', outcome.exchange);
      }
    },
  ),
  'application-rejection-is-report': should(
    'A field that the broker does not accept is a rejection that names the field, and no status',
    ['Applications', 'apply'],
    async (session) => {
      const names: ReadonlySet<string> = new Set(ApplicationFieldsSchema.fields.map(({ name }) => name));
      for (const { outcome } of await invalidOnes(session)) {
        const { answer, exchange } = outcome;
        expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
        const { kind, rejectReason, param } = answer.report ?? {};
        if (kind !== ApplicationReportKind.REJECTED) throw new NotRun('it was not rejected');
        const isInvalidField = rejectReason === ApplicationRejectReason.INVALID_FIELD;
        expect(isInvalidField, 'reject_reason is not INVALID_FIELD', exchange);
        expect(names.has(param ?? ''), `param is "${param}"`, exchange);
      }
    },
  ),
  'application-once': must(
    'The id of an application that comes again is ALREADY_EXISTS',
    ['Applications', 'apply'],
    async (session) => applicationRefusedAgain(session, await accepted(session)),
  ),
  'application-once-other-fields': must(
    'The id of an application that comes again with other fields is ALREADY_EXISTS',
    ['Applications', 'apply'],
    async (session) => {
      const fields = { ...session.newFields(), firstName: 'Another' };
      await applicationRefusedAgain(session, await accepted(session), { fields, note: Buffer.from('another') });
    },
  ),
  'application-once-at-once': must(
    `Of ${sendsAtOnce} sends of one application at the same time, one is taken`,
    ['Applications', 'apply'],
    async (session) => {
      const [clientApplicationId, fields] = [session.newId(), session.newFields()];
      const sent = await Promise.all(
        Array.from({ length: sendsAtOnce }, () => apply(session, { clientApplicationId, fields })),
      );
      const taken = sent.filter(({ outcome }) => outcome.answer !== undefined);
      const exchanges = taken.map(({ outcome }) => outcome.exchange);
      expect(taken.length <= 1, `${taken.length} were answered with a report`, ...exchanges);
    },
  ),
  'application-look-up-unknown': must(
    'The look-up of an application that never came says found: false, without reports, and is no status',
    ['Applications'],
    async (session) => {
      const { answer, exchange } = await lookUp(session, session.newId());
      expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
      expect(!answer.found && answer.reports.length === 0, 'it was found', exchange);
    },
  ),
  'application-look-up-current': must(
    'The look-up of an application has the report of the answer, at once, and above its number the application stays found',
    ['Applications', 'apply'],
    async (session) => {
      const { id, report, outcome } = await accepted(session);
      const { answer, exchange } = await lookUp(session, id);
      if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
      const kept = answer.reports.find(({ number }) => number === report.number);
      const isSame = answer.found && kept !== undefined && isSameReport(kept, report);
      expect(isSame, `it does not have report ${report.number} of the answer`, outcome.exchange, exchange);
      const above = await lookUp(session, id, report.number);
      if (above.answer === undefined) throw new NotRun(`the look-up ended with ${above.exchange.status}`);
      expect(above.answer.found, 'it is not found above a number', above.exchange);
      const isLater = above.answer.reports.every(({ number }) => number > report.number);
      expect(isLater, 'it has reports up to the number', above.exchange);
    },
  ),
  'application-not-after-honoured': must(
    'If honours_not_after is declared, an application that comes later ends with FAILED_PRECONDITION',
    ['Applications', 'apply'],
    async (session) => {
      await declared(session);
      const { outcome } = await apply(session, { notAfter: past() });
      const { exchange } = outcome;
      expect(exchange.status === 'FAILED_PRECONDITION', `it ended with ${exchange.status}`, exchange);
    },
  ),
  'application-late-never-taken': must(
    'An application that ended with FAILED_PRECONDITION is not in the record',
    ['Applications', 'apply'],
    async (session) => {
      const { id, outcome } = await apply(session, { notAfter: past() });
      if (outcome.code !== status.FAILED_PRECONDITION) {
        throw new NotRun(`the send ended with ${outcome.exchange.status}`);
      }
      const { answer, exchange } = await lookUp(session, id);
      if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
      expect(!answer.found, 'the record has it', outcome.exchange, exchange);
    },
  ),
  'application-listed': must(
    'An application is among the submissions, once, with its note',
    ['Applications', 'Submissions', 'apply'],
    async (session) => {
      const before = await lastSubmission(session);
      const { id, request, outcome } = await accepted(session);
      const { submissions, exchanges } = await listedAfter(session, before);
      const found = submissions.filter(({ clientId }) => clientId === id);
      expect(found.length === 1, `${id} is listed ${found.length} times`, outcome.exchange, ...exchanges);
      const isKept = Buffer.from(found[0]?.note ?? []).equals(Buffer.from(request.note ?? []));
      expect(isKept, 'its note is another', outcome.exchange, ...exchanges);
    },
  ),
  'application-complete-until-past': must(
    'complete_until of the look-up of an application is never later than now',
    ['Applications'],
    async (session) => {
      const { answer, exchange, endedAt } = await lookUp(session, session.newId());
      if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
      if (answer.completeUntil === undefined) throw new NotOffered('complete_until is absent');
      const aheadMs = timestampMs(answer.completeUntil) - endedAt;
      expect(aheadMs <= session.settings.waits.skewMs, `it is ${aheadMs} ms ahead`, exchange);
    },
  ),
});

/** The stream of reports about applications, and what it brought over the run. */
export const applicationStreamChecks = checks({
  'application-stream-from-first': must(
    'The stream of reports about applications begins with report 1 from 0, and goes on without a gap',
    ['Applications'],
    (session) => denseFromFirst(streamName, session.openApplicationReports, session.settings.waits.silenceMs),
  ),
  'application-stream-beyond-last': should(
    'A stream of them from a number that was never reached brings nothing, and states a last_number below it',
    ['Applications'],
    (session) => statesItsLast(streamName, session.openApplicationReports, session.settings.waits.silenceMs),
  ),
  'application-stream-last-number': should(
    'last_number is never above the last report about applications that was sent',
    ['Applications'],
    (session) => statesNoMoreThanSent(streamName, session.openApplicationReports),
  ),
  'application-stream-alive': must(
    'An open stream of reports about applications is never silent for five seconds',
    ['Applications', 'apply'],
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
  'application-reports-dense': must(
    'The stream of reports about applications has every number once, in order and without a gap',
    ['Applications', 'apply'],
    async (session) => {
      await settled(session);
      const follower = session.applicationFollower;
      const near = follower.reports.slice(-4).map(shownReport);
      expect(follower.gaps.length === 0, follower.gaps.join('; '), follower.shown(near));
    },
  ),
  'application-answers-streamed': must(
    'Every report of the answer to an application comes in the stream too, as it was answered',
    ['Applications', 'apply'],
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
  'application-look-up-complete': must(
    'The look-up of an application has every report about it that the stream has',
    ['Applications', 'apply'],
    async (session) => {
      for (const [id, reports] of await byApplication(session)) {
        const { answer, exchange } = await lookUp(session, id);
        if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
        const lacking = reports.find((report) => {
          const kept = answer.reports.find(({ number }) => number === report.number);
          return kept === undefined || !isSameReport(kept, report);
        });
        const streamed = session.applicationFollower.shown(lacking ? [shownReport(lacking)] : []);
        expect(lacking === undefined, `it does not have report ${lacking?.number}`, streamed, exchange);
      }
    },
  ),
  'application-life': must(
    'An application is accepted or rejected first, and ends once; one that is open has the code of its account',
    ['Applications', 'apply'],
    async (session) => {
      for (const [id, reports] of await byApplication(session)) {
        const problem = lifeProblem(reports) ?? reports.map(reportProblem).find((each) => each !== undefined);
        const streamed = session.applicationFollower.shown(reports.map(shownReport));
        expect(problem === undefined, `${id}: ${problem}`, streamed);
      }
    },
  ),
});

/** Sends an application, once. */
export async function apply(session: Session, given: Fields = {}): Promise<SentApplication> {
  const id = given.clientApplicationId ?? session.newId();
  const request = {
    clientApplicationId: id,
    fields: session.newFields(),
    notAfter: session.inTime(),
    note: Buffer.from(`note of ${id}`),
    ...given,
  } as SentApplication['request'];
  const outcome = await session.call('Applications', 'submitApplication', request);
  const sent = { id, request, outcome };
  session.applications.push(sent);
  return sent;
}

/** Sends one that is accepted. Throws `NotRun` if it is not. */
export async function accepted(session: Session): Promise<Accepted> {
  const sent = await apply(session);
  const { answer, exchange } = sent.outcome;
  const report = answer?.report;
  if (report?.kind !== ApplicationReportKind.ACCEPTED) throw new NotRun(`none was accepted: ${exchange.status}`);
  return { ...sent, report };
}

/** Sends an id again, and throws unless it is refused. */
export async function applicationRefusedAgain(
  session: Session,
  first: SentApplication,
  given: Fields = {},
): Promise<void> {
  const again = { ...first.request, notAfter: session.inTime(), ...given, clientApplicationId: first.id };
  const { code, exchange } = await session.call('Applications', 'submitApplication', again as never);
  const isRefused = code === status.ALREADY_EXISTS;
  expect(isRefused, `the second send ended with ${exchange.status}`, first.outcome.exchange, exchange);
}

export function lookUp(session: Session, clientApplicationId: string, afterNumber = 0n) {
  return session.call('Applications', 'lookUpApplication', { clientApplicationId, afterNumber });
}

export function isSameReport(one: ApplicationReport, other: ApplicationReport): boolean {
  return toJsonString(ApplicationReportSchema, one) === toJsonString(ApplicationReportSchema, other);
}

/** Applications that no broker can take. All checks look at the same. */
function invalidOnes(session: Session): Promise<SentApplication[]> {
  return session.once('invalid applications', async () => [
    await apply(session, { fields: { ...session.newFields(), firstName: '', lastName: '' } }),
    await apply(session, { fields: { ...session.newFields(), state: noCode } }),
  ]);
}

/** Waits until the stream has everything that answers of this run have. */
async function settled(session: Session): Promise<void> {
  const most = session.applications.reduce((last, { outcome }) => {
    const number = outcome.answer?.report?.number ?? 0n;
    return number > last ? number : last;
  }, 0n);
  const follower = session.applicationFollower;
  await follower.until(() => follower.last >= most, session.settings.waits.settleMs);
}

/** The applications of this run that the stream has reports about, each with them. */
async function byApplication(session: Session): Promise<Map<string, ApplicationReport[]>> {
  await settled(session);
  const ours = new Set(session.applications.map(({ id }) => id));
  const found = new Map<string, ApplicationReport[]>();
  for (const report of session.applicationFollower.reports) {
    const { clientApplicationId: id } = report;
    if (ours.has(id)) found.set(id, [...(found.get(id) ?? []), report]);
  }
  return found;
}

function shownReport(report: ApplicationReport): unknown {
  return shown(ApplicationReportSchema, report);
}

/** What is wrong with a report by itself. The gateway takes such a report for none. */
function reportProblem(report: ApplicationReport): string | undefined {
  const { number, clientApplicationId, kind, at, reference, account } = report;
  if (number < 1n) return `its number is ${number}`;
  if (clientApplicationId === '') return 'it names no application';
  if (kind === ApplicationReportKind.UNSPECIFIED) return 'it has no kind';
  if (at === undefined) return 'it has no time';
  if (reference.length > longestReference) return `its reference is longer than ${longestReference}`;
  if (kind === ApplicationReportKind.ACCEPTED && reference === '') return 'it is accepted, and has no reference';
  const isOpen = kind === ApplicationReportKind.OPENED;
  return isOpen && !accountCode.test(account) ? `its account is "${account}"` : undefined;
}

/** What is wrong with the order of one application's reports. */
function lifeProblem([first, ...later]: readonly ApplicationReport[]): string | undefined {
  const { ACCEPTED, REJECTED, OPENED } = ApplicationReportKind;
  if (first === undefined) return undefined;
  if (first.kind === OPENED) return 'its first report opens the account';
  if (later.some(({ kind }) => kind === ACCEPTED)) return 'it was accepted twice';
  if (first.kind === REJECTED && later.length > 0) return 'it was rejected, and more came';
  return later.length > 1 ? `it ended ${later.length} times` : undefined;
}
