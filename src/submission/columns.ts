import type { DescEnum } from '@bufbuild/protobuf';
import { bytes, type Column, count, exactText, instant, optional, text } from '../db/columns.ts';
import { type Statement, statement } from '../db/statement.ts';
import { enumNames } from '../lib/enums.ts';

/** What the creating request was first answered with: the object, or one of the two errors that a replay repeats. */
export type FirstAnswer = 'object' | 'rejected' | 'not_sent';

/** On whose behalf an object was created or an event happened (`lib/origin`). */
export const originColumns = { requestId: optional(text(36)), traceParent: optional(text(55)) };

/**
 * The columns that orders, applications and allocations share: whose they are, what a repeated request is compared with, and
 * what settles an unknown outcome. Instants marked real are not business time.
 */
export const submissionColumns = {
  partnerId: text(24),
  id: text(24),
  ...originColumns,
  /** Explains the state in a sentence. */
  reason: optional(text(300)),
  rejectReason: optional(text(40)),
  createdAt: instant(),
  updatedAt: instant(),
  /** Null once another request may have it. */
  idempotencyKey: optional(exactText(255)),
  requestDigest: bytes(32),
  firstAnswer: optional(text<FirstAnswer>(16)),
  /** How many steps the history has. */
  steps: count(),
  /** Real: past this the upstream must not take it. */
  notAfter: instant(),
  /** Real: when the reconciler must look at it; null once nothing is unclear. */
  checkAt: optional(instant()),
  /** How often the reconciler has asked about it. */
  checks: count(),
  /** Real: since when the upstream's record is known not to have it. */
  missingSince: optional(instant()),
};

/** The indexes that go with them, in the table of that name. */
export function submissionIndexes(table: string) {
  return {
    indexes: { [`${table}_check_at`]: ['checkAt'] as const },
    unique: {
      [`${table}_id`]: ['id'] as const,
      [`${table}_idempotency_key`]: ['partnerId', 'idempotencyKey'] as const,
    },
  };
}

type Shared = {
  readonly [Field in keyof typeof submissionColumns]: (typeof submissionColumns)[Field] extends Column<infer Value>
    ? Value
    : never;
};

/** What everything that is stored, sent once and recorded has. */
export interface Submission extends Shared {
  readonly state: string;
  /** The field that caused a rejection, by its name; never its value. */
  readonly param?: string | null;
  /** The numbers of the last report applied, and of the last that a version passed over because it did not know the object. */
  readonly lastReport?: bigint;
  readonly missedReport?: bigint;
}

/** A condition that is true if a column has a name this version knows, of those not left out. */
export function hasKnownName(column: string, desc: DescEnum, leftOut: readonly string[] = []): string {
  const names = [...enumNames(desc).values()].filter((name) => !leftOut.includes(name));
  return `${column} IN (${names.map((name) => `'${name}'`).join(', ')})`;
}

/** No look at an object is put off for longer. */
export const farAheadMs = 300_000;

/**
 * A condition that is true for what the reconciler must look at. `now` is real time. If the next look is further ahead than
 * any is put off, a clock that was wrong put it there.
 */
export function mustBeLookedAt(now: number): Statement {
  return statement('(check_at <= ? OR check_at > ?)', new Date(now), new Date(now + farAheadMs));
}

/** Whether reports about an object were passed over by a version that did not know it, and not looked up since. */
export function isBehind({
  missedReport = 0n,
  lastReport = 0n,
}: Pick<Submission, 'missedReport' | 'lastReport'>): boolean {
  return missedReport > lastReport;
}
