import {
  type Withdrawal,
  type WithdrawalDestination,
  WithdrawalDestinationSchema,
  WithdrawalSchema,
  type WithdrawalState,
  WithdrawalStateSchema,
  type WithdrawalStep,
  WithdrawalStepSchema,
} from '../../../gen/marina/gateway/v1/withdrawals_pb.ts';
import {
  day,
  enumName,
  exactText,
  instant,
  optional,
  type RowOf,
  type ShownBy,
  shortened,
  text,
  whole,
} from '../../store/table.ts';
import { shownMessage } from '../shown-message.ts';
import { defineSubmissions, type objectSteps } from '../submission/table.ts';

/** Withdrawals: each moves money from an account to its partner's wallet or to a bank account. Amounts are in kobo. */
export const withdrawals = defineSubmissions(
  'withdrawals',
  {
    state: enumName<typeof WithdrawalState>(WithdrawalStateSchema, 20),
    account: text(64),
    amountKobo: whole(),
    destination: enumName<typeof WithdrawalDestination>(WithdrawalDestinationSchema, 20),
    clientReference: optional(exactText(64)),
    brokerReference: optional(text(64)),
    /** The Lagos day it was created on, by which lists find what has changed. */
    countedDay: day(),
    /** The number of the last report applied. */
    lastReport: whole(),
    /** The number of the last report that a version passed over because it did not know the withdrawal. */
    missedReport: whole(),
    /** Business time until which it waits for its release by operators; null: it does not wait. */
    heldUntil: optional(instant()),
    /** Business time at which operators released it; null: it did not wait. */
    releasedAt: optional(instant()),
    /** By what its state is known, for operators. */
    evidence: shortened(300),
  },
  {
    // For lists, which name those of their filters.
    withdrawals_state: ['partnerId', 'state', 'id'],
    withdrawals_account: ['partnerId', 'account', 'id'],
    withdrawals_client_reference: ['partnerId', 'clientReference', 'id'],
    withdrawals_updated_at: ['partnerId', 'updatedAt', 'id'],
    withdrawals_counted_day: ['partnerId', 'countedDay', 'updatedAt', 'id'],
    // For operators.
    withdrawals_held_until: ['heldUntil', 'id'],
    withdrawals_broker_reference: ['brokerReference', 'id'],
  },
);

export type StoredWithdrawal = RowOf<typeof withdrawals>;

/** The fields of a withdrawal that partners see. */
export const shownWithdrawal = withdrawals.only(
  ...(['id', 'state', 'account', 'amountKobo', 'destination', 'clientReference', 'brokerReference'] as const),
  ...(['reason', 'rejectReason', 'createdAt', 'updatedAt'] as const),
);
export type ShownWithdrawal = ShownBy<typeof shownWithdrawal>;

/** The fields of a withdrawal in its note to the broker. */
export const notedWithdrawal = [
  ...([
    'account',
    'amountKobo',
    'destination',
    'clientReference',
    'createdAt',
    'countedDay',
    'notAfter',
    'releasedAt',
  ] as const),
];

/** The withdrawal as partners see it, in answers and in events alike. */
export function toWithdrawalMessage(withdrawal: ShownWithdrawal): Withdrawal {
  return shownMessage(WithdrawalSchema, withdrawal);
}

/** One step of a withdrawal's history as partners see it. */
export function toStepMessage(step: RowOf<typeof objectSteps>): WithdrawalStep {
  return shownMessage(WithdrawalStepSchema, step, { sequence: BigInt(step.sequence) });
}
