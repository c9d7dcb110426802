/**
 * The rule of evidence: what each thing that an exchange can say proves of an order, by the state that it is known in. docs/FIX-EVIDENCE.md
 * has the same table for people. A proof changes an order only if identity, price and counts convince too (`weigh`).
 */
import type { FindingKind, FixEnd, FixOrderState } from '../store/table.ts';
import type { ExecutionMeaning } from './execution.ts';

/**
 * What a statement proves:
 * - `nothing`: it says what is known, or what no longer matters.
 * - `alive`: the order lives. If it had ended with shares left, that is contradicted.
 * - `acknowledged`: the exchange has seen the order, and may still reject it.
 * - `accepted`: the exchange has the order.
 * - `trade`: shares traded, if the counts agree or the finding says that they do not.
 * - `cancelled`, `expired`, `rejected`: the order has ended, if the counts agree.
 * - `change`: a trade was taken back or changed: a fact for later counts, and a finding.
 * - `unknown`: the exchange says that it does not have the order; what that proves, `provesAbsence` decides.
 * - a finding: it proves nothing, and a person must look.
 */
export type Proof =
  | 'nothing'
  | 'alive'
  | 'acknowledged'
  | 'accepted'
  | 'trade'
  | FixEnd
  | 'change'
  | 'unknown'
  | { readonly finding: FindingKind };

const finding = (kind: FindingKind): Proof => ({ finding: kind });

const revived = finding('revived');
const notUnderstood = finding('not_understood');
const unproven = finding('rejection_unproven');

export const evidence: Readonly<Record<ExecutionMeaning, Readonly<Record<FixOrderState, Proof>>>> = {
  pending: { unsent: revived, sending: 'acknowledged', open: 'nothing', final: 'alive' },
  new: { unsent: 'accepted', sending: 'accepted', open: 'accepted', final: 'alive' },
  trade: { unsent: 'trade', sending: 'trade', open: 'trade', final: 'trade' },
  cancelled: { unsent: 'cancelled', sending: 'cancelled', open: 'cancelled', final: 'nothing' },
  expired: { unsent: 'expired', sending: 'expired', open: 'expired', final: 'nothing' },
  rejected: { unsent: 'nothing', sending: 'rejected', open: 'rejected', final: 'nothing' },
  rejected_when_asked: { unsent: 'nothing', sending: unproven, open: unproven, final: 'nothing' },
  duplicate: { unsent: notUnderstood, sending: notUnderstood, open: notUnderstood, final: notUnderstood },
  restated: { unsent: 'accepted', sending: 'accepted', open: 'accepted', final: 'alive' },
  replaced: {
    unsent: finding('restated'),
    sending: finding('restated'),
    open: finding('restated'),
    final: finding('restated'),
  },
  trade_cancelled: { unsent: 'change', sending: 'change', open: 'change', final: 'change' },
  trade_corrected: { unsent: 'change', sending: 'change', open: 'change', final: 'change' },
  other: { unsent: notUnderstood, sending: notUnderstood, open: notUnderstood, final: notUnderstood },
  pending_status: { unsent: revived, sending: 'acknowledged', open: 'nothing', final: 'alive' },
  live_status: { unsent: 'accepted', sending: 'accepted', open: 'accepted', final: finding('end_contradicted') },
  filled_status: { unsent: 'accepted', sending: 'accepted', open: 'accepted', final: 'alive' },
  cancelled_status: { unsent: 'cancelled', sending: 'cancelled', open: 'cancelled', final: 'nothing' },
  expired_status: { unsent: 'expired', sending: 'expired', open: 'expired', final: 'nothing' },
  unknown_status: { unsent: 'nothing', sending: 'unknown', open: 'unknown', final: 'nothing' },
  rejected_status: {
    unsent: 'nothing',
    sending: finding('status_rejected'),
    open: finding('status_rejected'),
    final: 'nothing',
  },
  other_status: { unsent: notUnderstood, sending: notUnderstood, open: notUnderstood, final: notUnderstood },
};

/** OrdStatus (39) that may stand with each end. A request to cancel or replace that is pending outranks the end. */
export const statusesOfEnd: Readonly<Record<FixEnd, readonly string[]>> = {
  cancelled: ['4', '6', 'E'],
  expired: ['C', '3', '6', 'E'],
  rejected: ['8'],
};

/** OrdStatus (39) of an order that has ended. */
export const endStatuses: ReadonlySet<string> = new Set(Object.values(statusesOfEnd).flat());

/** ExecType (150) that an answer "unknown order" may have: any other one names something that happened to an order. */
export const typesOfUnknown: ReadonlySet<string> = new Set(['I', '8']);

/**
 * ExecType (150) of reports that may come late, with a count that once was true: New, Pending New, Pending Cancel and Pending
 * Replace. All others have the present count.
 */
export const lateTypes: ReadonlySet<string> = new Set(['0', 'A', '6', 'E']);

/** The facts that are known when the exchange answers that it does not have an order. */
export interface AbsenceFacts {
  /** The time after which the counterparty certifies that it knows of an order it has read, in milliseconds; 0: it does not. */
  readonly certifiedAfterMs: number;
  /** The database was restored from a backup, and may lack what the exchange said. */
  readonly isRestored: boolean;
  /** Nothing is known of the order since it was sent. */
  readonly isInDoubt: boolean;
  /** The numbering in which the order was sent is the present one. */
  readonly isSameNumbering: boolean;
  readonly isAcknowledged: boolean;
  /** A message of the exchange was passed over since the order was sent. */
  readonly isPassedOver: boolean;
  /** The question and its answer were on one connection. */
  readonly isOneConnection: boolean;
  /** How long before the question the order was written; if over an earlier connection, how long that one has been over. */
  readonly writtenForMs: number;
  /** The exchange asked for the order's number again before a later connection was up, so it had not read it. */
  readonly isNeverRead: boolean;
}

/** Whether an order is proven to be absent for ever. All of it must hold; what does not convince leaves the order in doubt. */
export function provesAbsence(facts: AbsenceFacts): boolean {
  const isCertified = facts.certifiedAfterMs > 0 && !facts.isRestored;
  const isUntouched = facts.isInDoubt && !facts.isAcknowledged && !facts.isPassedOver;
  const hadTime = facts.isNeverRead || facts.writtenForMs >= facts.certifiedAfterMs;
  return isCertified && isUntouched && facts.isSameNumbering && facts.isOneConnection && hadTime;
}
