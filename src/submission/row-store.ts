import type { DescEnum } from '@bufbuild/protobuf';
import {
  binary,
  instant,
  milliseconds,
  type SqlRow,
  type SqlValue,
  type Statement,
  statement,
} from '../db/statement.ts';
import { enumNames } from '../lib/enums.ts';
import { type Origin, originColumns, toOrigin } from '../lib/origin.ts';

/** What the creating request was first answered with: the object, or one of the two errors that a replay repeats. */
export type FirstAnswer = 'object' | 'rejected' | 'not_sent';

/**
 * What orders, applications and allocations store alike, beside what they are: whose they are, what a repeated request is
 * compared with, and what settles an outcome that is unclear. Instants marked real are not business time.
 */
export interface SubmissionFields {
  readonly partnerId: string;
  /** On whose behalf it was created. */
  readonly origin: Origin;
  /** Null once another request may have it. */
  readonly idempotencyKey: string | null;
  readonly requestDigest: Buffer;
  readonly firstAnswer: FirstAnswer | null;
  /** How many steps its history has. */
  readonly steps: number;
  /** Real: past this the upstream must not take it. */
  readonly notAfter: number;
  /** Real: when the reconciler must look at it; null once nothing is unclear. */
  readonly checkAt: number | null;
  /** How often the reconciler has asked about it. */
  readonly checks: number;
  /** Real: since when the upstream's record is known not to have it. */
  readonly missingSince: number | null;
}

/** The columns these fields are kept in, in each of the tables. */
export const submissionColumns = [
  'partner_id',
  ...originColumns,
  'idempotency_key',
  'request_digest',
  'first_answer',
  'steps',
  'not_after',
  'check_at',
  'checks',
  'missing_since',
] as const;

export function toSubmissionRow(fields: SubmissionFields): Record<(typeof submissionColumns)[number], SqlValue> {
  return {
    partner_id: fields.partnerId,
    request_id: fields.origin.requestId,
    trace_parent: fields.origin.traceParent,
    idempotency_key: binary(fields.idempotencyKey),
    request_digest: fields.requestDigest,
    first_answer: fields.firstAnswer,
    steps: fields.steps,
    not_after: new Date(fields.notAfter),
    check_at: instant(fields.checkAt),
    checks: fields.checks,
    missing_since: instant(fields.missingSince),
  };
}

export function toSubmissionFields(row: SqlRow): SubmissionFields {
  return {
    partnerId: row.partner_id as string,
    origin: toOrigin(row),
    idempotencyKey: row.idempotency_key === null ? null : String(row.idempotency_key),
    requestDigest: row.request_digest as Buffer,
    firstAnswer: row.first_answer as FirstAnswer | null,
    steps: Number(row.steps),
    notAfter: (row.not_after as Date).getTime(),
    checkAt: milliseconds(row.check_at),
    checks: Number(row.checks),
    missingSince: milliseconds(row.missing_since),
  };
}

/** A condition that is true where a column has a name this version knows, of those not left out. */
export function hasKnownName(column: string, desc: DescEnum, leftOut: readonly string[] = []): string {
  const names = [...enumNames(desc).values()].filter((name) => !leftOut.includes(name));
  return `${column} IN (${names.map((name) => `'${name}'`).join(', ')})`;
}

/** Later than any look at an object is put off. */
export const farAheadMs = 300_000;

/**
 * A condition that is true for what the reconciler must look at. `now` is real time. A look that is to come later than any
 * is put off was put off by a clock that was wrong.
 */
export function mustBeLookedAt(now: number): Statement {
  return statement('(check_at <= ? OR check_at > ?)', new Date(now), new Date(now + farAheadMs));
}

/** Whether reports about an object were passed over by a version that did not know it, and not looked up since. */
export function isBehind({ missedReport, lastReport }: { missedReport: bigint; lastReport: bigint }): boolean {
  return missedReport > lastReport;
}
