import { insertRows, type SqlRow, type Statement, statement } from '../db/statement.ts';

/** One step in the history of an application or an allocation. Never anything a customer said. */
export interface ObjectStep {
  readonly kind: 'stored' | 'sent' | 'report' | 'reconciliation' | 'document' | 'contradiction';
  /** Business time. */
  readonly at: number;
  /** The object's state after it. */
  readonly state: string;
  readonly detail: string;
  readonly reportNumber?: bigint;
  /** When the upstream says that it happened. */
  readonly upstreamAt?: number;
}

/** How long after an instant the earliest of some steps happened at the upstream; undefined: none of them did. */
export function earliestAfter(at: number, steps: readonly Pick<ObjectStep, 'upstreamAt'>[]): number | undefined {
  const times = steps.flatMap(({ upstreamAt }) => upstreamAt ?? []);
  return times.length === 0 ? undefined : Math.min(...times) - at;
}

/** Which object steps belong to, and how many it has. */
export interface Stepped {
  readonly partnerId: string;
  readonly id: string;
  readonly steps: number;
}

/** Appends steps to an object's history; `object` is as it is after them. No steps: nothing. */
export function insertObjectSteps(object: Stepped, steps: readonly ObjectStep[]): Statement[] {
  if (steps.length === 0) return [];
  const first = object.steps - steps.length + 1;
  return [
    insertRows(
      'object_steps',
      ['partner_id', 'object_id', 'sequence', 'kind', 'at', 'state', 'detail', 'report_number', 'upstream_at'],
      steps.map((step, index) => [
        object.partnerId,
        object.id,
        first + index,
        step.kind,
        new Date(step.at),
        step.state,
        step.detail.slice(0, 300),
        step.reportNumber ?? null,
        step.upstreamAt === undefined ? null : new Date(step.upstreamAt),
      ]),
    ),
  ];
}

/** A page of an object's history, oldest first. */
export function listObjectSteps(partnerId: string, id: string, after: number, most: number): Statement {
  return statement(
    `SELECT *, NULL AS quantity, NULL AS price_kobo FROM object_steps
      WHERE partner_id = ? AND object_id = ? AND sequence > ? ORDER BY sequence LIMIT ${most}`,
    partnerId,
    id,
    after,
  );
}

/** What the upstream's record said when it was asked about an object. Real time. */
export interface LookUp {
  readonly partnerId: string;
  readonly id: string;
  readonly at: number;
  readonly outcome: 'found' | 'missing' | 'unanswered';
  /** What kept it from being answered, in a word. */
  readonly errorClass: string | undefined;
}

/** Counts a look-up, and keeps what it came to in place of the one before. The partner's lock must be held. */
export function saveLookUp({ partnerId, id, at, outcome, errorClass }: LookUp): Statement {
  return statement(
    `INSERT INTO look_ups (partner_id, object_id, asked, first_at, last_at, outcome, error_class)
      VALUES (?, ?, 1, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE asked = asked + 1, last_at = VALUES(last_at),
      outcome = VALUES(outcome), error_class = VALUES(error_class)`,
    partnerId,
    id,
    new Date(at),
    new Date(at),
    outcome,
    errorClass?.slice(0, 40) ?? null,
  );
}

export interface StoredLookUp {
  readonly asked: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly outcome: LookUp['outcome'];
  readonly errorClass: string | null;
}

/** Reads the look-ups of one object. */
export function findLookUp(partnerId: string, id: string): Statement {
  return statement('SELECT * FROM look_ups WHERE partner_id = ? AND object_id = ?', partnerId, id);
}

export function toLookUp(row: SqlRow): StoredLookUp {
  return {
    asked: Number(row.asked),
    firstAt: (row.first_at as Date).getTime(),
    lastAt: (row.last_at as Date).getTime(),
    outcome: row.outcome as LookUp['outcome'],
    errorClass: row.error_class as string | null,
  };
}
