import {
  type Allocation,
  AllocationSchema,
  type AllocationState,
  AllocationStateSchema,
} from '../../../gen/marina/gateway/v1/allocations_pb.ts';
import {
  day,
  enumName,
  exactText,
  optional,
  type RowOf,
  type ShownBy,
  shortened,
  text,
  whole,
} from '../../store/table.ts';
import { shownMessage } from '../shown-message.ts';
import { defineSubmissions } from '../submission/table.ts';

/** Allocations: each moves money from its partner's wallet to an account. Amounts are in kobo. */
export const allocations = defineSubmissions(
  'allocations',
  {
    state: enumName<typeof AllocationState>(AllocationStateSchema, 20),
    account: text(64),
    amountKobo: whole(),
    clientReference: optional(exactText(64)),
    brokerReference: optional(text(64)),
    /** The Lagos day the allocation counts for. */
    countedDay: day(),
    /** By what its state is known, for operators. */
    evidence: shortened(300),
  },
  {
    // For lists, which name those of their filters.
    allocations_state: ['partnerId', 'state', 'id'],
    allocations_account: ['partnerId', 'account', 'id'],
    allocations_client_reference: ['partnerId', 'clientReference', 'id'],
    allocations_updated_at: ['partnerId', 'updatedAt', 'id'],
    allocations_counted_day: ['partnerId', 'countedDay', 'updatedAt', 'id'],
    // For operators.
    allocations_broker_reference: ['brokerReference', 'id'],
  },
);

export type StoredAllocation = RowOf<typeof allocations>;

/** The fields of an allocation that partners see. */
export const shownAllocation = allocations.only(
  ...(['id', 'state', 'account', 'amountKobo', 'clientReference', 'brokerReference'] as const),
  ...(['reason', 'rejectReason', 'createdAt', 'updatedAt'] as const),
);
export type ShownAllocation = ShownBy<typeof shownAllocation>;

/** The fields of an allocation in its note to the broker. */
export const notedAllocation = [
  ...(['account', 'amountKobo', 'clientReference', 'createdAt', 'countedDay', 'notAfter'] as const),
];

/** The allocation as partners see it, in answers and in events alike. */
export function toAllocationMessage(allocation: ShownAllocation): Allocation {
  return shownMessage(AllocationSchema, allocation);
}
