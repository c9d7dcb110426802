import { toJsonString } from '@bufbuild/protobuf';
import {
  AllocationOutcome,
  type AllocationRecord,
  AllocationRecordSchema,
  AllocationRejectReason,
} from '../../gen/marina/broker/v1/allocations_pb.ts';
import { expect, NotRun, needed } from '../check.ts';
import type { RecordedCall } from '../exchange.ts';
import type { CheckSession, SentAllocation } from '../session.ts';
import { refusedAgain } from './every-kind.ts';

const longestReference = 64;

type Fields = Partial<SentAllocation['request']>;

/** Throws unless the look-up of each allocation of this run has the record of its answer. */
export async function recordsKept(session: CheckSession): Promise<void> {
  for (const { id, outcome } of session.allocations) {
    const record = outcome.answer?.record;
    if (record === undefined) continue;
    const { answer, exchange } = needed(await lookUp(session, id), 'the look-up');
    const isSame = answer.record !== undefined && isSameRecord(answer.record, record);
    expect(isSame, `the record of ${id} is not as it was answered`, outcome.exchange, exchange);
  }
}

/** Sends an allocation, once. */
export async function allocate(
  session: CheckSession,
  fields: Fields = {},
  timeoutMs?: number,
): Promise<SentAllocation> {
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
export async function booked(session: CheckSession): Promise<SentAllocation> {
  const sent = await allocate(session);
  const { answer, exchange } = sent.outcome;
  if (answer?.record?.outcome !== AllocationOutcome.BOOKED) throw new NotRun(`none was booked: ${exchange.status}`);
  return sent;
}

export async function notBookedAgain(session: CheckSession, fields: Fields): Promise<void> {
  const first = await booked(session);
  await allocateAgain(session, first, fields);
  const { answer, exchange } = needed(await lookUp(session, first.id), 'the look-up');
  const record = first.outcome.answer?.record;
  const isSame = record !== undefined && answer.record !== undefined && isSameRecord(answer.record, record);
  expect(isSame, 'the record is another', first.outcome.exchange, exchange);
}

/** Sends an id again, and throws unless it is refused. */
export async function allocateAgain(session: CheckSession, first: SentAllocation, fields: Fields = {}): Promise<void> {
  const again = { ...first.request, notAfter: session.inTime(), ...fields, clientAllocationId: first.id };
  refusedAgain(first, await session.call('Allocations', 'submitAllocation', again as never));
}

export function lookUp(session: CheckSession, clientAllocationId: string) {
  return session.call('Allocations', 'lookUpAllocation', { clientAllocationId });
}

export async function available(session: CheckSession) {
  const { answer, exchange } = await session.call('Accounts', 'getBalance', { account: session.account });
  if (answer === undefined) throw new NotRun(`the balance ended with ${exchange.status}`);
  return { kobo: answer.availableKobo, exchange };
}

export function isSameRecord(one: AllocationRecord, other: AllocationRecord): boolean {
  return toJsonString(AllocationRecordSchema, one) === toJsonString(AllocationRecordSchema, other);
}

/** Throws unless an answer has the whole record of an allocation. */
export function isWhole(record: AllocationRecord | undefined, id: string, exchange: RecordedCall): void {
  expect(record !== undefined, 'the answer has no record', exchange);
  const problem = recordProblem(record, id);
  expect(problem === undefined, `${problem}`, exchange);
}

/** Returns the error in a record. The gateway takes such an answer for none. */
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
