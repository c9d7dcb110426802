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
import { ApplicationStateSchema } from '../gen/marina/gateway/v1/applications_pb.ts';
import {
  hasKnownName,
  mustBeLookedAt,
  type SubmissionFields,
  submissionColumns,
  toSubmissionFields,
  toSubmissionRow,
} from '../submission/row-store.ts';
import type { ApplicationFacts, ApplicationStateWord } from './rules.ts';

/** What partners see of an application. Instants are milliseconds since the epoch. */
export interface ShownApplication {
  readonly id: string;
  readonly state: ApplicationStateWord;
  readonly reference: string | null;
  readonly account: string | null;
  readonly reason: string | null;
  readonly rejectReason: string | null;
  readonly param: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** An application as stored: nothing of the customer is. Instants marked real are not business time. */
export interface StoredApplication extends ShownApplication, ApplicationFacts, SubmissionFields {
  /** By what its state is known, for operators. */
  readonly evidence: string;
  /** The number of the last report that a version passed over because it did not know the application. */
  readonly missedReport: bigint;
}

const shownColumns = [
  'id',
  'state',
  'reference',
  'account',
  'reason',
  'reject_reason',
  'param',
  'created_at',
  'updated_at',
] as const;

const allColumns = [...shownColumns, ...submissionColumns, 'last_report', 'evidence', 'missed_report'] as const;

const shown = shownColumns.join(', ');
const all = allColumns.join(', ');

export function insertApplication(application: StoredApplication): Statement {
  const row = toRow(application);
  return insertRows('applications', allColumns, [allColumns.map((column) => row[column])]);
}

function toRow(application: StoredApplication): Record<(typeof allColumns)[number], SqlValue> {
  return {
    id: application.id,
    state: application.state,
    reference: application.reference,
    account: application.account,
    reason: application.reason,
    reject_reason: application.rejectReason,
    param: application.param,
    created_at: new Date(application.createdAt),
    updated_at: new Date(application.updatedAt),
    ...toSubmissionRow(application),
    last_report: application.lastReport,
    evidence: application.evidence.slice(0, 300),
    missed_report: application.missedReport,
  };
}

/** Saves what can change of an application. The partner's lock must be held. */
export function updateApplication(application: StoredApplication): Statement {
  return statement(
    `UPDATE applications SET state = ?, reference = ?, account = ?, reason = ?, reject_reason = ?, param = ?,
      updated_at = ?, idempotency_key = ?, first_answer = ?, last_report = ?, evidence = ?, check_at = ?, checks = ?,
      missing_since = ?, steps = ?, missed_report = ? WHERE partner_id = ? AND id = ?`,
    application.state,
    application.reference,
    application.account,
    application.reason,
    application.rejectReason,
    application.param,
    new Date(application.updatedAt),
    binary(application.idempotencyKey),
    application.firstAnswer,
    application.lastReport,
    application.evidence.slice(0, 300),
    instant(application.checkAt),
    application.checks,
    instant(application.missingSince),
    application.steps,
    application.missedReport,
    application.partnerId,
    application.id,
  );
}

export function findApplication(partnerId: string, id: string): Statement {
  return statement(`SELECT ${all} FROM applications WHERE partner_id = ? AND id = ?`, partnerId, id);
}

/** The same as partners see it. */
export function findShownApplication(partnerId: string, id: string): Statement {
  return statement(`SELECT ${shown} FROM applications WHERE partner_id = ? AND id = ?`, partnerId, id);
}

export function findApplications(partnerId: string, ids: readonly string[]): Statement {
  return statement(`SELECT ${all} FROM applications WHERE partner_id = ? AND id IN (?)`, partnerId, ids);
}

export function findApplicationByKey(partnerId: string, idempotencyKey: string): Statement {
  return statement(
    `SELECT ${all} FROM applications WHERE partner_id = ? AND idempotency_key = ?`,
    partnerId,
    Buffer.from(idempotencyKey),
  );
}

/** The partners of some applications, for reports that name applications only. */
export function findPartnersOfApplications(ids: readonly string[]): Statement {
  return statement(
    `SELECT id, partner_id, last_report FROM applications WHERE id IN (${ids.map(() => '?').join(', ')})`,
    ...ids,
  );
}

/** Finds an account if it belongs to another partner than the application it was opened for. */
export function findForeignAccount(applicationId: string, account: string): Statement {
  return statement(
    `SELECT c.account FROM accounts c JOIN applications a ON a.id = ? WHERE c.account = ?
      AND c.partner_id <> a.partner_id`,
    applicationId,
    account,
  );
}

/** Applications the reconciler must look at, longest due first. `now` is real time. */
export function findDueApplications(now: number, most: number): Statement {
  const { sql, values } = mustBeLookedAt(now);
  return statement(
    `SELECT ${all} FROM applications WHERE ${sql} AND ${hasKnownName('state', ApplicationStateSchema)}
      ORDER BY check_at LIMIT ${most}`,
    ...values,
  );
}

/** A page of a partner's applications, newest first, after the one with the given id. */
export function listApplications(partnerId: string, beforeId: string | undefined, most: number): Statement {
  const after = beforeId === undefined ? [] : [beforeId];
  return statement(
    `SELECT ${shown} FROM applications WHERE partner_id = ?${beforeId === undefined ? '' : ' AND id < ?'}
      ORDER BY id DESC LIMIT ${most}`,
    partnerId,
    ...after,
  );
}

export function toShownApplication(row: SqlRow): ShownApplication {
  return {
    id: row.id as string,
    state: row.state as ApplicationStateWord,
    reference: row.reference as string | null,
    account: row.account as string | null,
    reason: row.reason as string | null,
    rejectReason: row.reject_reason as string | null,
    param: row.param as string | null,
    createdAt: (row.created_at as Date).getTime(),
    updatedAt: (row.updated_at as Date).getTime(),
  };
}

export function toStoredApplication(row: SqlRow): StoredApplication {
  return {
    ...toShownApplication(row),
    ...toSubmissionFields(row),
    lastReport: toBigInt(row.last_report),
    evidence: String(row.evidence),
    missedReport: toBigInt(row.missed_report),
  };
}
