import { toJsonString } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  AllocationOutcome,
  type AllocationRecord,
  AllocationRecordSchema,
  AllocationRejectReason,
} from '../../gen/marina/broker/v1/allocations_pb.ts';
import { pause } from '../../lib/worker.ts';
import { checks, expect, must, NotOffered, NotRun, optional, should } from '../check.ts';
import { poll, type SentAllocation, type Session } from '../session.ts';
import { declared, past } from './orders.ts';
import { lastSubmission, listedAfter } from './submissions.ts';

const sendsAtOnce = 10;
const abandonedSends = 5;
/** How long an allocation that its sender gives up at once may still be taken. */
const abandonedMs = 400;
const longestReference = 64;
const mostKobo = 10_000_000_000n;
const never = new AbortController().signal;

type Fields = Partial<SentAllocation['request']>;

/** Allocations: money that moves to the account. */
export const allocationChecks = checks({
  'allocations-offered': optional('The adapter moves money to accounts', ['Allocations'], async () => {}),
  'allocation-booked': must(
    'A good allocation to the named account is booked',
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      const { outcome } = await allocate(session);
      const { answer, exchange } = outcome;
      expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
      expect(answer.record?.outcome === AllocationOutcome.BOOKED, 'it was not booked', exchange);
    },
  ),
  'allocation-answer-is-record': must(
    'The answer to an allocation is the whole record: its id, outcome, time, and the reference of what was booked',
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      const { id, outcome } = await allocate(session);
      const { answer, exchange } = outcome;
      if (answer === undefined) throw new NotRun(`the send ended with ${exchange.status}`);
      expect(answer.record !== undefined, 'the answer has no record', exchange);
      const problem = recordProblem(answer.record, id);
      expect(problem === undefined, `${problem}`, exchange);
    },
  ),
  'allocation-rejection-is-record': must(
    'A rejected allocation is answered with its record, and with no status',
    ['Allocations', 'account', 'reject-allocation'],
    async (session) => {
      const { id, outcome } = await allocate(session, { amountKobo: session.settings.rejectAllocationKobo });
      const { answer, exchange } = outcome;
      expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
      expect(answer.record?.outcome === AllocationOutcome.REJECTED, 'the record is no rejection', exchange);
      const problem = recordProblem(answer.record, id);
      expect(problem === undefined, `${problem}`, exchange);
    },
  ),
  'allocation-rejection-has-reason': should(
    'A rejected allocation has its reason',
    ['Allocations', 'account', 'reject-allocation'],
    async (session) => {
      const { outcome } = await allocate(session, { amountKobo: session.settings.rejectAllocationKobo });
      const record = outcome.answer?.record;
      if (record?.outcome !== AllocationOutcome.REJECTED) throw new NotRun('the allocation was not rejected');
      const has = record.rejectReason !== AllocationRejectReason.UNSPECIFIED;
      expect(has, 'reject_reason is missing', outcome.exchange);
    },
  ),
  'allocation-once': must(
    'The id of an allocation that comes again is ALREADY_EXISTS, and its record stays as it was',
    ['Allocations', 'account', 'allocate'],
    async (session) => notBookedAgain(session, {}),
  ),
  'allocation-once-other-fields': must(
    'The id of an allocation that comes again with another amount is ALREADY_EXISTS, and nothing is booked',
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      const { allocateKobo = 0n } = session.settings;
      await notBookedAgain(session, { amountKobo: allocateKobo + 1n, note: Buffer.from('another') });
    },
  ),
  'allocation-once-at-once': must(
    `Of ${sendsAtOnce} sends of one allocation at the same time, one is taken`,
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      const clientAllocationId = session.newId();
      const sent = await Promise.all(
        Array.from({ length: sendsAtOnce }, () => allocate(session, { clientAllocationId })),
      );
      const taken = sent.filter(({ outcome }) => outcome.answer !== undefined);
      const shown = taken.map(({ outcome }) => outcome.exchange);
      expect(taken.length <= 1, `${taken.length} were answered with a record`, ...shown);
    },
  ),
  'allocation-in-balance': should(
    'What was allocated is available to the account, once',
    ['Allocations', 'Accounts', 'account', 'allocate'],
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
  'allocation-look-up-unknown': must(
    'The look-up of an allocation that never came has no record, and is no status',
    ['Allocations'],
    async (session) => {
      const { answer, exchange } = await lookUp(session, session.newId());
      expect(answer !== undefined, `it ended with ${exchange.status}`, exchange);
      expect(answer.record === undefined, 'there is a record', exchange);
    },
  ),
  'allocation-look-up-current': must(
    'The look-up of an allocation has the record of the answer, at once',
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      for (let count = 0; count < 3; count += 1) {
        const { id, outcome } = await allocate(session);
        const record = outcome.answer?.record;
        if (record === undefined) throw new NotRun(`the send ended with ${outcome.exchange.status}`);
        const { answer, exchange } = await lookUp(session, id);
        if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
        const isSame = answer.record !== undefined && isSameRecord(answer.record, record);
        expect(isSame, 'it does not have that record', outcome.exchange, exchange);
      }
    },
  ),
  'allocation-not-after-honoured': must(
    'If honours_not_after is declared, an allocation that comes later ends with FAILED_PRECONDITION',
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      await declared(session);
      const { outcome } = await allocate(session, { notAfter: past() });
      const { exchange } = outcome;
      expect(exchange.status === 'FAILED_PRECONDITION', `it ended with ${exchange.status}`, exchange);
    },
  ),
  'allocation-late-never-taken': must(
    'An allocation that ended with FAILED_PRECONDITION has no record',
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      const { id, outcome } = await allocate(session, { notAfter: past() });
      if (outcome.code !== status.FAILED_PRECONDITION) {
        throw new NotRun(`the send ended with ${outcome.exchange.status}`);
      }
      const { answer, exchange } = await lookUp(session, id);
      if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
      expect(answer.record === undefined, 'there is a record', outcome.exchange, exchange);
    },
  ),
  'allocation-abandoned-settles': must(
    'If the sender of an allocation gives up, the look-up says for good, once not_after is over, whether it was taken',
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      await declared(session);
      const notAfterMs = Date.now() + abandonedMs;
      const sent = await Promise.all(
        Array.from({ length: abandonedSends }, (_, at) =>
          allocate(session, { notAfter: timestampFromMs(notAfterMs) }, 1 + at),
        ),
      );
      await pause(Math.max(0, notAfterMs + session.settings.waits.skewMs - Date.now()), never);
      const first = await Promise.all(sent.map(({ id }) => lookUp(session, id)));
      await pause(abandonedMs, never);
      for (const [at, { id, outcome }] of sent.entries()) {
        const before = first[at];
        const { answer, exchange } = await lookUp(session, id);
        if (before?.answer === undefined || answer === undefined) continue;
        const isSame = (before.answer.record === undefined) === (answer.record === undefined);
        expect(isSame, 'the look-up changed its mind after not_after', outcome.exchange, before.exchange, exchange);
      }
    },
  ),
  'allocation-nonsense-not-booked': must(
    'An allocation of nothing, of less, or of more than 10,000,000,000 kobo is not booked',
    ['Allocations', 'account', 'allocate'],
    async (session) => {
      for (const amountKobo of [0n, -500n, mostKobo + 1n]) {
        const { outcome } = await allocate(session, { amountKobo });
        const isBooked = outcome.answer?.record?.outcome === AllocationOutcome.BOOKED;
        expect(!isBooked, 'it was booked', outcome.exchange);
      }
    },
  ),
  'allocation-listed': must(
    'An allocation is among the submissions, once, with its note',
    ['Allocations', 'Submissions', 'account', 'allocate'],
    async (session) => {
      const before = await lastSubmission(session);
      const { id, request, outcome } = await booked(session);
      const { submissions, exchanges } = await listedAfter(session, before);
      const found = submissions.filter(({ clientId }) => clientId === id);
      expect(found.length === 1, `${id} is listed ${found.length} times`, outcome.exchange, ...exchanges);
      const isKept = Buffer.from(found[0]?.note ?? []).equals(Buffer.from(request.note ?? []));
      expect(isKept, 'its note is another', outcome.exchange, ...exchanges);
    },
  ),
  'allocation-complete-until-past': must(
    'complete_until of the look-up of an allocation is never later than now',
    ['Allocations'],
    async (session) => {
      const { answer, exchange, endedAt } = await lookUp(session, session.newId());
      if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
      if (answer.completeUntil === undefined) throw new NotOffered('complete_until is absent');
      const aheadMs = timestampMs(answer.completeUntil) - endedAt;
      expect(aheadMs <= session.settings.waits.skewMs, `it is ${aheadMs} ms ahead`, exchange);
    },
  ),
  'allocation-record-kept': must(
    'The record of an allocation never changes',
    ['Allocations', 'account', 'allocate'],
    recordsKept,
  ),
});

