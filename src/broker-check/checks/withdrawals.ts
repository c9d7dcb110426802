import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  type WithdrawalReport,
  WithdrawalReportKind,
} from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { answered, checks, expect, must, NotOffered, NotRun, needed, needing, withdrawing } from '../check.ts';
import type { RecordedCall } from '../exchange.ts';
import { type CheckSession, poll } from '../session.ts';
import { abandoned, completeUntilPast, late, listedOnce, past, refusesLate, takenOnce } from './every-kind.ts';
import { available } from './sent-allocations.ts';
import { destinations, lookUp, taken, withdraw, withdrawAgain } from './sent-withdrawals.ts';
import { isSameReport, reportProblem } from './withdrawal-rules.ts';

const { REJECTED } = WithdrawalReportKind;
const sendsAtOnce = 10;
const maxKobo = 10_000_000_000n;

/** Withdrawals: money that leaves the account. */
export const withdrawalChecks = checks({
  'withdrawals-offered': needing('Withdrawals').optional('The adapter takes money from accounts', async () => {}),
  'withdrawal-destinations-stated': must(
    'GetCapabilities states a destination of withdrawals if the adapter takes them, and none otherwise',
    async (session) => {
      const stated = answered(await session.call('Orders', 'getCapabilities', {}));
      const asked = await lookUp(session, session.newId());
      const has = asked.code !== status.UNIMPLEMENTED;
      const list = stated.answer.withdrawalDestinations;
      if (!has && list.length === 0) throw new NotOffered('the adapter takes no withdrawals');
      const shown = [stated.exchange, asked.exchange];
      expect(
        has === list.length > 0,
        has ? 'it states none, and takes them' : 'it states some, and takes none',
        ...shown,
      );
      const isKnown = list.every((each) => each !== WithdrawalDestination.UNSPECIFIED && each in WithdrawalDestination);
      expect(isKnown && new Set(list).size === list.length, 'a destination is unknown, or stated twice', ...shown);
    },
  ),
  'withdrawal-taken': withdrawing.must(
    'A good withdrawal from the named account is accepted or paid, to each destination',
    async (session) => {
      for (const destination of await destinations(session)) {
        const { answer, exchange } = answered((await withdraw(session, { destination })).outcome);
        expect(answer.report !== undefined && answer.report.kind !== REJECTED, 'it was not taken', exchange);
      }
    },
  ),
  'withdrawal-answer-is-report': withdrawing.must(
    'The answer to a withdrawal is its first report, whole: number, id, kind, time and reference',
    async (session) => {
      const { id, outcome } = await withdraw(session);
      const { answer, exchange } = needed(outcome, 'the send');
      isWhole(answer.report, id, exchange);
    },
  ),
  'withdrawal-rejection-is-report': needing('Withdrawals', 'account', 'reject-withdrawal').must(
    'A rejected withdrawal is answered with its report, and with no status',
    async (session) => {
      const { id, outcome } = await withdraw(session, { amountKobo: session.settings.rejectWithdrawalKobo });
      const { answer, exchange } = answered(outcome);
      expect(answer.report?.kind === REJECTED, 'the report is no rejection', exchange);
      isWhole(answer.report, id, exchange);
    },
  ),
  'withdrawal-rejection-has-reason': needing('Withdrawals', 'account', 'reject-withdrawal').should(
    'A rejected withdrawal has its reason',
    async (session) => {
      const { outcome } = await withdraw(session, { amountKobo: session.settings.rejectWithdrawalKobo });
      const report = outcome.answer?.report;
      if (report?.kind !== REJECTED) throw new NotRun('the withdrawal was not rejected');
      const has = report.rejectReason !== WithdrawalRejectReason.UNSPECIFIED;
      expect(has, 'reject_reason is missing', outcome.exchange);
    },
  ),
  'withdrawal-once': withdrawing.must(
    'The id of a withdrawal that comes again is ALREADY_EXISTS, and its record stays as it was',
    (session) => notTakenAgain(session, {}),
  ),
  'withdrawal-once-other-fields': withdrawing.must(
    'The id of a withdrawal that comes again with another amount is ALREADY_EXISTS, and nothing is taken',
    (session) =>
      notTakenAgain(session, {
        amountKobo: (session.settings.withdrawKobo ?? 0n) + 1n,
        note: Buffer.from('another'),
      }),
  ),
  'withdrawal-once-at-once': withdrawing.must(
    `Of ${sendsAtOnce} sends of one withdrawal at the same time, one is taken`,
    async (session) => {
      const clientWithdrawalId = session.newId();
      const sends = Array.from({ length: sendsAtOnce }, () => withdraw(session, { clientWithdrawalId }));
      takenOnce(await Promise.all(sends));
    },
  ),
  'withdrawal-in-balance': needing('Withdrawals', 'Accounts', 'account', 'withdraw').should(
    'A withdrawal that was taken lowers the money available to the account by its amount, once',
    async (session) => {
      const before = await available(session);
      const first = await taken(session);
      await withdraw(session, { clientWithdrawalId: first.id });
      const amount = BigInt(first.request.amountKobo ?? 0);
      // A charge of the transfer may come in addition.
      const isOnce = (kobo: bigint) => before.kobo - kobo >= amount && before.kobo - kobo < 2n * amount;
      let after = await available(session);
      await poll(session.settings.waits.settleMs, async () => {
        after = await available(session);
        return isOnce(after.kobo) || undefined;
      });
      const shown = [before.exchange, first.outcome.exchange, after.exchange];
      expect(isOnce(after.kobo), `${before.kobo - after.kobo} kobo fewer are available`, ...shown);
    },
  ),
  'withdrawal-look-up-unknown': needing('Withdrawals').must(
    'The look-up of a withdrawal that never came is found: false, and no status',
    async (session) => {
      const { answer, exchange } = answered(await lookUp(session, session.newId()));
      expect(!answer.found && answer.reports.length === 0, 'it is found', exchange);
    },
  ),
  'withdrawal-look-up-current': withdrawing.must(
    'The look-up of a withdrawal has the report of the answer, at once',
    async (session) => {
      for (let count = 0; count < 3; count += 1) {
        const { id, outcome } = await taken(session);
        const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
        expect(hasFirst(answer, outcome.answer?.report), 'it does not have that report', outcome.exchange, exchange);
      }
    },
  ),
  'withdrawal-not-after-honoured': withdrawing.must(
    'If honours_not_after is declared, a withdrawal that comes later ends with FAILED_PRECONDITION',
    (session) => refusesLate(session, () => withdraw(session, { notAfter: past() })),
  ),
  'withdrawal-late-never-taken': withdrawing.must(
    'A withdrawal that ended with FAILED_PRECONDITION is not found',
    async (session) => {
      const { id, outcome } = late(await withdraw(session, { notAfter: past() }));
      const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
      expect(!answer.found, 'it is found', outcome.exchange, exchange);
    },
  ),
  'withdrawal-abandoned-settles': withdrawing.must(
    'If the sender of a withdrawal gives up, the look-up says for good, once not_after is over, whether it was taken',
    async (session) => {
      const send = (notAfter: Timestamp, timeoutMs: number) => withdraw(session, { notAfter }, timeoutMs);
      await abandoned(
        session,
        send,
        (id) => lookUp(session, id),
        ({ found }) => found,
      );
    },
  ),
  'withdrawal-nonsense-not-taken': withdrawing.must(
    'A withdrawal of nothing, of less, or of more than 10,000,000,000 kobo is not taken',
    async (session) => {
      for (const amountKobo of [0n, -500n, maxKobo + 1n]) {
        const { outcome } = await withdraw(session, { amountKobo });
        const report = outcome.answer?.report;
        expect(report === undefined || report.kind === REJECTED, 'it was taken', outcome.exchange);
      }
    },
  ),
  'withdrawal-listed': needing('Withdrawals', 'Submissions', 'account', 'withdraw').must(
    'A withdrawal is among the submissions, once, with its note',
    (session) => listedOnce(session, () => taken(session)),
  ),
  'withdrawal-complete-until-past': needing('Withdrawals').must(
    'complete_until of the look-up of a withdrawal is never later than now',
    async (session) => completeUntilPast(session, await lookUp(session, session.newId())),
  ),
});

async function notTakenAgain(session: CheckSession, fields: Parameters<typeof withdrawAgain>[2]): Promise<void> {
  const first = await taken(session);
  await withdrawAgain(session, first, fields);
  const { answer, exchange } = needed(await lookUp(session, first.id), 'the look-up');
  const isKept = hasFirst(answer, first.outcome.answer?.report);
  expect(isKept, 'its first report is another', first.outcome.exchange, exchange);
}

/** Whether a look-up begins with a report. */
function hasFirst(
  { found, reports: [first] }: { readonly found: boolean; readonly reports: readonly WithdrawalReport[] },
  report: WithdrawalReport | undefined,
): boolean {
  return found && first !== undefined && report !== undefined && isSameReport(first, report);
}

/** Throws unless an answer has the whole report of a withdrawal. */
function isWhole(report: WithdrawalReport | undefined, id: string, exchange: RecordedCall): void {
  expect(report !== undefined, 'the answer has no report', exchange);
  const problem = report.clientWithdrawalId === id ? reportProblem(report) : `it is of "${report.clientWithdrawalId}"`;
  expect(problem === undefined, `${problem}`, exchange);
}
