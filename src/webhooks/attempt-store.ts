import { insertRows, milliseconds, type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';
import type { Attempt, Outcome } from './rules.ts';

export function insertAttempts(attempts: readonly Attempt[]): Statement {
  return insertRows(
    'webhook_attempts',
    ['partner_id', 'version', 'number', 'at', 'is_probe', 'outcome', 'status', 'error_class', 'duration_ms'],
    attempts.map((attempt) => [
      attempt.partnerId,
      attempt.version,
      attempt.number,
      new Date(attempt.at),
      attempt.isProbe,
      attempt.outcome,
      attempt.status,
      attempt.errorClass,
      attempt.durationMs,
    ]),
  );
}

/** The attempts of some deliveries, in their order, at most so many. */
export function findAttempts(partnerId: string, versions: readonly bigint[], most: number): Statement {
  return statement(
    `SELECT * FROM webhook_attempts WHERE partner_id = ? AND version IN (${['0', ...versions].join(', ')})
      ORDER BY version DESC, number LIMIT ${most}`,
    partnerId,
  );
}

export function toAttempt(row: SqlRow): Attempt {
  return {
    partnerId: String(row.partner_id),
    version: toBigInt(row.version),
    number: Number(row.number),
    at: milliseconds(row.at) ?? 0,
    isProbe: Number(row.is_probe) === 1,
    outcome: String(row.outcome) as Outcome,
    status: row.status === null ? null : Number(row.status),
    errorClass: row.error_class === null ? null : String(row.error_class),
    durationMs: Number(row.duration_ms),
  };
}

/** Removes attempts from before an instant, at most so many. */
export function removeAttempts(before: number, most: number): Statement {
  return statement(`DELETE FROM webhook_attempts WHERE at < ? LIMIT ${most}`, new Date(before));
}