/** Throws unless the look-up of each allocation of this run has the record of its answer. */
export async function recordsKept(session: Session): Promise<void> {
  for (const { id, outcome } of session.allocations) {
    const record = outcome.answer?.record;
    if (record === undefined) continue;
    const { answer, exchange } = await lookUp(session, id);
    if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
    const isSame = answer.record !== undefined && isSameRecord(answer.record, record);
    expect(isSame, `the record of ${id} is not as it was answered`, outcome.exchange, exchange);
  }
}

/** Sends an allocation, once. */
export async function allocate(session: Session, fields: Fields = {}, timeoutMs?: number): Promise<SentAllocation> {
  const id = fields.clientAllocationId ?? session.newId();
  const request = {
    clientAllocationId: id,
    account: session.account,
    amountKobo: session.settings.allocateKobo ?? 0n,
    notAfter: session.inTime(),
    note: Buffer.from(`note of ${id}`),
    ...fields,
  } as SentAllocation['request'];
  const outcome = await session.call('Allocations', 'submitAllocation', request, timeoutMs);
  const sent = { id, request, outcome };
  session.allocations.push(sent);
  return sent;
}

/** Sends one that is booked. Throws `NotRun` if it is not. */
export async function booked(session: Session): Promise<SentAllocation> {
  const sent = await allocate(session);
  const { answer, exchange } = sent.outcome;
  if (answer?.record?.outcome !== AllocationOutcome.BOOKED) throw new NotRun(`none was booked: ${exchange.status}`);
  return sent;
}

