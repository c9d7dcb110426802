import {
  AllocationOutcome,
  type AllocationRecord,
  type AllocationRejectReason as BrokersReason,
  AllocationRejectReasonSchema as BrokersReasonSchema,
} from '../../../gen/marina/broker/v1/allocations_pb.ts';
import type { AllocationRejectReason, AllocationState } from '../../../gen/marina/gateway/v1/allocations_pb.ts';
import type { EnumName } from '../../../kit/enums.ts';
import { type Applied, changed, isUnsettled, rejectReasons, statesOf, unchanged } from '../submission/rules.ts';

export type AllocationStateName = EnumName<typeof AllocationState>;

/** The next states of each state. While the outcome is unknown, the amount is reserved. */
export const allocationStates = statesOf<AllocationStateName>('an allocation', {
  sending: ['booked', 'rejected', 'refused', 'uncertain'],
  uncertain: ['booked', 'rejected', 'refused'],
  booked: [],
  rejected: [],
  refused: [],
});

/** The fields of an allocation that decide its outcome. */
export interface AllocationFacts {
  readonly state: AllocationStateName;
  readonly reason: string | null;
  readonly rejectReason: string | null;
  readonly brokerReference: string | null;
  readonly updatedAt: number;
}

/** Whether an allocation counts against its day's limit in each state. */
const isCounted: Readonly<Record<AllocationStateName, boolean>> = {
  sending: true,
  uncertain: true,
  booked: true,
  rejected: false,
  refused: false,
};

/** The amount of an allocation that counts against the day's limit, in kobo; all of it in a state of another version. */
export function countedKobo({ state, amountKobo }: { state: AllocationStateName; amountKobo: bigint }): bigint {
  return (isCounted[state] ?? true) ? amountKobo : 0n;
}

/** The type of the ledger entry for a change of state; undefined if no money moves. */
export function settlementOf(before: AllocationStateName, after: AllocationStateName): 'post' | 'return' | undefined {
  if (!isUnsettled(before) || isUnsettled(after)) return undefined;
  return after === 'booked' ? 'post' : 'return';
}

/** The reason of a refused allocation that the broker has booked. */
const bookedAfterAll =
  'It was reported as never having reached the broker. That was wrong: the broker has booked it, and its amount was returned.';

/**
 * Applies the broker's record, which never changes: for a settled allocation it can only repeat the outcome. Undefined if it
 * does.
 */
export function applyRecord<Row extends AllocationFacts>(
  allocation: Row,
  { outcome, brokerReference, rejectReason }: AllocationRecord,
  now: number,
): Applied<Row> | undefined {
  const { state, reason } = allocation;
  const isBooked = outcome === AllocationOutcome.BOOKED;
  if (!isUnsettled(state)) {
    const isSame = state === (isBooked ? 'booked' : 'rejected');
    // A refused allocation never reached the broker, which agrees with a rejection.
    if (isSame || (state === 'refused' && !isBooked)) return undefined;
    const detail = `the broker's record says ${isBooked ? 'booked' : 'rejected'}, and the allocation is ${state}`;
    if (state !== 'refused' || reason === bookedAfterAll)
      return { ...unchanged(allocation, detail), inconsistent: true };
    const corrected = { ...allocation, reason: bookedAfterAll, updatedAt: Math.max(now, allocation.updatedAt) };
    return { ...changed(corrected, detail), inconsistent: true };
  }
  if (isBooked) {
    const booked = allocationStates.move({ ...allocation, brokerReference }, 'booked', null, now);
    return changed(booked, 'the broker booked it');
  }
  const { word, sentence } = rejectReasonOf(rejectReason);
  const rejected = allocationStates.move({ ...allocation, rejectReason: word }, 'rejected', sentence, now);
  return changed(rejected, `the broker rejected it: ${word}`);
}

/** The sentence of each reject reason, ours and the broker's, which have the same names. */
export const rejectSentences: Readonly<Record<EnumName<typeof AllocationRejectReason>, string>> = {
  account_not_at_broker: 'The broker does not have the account.',
  account_restricted: 'The account takes no money now.',
  amount_not_accepted: 'The broker does not take this amount.',
  rejected_by_broker: 'The broker rejected the allocation.',
};

/** Our name and sentence for a rejection. */
export const rejectReasonOf = rejectReasons<typeof BrokersReason, keyof typeof rejectSentences>(
  BrokersReasonSchema,
  rejectSentences,
  'rejected_by_broker',
);
