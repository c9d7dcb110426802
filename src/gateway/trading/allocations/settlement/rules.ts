import type { AllocationRecord } from '../../../../gen/marina/broker/v1/allocations_pb.ts';
import { AllocationOutcome } from '../../../../gen/marina/broker/v1/allocations_pb.ts';
import {
  type Applied,
  isBeforeStored,
  isToCome,
  type Settled,
  type Settling,
  unchanged,
} from '../../submission/rules.ts';
import { type AllocationFacts, applyRecord, rejectSentences } from '../rules.ts';

/** The outcome of an allocation by the evidence. */
export interface AllocationSettlement {
  readonly state: 'booked' | 'rejected' | 'refused';
  /** Only of a booked one. */
  readonly brokerReference: string | undefined;
  /** Only of a rejected one. */
  readonly rejectReason: keyof typeof rejectSentences | undefined;
  /** When the broker booked or rejected it. */
  readonly decidedAt: number | undefined;
}

export interface SettledAllocationFacts extends AllocationFacts {
  readonly createdAt: number;
  readonly settlement: string | null;
}

/** In the column `settlement`: a later record of the broker does not change it. */
const settled = 'settled';

/** The change that an operator's settlement makes. `now` is business time. */
export function settleAllocation<Row extends SettledAllocationFacts>(
  allocation: Row,
  settlement: AllocationSettlement,
  now: number,
): Settling<Row> {
  const problem = problemOf(allocation, settlement, now);
  if (problem !== undefined) return { problem };
  const { state, brokerReference, rejectReason, decidedAt } = settlement;
  const fields: Partial<SettledAllocationFacts> = {
    ...{ state, settlement: settled, updatedAt: Math.max(now, allocation.updatedAt) },
    ...(brokerReference === undefined ? {} : { brokerReference }),
    rejectReason: rejectReason ?? null,
    reason: rejectReason === undefined ? reasons[state] : rejectSentences[rejectReason],
  };
  const change: Settled<Row> = {
    fields: fields as Partial<Row>,
    detail: details[state],
    step: { upstreamAt: decidedAt },
  };
  return { changes: [change] };
}

const reasons = { booked: null, rejected: null, refused: 'It never reached the broker.' } as const;
const details = {
  booked: 'the broker booked it',
  rejected: 'the broker rejected it',
  refused: 'it never reached the broker',
} as const;

function problemOf(
  { state: before, createdAt }: SettledAllocationFacts,
  { state, brokerReference, rejectReason, decidedAt }: AllocationSettlement,
  now: number,
): string | undefined {
  if (before !== 'uncertain') return `an allocation that is ${before} cannot be settled as ${state}`;
  if ((state === 'booked') !== (brokerReference !== undefined)) {
    return '`broker_reference` is needed for `booked`, and only then';
  }
  if ((state === 'rejected') !== (rejectReason !== undefined))
    return '`reject_reason` is needed for `rejected`, and only then';
  if ((state !== 'refused') !== (decidedAt !== undefined)) {
    return '`decided_at` is needed for what the broker booked or rejected, and only then';
  }
  if (decidedAt !== undefined && (isBeforeStored(decidedAt, createdAt, now) || isToCome(decidedAt, now))) {
    return '`decided_at` is before the allocation was stored, or in the future';
  }
  return undefined;
}

/**
 * Applies the broker's record to an allocation that may have been settled by an operator. A record that says otherwise is
 * inconsistent with the settlement, which stays.
 */
export function applyReport<Row extends SettledAllocationFacts>(
  allocation: Row,
  record: AllocationRecord,
  now: number,
): Applied<Row> | undefined {
  const applied = applyRecord(allocation, record, now);
  // The reason of one that was settled as refused, and that the broker has booked after all, is corrected as any other's.
  if (allocation.settlement === null || (allocation.state === 'refused' && applied?.changed)) return applied;
  const isOtherBooking =
    allocation.state === 'booked' &&
    record.outcome === AllocationOutcome.BOOKED &&
    record.brokerReference !== allocation.brokerReference;
  if (isOtherBooking) {
    const detail = "the broker's record has another reference than the one that the operator settled";
    return { ...unchanged(allocation, detail), inconsistent: true };
  }
  return applied && { ...unchanged(allocation, applied.detail), inconsistent: true };
}