async function notBookedAgain(session: Session, fields: Fields): Promise<void> {
  const first = await booked(session);
  await refusedAgain(session, first, fields);
  const { answer, exchange } = await lookUp(session, first.id);
  if (answer === undefined) throw new NotRun(`the look-up ended with ${exchange.status}`);
  const record = first.outcome.answer?.record;
  const isSame = record !== undefined && answer.record !== undefined && isSameRecord(answer.record, record);
  expect(isSame, 'the record is another', first.outcome.exchange, exchange);
}

/** Sends an id again, and throws unless it is refused. */
export async function refusedAgain(session: Session, first: SentAllocation, fields: Fields = {}): Promise<void> {
  const again = { ...first.request, notAfter: session.inTime(), ...fields, clientAllocationId: first.id };
  const { code, exchange } = await session.call('Allocations', 'submitAllocation', again as never);
  const isRefused = code === status.ALREADY_EXISTS;
  expect(isRefused, `the second send ended with ${exchange.status}`, first.outcome.exchange, exchange);
}

function lookUp(session: Session, clientAllocationId: string) {
  return session.call('Allocations', 'lookUpAllocation', { clientAllocationId });
}

async function available(session: Session) {
  const { answer, exchange } = await session.call('Accounts', 'getBalance', { account: session.account });
  if (answer === undefined) throw new NotRun(`the balance ended with ${exchange.status}`);
  return { kobo: answer.availableKobo, exchange };
}

function isSameRecord(one: AllocationRecord, other: AllocationRecord): boolean {
  return toJsonString(AllocationRecordSchema, one) === toJsonString(AllocationRecordSchema, other);
}

/** What is wrong with a record. The gateway takes such an answer for none. */
function recordProblem(record: AllocationRecord, id: string): string | undefined {
  const { clientAllocationId, outcome, brokerReference, rejectReason, at } = record;
  if (clientAllocationId !== id) return `the record is of "${clientAllocationId}"`;
  if (at === undefined) return 'it has no time';
  if (outcome === AllocationOutcome.UNSPECIFIED) return 'it has no outcome';
  if (outcome === AllocationOutcome.REJECTED) {
    return brokerReference === '' ? undefined : 'it is rejected, and has a reference';
  }
  if (brokerReference === '') return 'it is booked, and has no reference';
  if (brokerReference.length > longestReference) return `its reference is longer than ${longestReference}`;
  return rejectReason === AllocationRejectReason.UNSPECIFIED
    ? undefined
    : 'it is booked, and has a reason to reject it';
}
