import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { AllocationOutcome, AllocationRejectReason } from '../../gen/marina/broker/v1/allocations_pb.ts';
import { allocating, answered, checks, expect, NotRun, needed, needing } from '../check.ts';
import { poll } from '../session.ts';
import { abandoned, completeUntilPast, late, listedOnce, past, refusesLate, takenOnce } from './every-kind.ts';
import {
  allocate,
  available,
  booked,
  isSameRecord,
  isWhole,
  lookUp,
  notBookedAgain,
  recordsKept,
} from './sent-allocations.ts';

const sendsAtOnce = 10;
const maxKobo = 10_000_000_000n;

/** Allocations: money that moves to the account. */
export const allocationChecks = checks({
  'allocations-offered': needing('Allocations').optional('The adapter moves money to accounts', async () => {}),
  'allocation-booked': allocating.must('A good allocation to the named account is booked', async (session) => {
    const { answer, exchange } = answered((await allocate(session)).outcome);
    expect(answer.record?.outcome === AllocationOutcome.BOOKED, 'it was not booked', exchange);
  }),
  'allocation-answer-is-record': allocating.must(
    'The answer to an allocation is the whole record: its id, outcome, time, and the reference of what was booked',
    async (session) => {
      const { id, outcome } = await allocate(session);
      const { answer, exchange } = needed(outcome, 'the send');
      isWhole(answer.record, id, exchange);
    },
  ),
  'allocation-rejection-is-record': needing('Allocations', 'account', 'reject-allocation').must(
    'A rejected allocation is answered with its record, and with no status',
    async (session) => {
      const { id, outcome } = await allocate(session, { amountKobo: session.settings.rejectAllocationKobo });
      const { answer, exchange } = answered(outcome);
      expect(answer.record?.outcome === AllocationOutcome.REJECTED, 'the record is no rejection', exchange);
      isWhole(answer.record, id, exchange);
    },
  ),
  'allocation-rejection-has-reason': needing('Allocations', 'account', 'reject-allocation').should(
    'A rejected allocation has its reason',
    async (session) => {
      const { outcome } = await allocate(session, { amountKobo: session.settings.rejectAllocationKobo });
      const record = outcome.answer?.record;
      if (record?.outcome !== AllocationOutcome.REJECTED) throw new NotRun('the allocation was not rejected');
      const has = record.rejectReason !== AllocationRejectReason.UNSPECIFIED;
      expect(has, 'reject_reason is missing', outcome.exchange);
    },
  ),
  'allocation-once': allocating.must(
    'The id of an allocation that comes again is ALREADY_EXISTS, and its record stays as it was',
    async (session) => notBookedAgain(session, {}),
  ),
  'allocation-once-other-fields': allocating.must(
    'The id of an allocation that comes again with another amount is ALREADY_EXISTS, and nothing is booked',
    async (session) => {
      const { allocateKobo = 0n } = session.settings;
      await notBookedAgain(session, { amountKobo: allocateKobo + 1n, note: Buffer.from('another') });
    },
  ),
  'allocation-once-at-once': allocating.must(
    `Of ${sendsAtOnce} sends of one allocation at the same time, one is taken`,
    async (session) => {
      const clientAllocationId = session.newId();
      const sends = Array.from({ length: sendsAtOnce }, () => allocate(session, { clientAllocationId }));
      takenOnce(await Promise.all(sends));
    },
  ),
  'allocation-in-balance': needing('Allocations', 'Accounts', 'account', 'allocate').should(
    'What was allocated is available to the account, once',
    async (session) => {
      const before = await available(session);
      const first = await booked(session);
      await allocate(session, { clientAllocationId: first.id });
      const expected = before.kobo + BigInt(first.request.amountKobo ?? 0);
      let after = await available(session);
      await poll(session.settings.waits.settleMs, async () => {
        after = await available(session);
        return after.kobo === expected || undefined;
      });
      const shown = [before.exchange, first.outcome.exchange, after.exchange];
      expect(after.kobo === expected, `${after.kobo - before.kobo} kobo more are available`, ...shown);
    },
  ),
  'allocation-look-up-unknown': needing('Allocations').must(
    'The look-up of an allocation that never came has no record, and is no status',
    async (session) => {
      const { answer, exchange } = answered(await lookUp(session, session.newId()));
      expect(answer.record === undefined, 'there is a record', exchange);
    },
  ),
  'allocation-look-up-current': allocating.must(
    'The look-up of an allocation has the record of the answer, at once',
    async (session) => {
      for (let count = 0; count < 3; count += 1) {
        const { id, outcome } = await allocate(session);
        const record = outcome.answer?.record;
        if (record === undefined) throw new NotRun(`the send ended with ${outcome.exchange.status}`);
        const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
        const isSame = answer.record !== undefined && isSameRecord(answer.record, record);
        expect(isSame, 'it does not have that record', outcome.exchange, exchange);
      }
    },
  ),
  'allocation-not-after-honoured': allocating.must(
    'If honours_not_after is declared, an allocation that comes later ends with FAILED_PRECONDITION',
    (session) => refusesLate(session, () => allocate(session, { notAfter: past() })),
  ),
  'allocation-late-never-taken': allocating.must(
    'An allocation that ended with FAILED_PRECONDITION has no record',
    async (session) => {
      const { id, outcome } = late(await allocate(session, { notAfter: past() }));
      const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
      expect(answer.record === undefined, 'there is a record', outcome.exchange, exchange);
    },
  ),
  'allocation-abandoned-settles': allocating.must(
    'If the sender of an allocation gives up, the look-up says for good, once not_after is over, whether it was taken',
    async (session) => {
      const send = (notAfter: Timestamp, timeoutMs: number) => allocate(session, { notAfter }, timeoutMs);
      await abandoned(
        session,
        send,
        (id) => lookUp(session, id),
        ({ record }) => record !== undefined,
      );
    },
  ),
  'allocation-nonsense-not-booked': allocating.must(
    'An allocation of nothing, of less, or of more than 10,000,000,000 kobo is not booked',
    async (session) => {
      for (const amountKobo of [0n, -500n, maxKobo + 1n]) {
        const { outcome } = await allocate(session, { amountKobo });
        const isBooked = outcome.answer?.record?.outcome === AllocationOutcome.BOOKED;
        expect(!isBooked, 'it was booked', outcome.exchange);
      }
    },
  ),
  'allocation-listed': needing('Allocations', 'Submissions', 'account', 'allocate').must(
    'An allocation is among the submissions, once, with its note',
    (session) => listedOnce(session, () => booked(session)),
  ),
  'allocation-complete-until-past': needing('Allocations').must(
    'complete_until of the look-up of an allocation is never later than now',
    async (session) => completeUntilPast(session, await lookUp(session, session.newId())),
  ),
  'allocation-record-kept': allocating.must('The record of an allocation never changes', recordsKept),
});
