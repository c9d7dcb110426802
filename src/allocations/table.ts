import { type Statement, statement } from '../db/statement.ts';
import {
  day,
  defineTable,
  exactText,
  optional,
  type RowOf,
  type ShownBy,
  shortened,
  text,
  whole,
} from '../db/table.ts';
import { AllocationStateSchema } from '../gen/marina/gateway/v1/allocations_pb.ts';
import { hasKnownName, submissionColumns, submissionIndexes } from '../submission/table.ts';
import type { AllocationStateName } from './rules.ts';

const { indexes, unique } = submissionIndexes('allocations');

/** Allocations: each moves money from its partner's wallet to an account. Amounts are in kobo. */
export const allocations = defineTable({
  name: 'allocations',
  columns: {
    ...submissionColumns,
    state: text<AllocationStateName>(20),
    account: text(64),
    amountKobo: whole(),
    clientReference: optional(exactText(64)),
    brokerReference: optional(text(64)),
    /** The Lagos day the allocation counts for. */
    countedDay: day(),
    /** By what its state is known, for operators. */
    evidence: shortened(300),
  },
  primary: ['partnerId', 'id'],
  indexes: {
    ...indexes,
    allocations_state: ['partnerId', 'state', 'id'],
    allocations_account: ['partnerId', 'account', 'id'],
    allocations_client_reference: ['partnerId', 'clientReference', 'id'],
    allocations_updated_at: ['partnerId', 'updatedAt', 'id'],
  },
  unique,
});

export type StoredAllocation = RowOf<typeof allocations>;

/** What partners see of an allocation. */
export const shownAllocation = allocations.only(
  ...(['id', 'state', 'account', 'amountKobo', 'clientReference', 'brokerReference'] as const),
  ...(['reason', 'rejectReason', 'createdAt', 'updatedAt'] as const),
);
export type ShownAllocation = ShownBy<typeof shownAllocation>;

/** What a note to the broker keeps of an allocation. */
export const notedAllocation = [
  ...(['account', 'amountKobo', 'clientReference', 'createdAt', 'countedDay', 'notAfter'] as const),
];

/** A condition that is true for allocations that this version knows. */
export const isKnownAllocationSql = hasKnownName('state', AllocationStateSchema);

const isSettled = hasKnownName('state', AllocationStateSchema, ['sending', 'uncertain']);

/**
 * Finds an allocation alike that may or may not be at the broker. `now` is real time. An allocation in a state of another
 * version counts while the reconciler must look at it.
 */
export function findSimilarUnsettled({ partnerId, account, amountKobo }: StoredAllocation, now: number): Statement {
  const alike = allocations.where({ partnerId, account, amountKobo });
  return statement(
    `SELECT 1 FROM allocations WHERE ${alike.sql} AND NOT ${isSettled}
      AND (state = 'uncertain' OR check_at <= ? OR (state <> 'sending' AND check_at IS NOT NULL)) LIMIT 1`,
    ...alike.values,
    new Date(now),
  );
}
