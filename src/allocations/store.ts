import {
  binary,
  insertRows,
  instant,
  type SqlRow,
  type SqlValue,
  type Statement,
  statement,
  toBigInt,
} from '../db/statement.ts';
import { AllocationStateSchema } from '../gen/marina/gateway/v1/allocations_pb.ts';
import {
  hasKnownName,
  mustBeLookedAt,
  type SubmissionFields,
  submissionColumns,
  toSubmissionFields,
  toSubmissionRow,
} from '../submission/row-store.ts';
import type { AllocationStateWord } from './rules.ts';

/** What partners see of an allocation. Instants are milliseconds since the epoch. */
export interface ShownAllocation {
  readonly id: string;
  readonly state: AllocationStateWord;
  readonly account: string;
  readonly amountKobo: bigint;
  readonly clientReference: string | null;
  readonly brokerReference: string | null;
  readonly reason: string | null;
  readonly rejectReason: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** An allocation as stored. Instants marked real are not business time. */
export interface StoredAllocation extends ShownAllocation, SubmissionFields {
  /** The Lagos day the allocation counts for, as YYYY-MM-DD. */
  readonly countedDay: string;
  /** By what its state is known, for operators. */
  readonly evidence: string;
}

const shownColumns = [
  'id',
  'state',
  'account',
  'amount_kobo',
  'client_reference',
  'broker_reference',
  'reason',
  'reject_reason',
  'created_at',
  'updated_at',
] as const;

const allColumns = [...shownColumns, ...submissionColumns, 'counted_day', 'evidence'] as const;

const shown = shownColumns.join(', ');
const all = allColumns.join(', ');

export function insertAllocation(allocation: StoredAllocation): Statement {
  const row = toRow(allocation);
  return insertRows('allocations', allColumns, [allColumns.map((column) => row[column])]);
}

function toRow(allocation: StoredAllocation): Record<(typeof allColumns)[number], SqlValue> {
  return {
    id: allocation.id,
    state: allocation.state,
    account: allocation.account,
    amount_kobo: allocation.amountKobo,
    client_reference: binary(allocation.clientReference),
    broker_reference: allocation.brokerReference,
    reason: allocation.reason,
    reject_reason: allocation.rejectReason,
    created_at: new Date(allocation.createdAt),
    updated_at: new Date(allocation.updatedAt),
    ...toSubmissionRow(allocation),
    counted_day: allocation.countedDay,
    evidence: allocation.evidence.slice(0, 300),
  };
}

/** Saves what can change of an allocation. The partner's lock must be held. */
export function updateAllocation(allocation: StoredAllocation): Statement {
  return statement(
    `UPDATE allocations SET state = ?, broker_reference = ?, reason = ?, reject_reason = ?, updated_at = ?,
      idempotency_key = ?, first_answer = ?, evidence = ?, check_at = ?, checks = ?, missing_since = ?, steps = ?
      WHERE partner_id = ? AND id = ?`,
    allocation.state,
    allocation.brokerReference,
    allocation.reason,
    allocation.rejectReason,
    new Date(allocation.updatedAt),
    binary(allocation.idempotencyKey),
    allocation.firstAnswer,
    allocation.evidence.slice(0, 300),
    instant(allocation.checkAt),
    allocation.checks,
    instant(allocation.missingSince),
    allocation.steps,
    allocation.partnerId,
    allocation.id,
  );
}

export function findAllocation(partnerId: string, id: string): Statement {
  return statement(`SELECT ${all} FROM allocations WHERE partner_id = ? AND id = ?`, partnerId, id);
}

/** The same as partners see it. */
export function findShownAllocation(partnerId: string, id: string): Statement {
  return statement(`SELECT ${shown} FROM allocations WHERE partner_id = ? AND id = ?`, partnerId, id);
}

export function findAllocationByKey(partnerId: string, idempotencyKey: string): Statement {
  return statement(
    `SELECT ${all} FROM allocations WHERE partner_id = ? AND idempotency_key = ?`,
    partnerId,
    Buffer.from(idempotencyKey),
  );
}

/** What the ledger must agree with, of some allocations. */
export function findAllocationFacts(partnerId: string, ids: readonly string[]): Statement {
  return statement(
    'SELECT id, state, account, amount_kobo FROM allocations WHERE partner_id = ? AND id IN (?)',
    partnerId,
    ids,
  );
}

const isSettled = hasKnownName('state', AllocationStateSchema, ['sending', 'uncertain']);
/** A condition of rows whose state this version knows. */
export const isKnownAllocation = hasKnownName('state', AllocationStateSchema);

/**
 * Allocations alike that may or may not be at the broker. `now` is real time. In a state of another version an allocation is
 * one of them while the reconciler must look at it.
 */
export function findSimilarUnsettled(
  partnerId: string,
  { account, amountKobo }: Pick<ShownAllocation, 'account' | 'amountKobo'>,
  now: number,
): Statement {
  return statement(
    `SELECT id FROM allocations WHERE partner_id = ? AND NOT ${isSettled} AND account = ? AND amount_kobo = ?
      AND (state = 'uncertain' OR check_at <= ? OR (state <> 'sending' AND check_at IS NOT NULL)) LIMIT 1`,
    partnerId,
    account,
    amountKobo,
    new Date(now),
  );
}

/** Allocations the reconciler must look at, longest due first. `now` is real time. */
export function findDueAllocations(now: number, most: number): Statement {
  const { sql, values } = mustBeLookedAt(now);
  return statement(
    `SELECT ${all} FROM allocations WHERE ${sql} AND ${isKnownAllocation} ORDER BY check_at LIMIT ${most}`,
    ...values,
  );
}

/** Which allocations a list shows. */
export interface AllocationFilters {
  readonly state?: string;
  readonly account?: string;
  readonly clientReference?: string;
  readonly updatedSince?: number;
}

/** A page of a partner's allocations, newest first, after the one with the given id. */
export function listAllocations(
  partnerId: string,
  filters: AllocationFilters,
  beforeId: string | undefined,
  most: number,
): Statement {
  const conditions: [string, SqlValue | undefined][] = [
    ['state = ?', filters.state],
    ['account = ?', filters.account],
    ['client_reference = ?', binary(filters.clientReference ?? null) ?? undefined],
    ['updated_at >= ?', filters.updatedSince === undefined ? undefined : new Date(filters.updatedSince)],
    ['id < ?', beforeId],
  ];
  const used = conditions.filter((condition): condition is [string, SqlValue] => condition[1] !== undefined);
  return statement(
    `SELECT ${shown} FROM allocations WHERE ${['partner_id = ?', ...used.map(([sql]) => sql)].join(' AND ')}
      ORDER BY id DESC LIMIT ${most}`,
    partnerId,
    ...used.map(([, value]) => value),
  );
}

export function toShownAllocation(row: SqlRow): ShownAllocation {
  return {
    id: row.id as string,
    state: row.state as AllocationStateWord,
    account: row.account as string,
    amountKobo: toBigInt(row.amount_kobo),
    clientReference: row.client_reference === null ? null : String(row.client_reference),
    brokerReference: row.broker_reference as string | null,
    reason: row.reason as string | null,
    rejectReason: row.reject_reason as string | null,
    createdAt: (row.created_at as Date).getTime(),
    updatedAt: (row.updated_at as Date).getTime(),
  };
}

export function toStoredAllocation(row: SqlRow): StoredAllocation {
  return {
    ...toShownAllocation(row),
    ...toSubmissionFields(row),
    countedDay: String(row.counted_day),
    evidence: String(row.evidence),
  };
}
