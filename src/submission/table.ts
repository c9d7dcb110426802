import type { Database } from '../db/database.ts';
import { type Statement, statement } from '../db/statement.ts';
import {
  bytes,
  type Column,
  count,
  defineTable,
  exactText,
  instant,
  optional,
  type RowOf,
  shortened,
  type Table,
  text,
  whole,
} from '../db/table.ts';

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

/**
 * Finds an object alike that may or may not be at the upstream. `now` is real time. An object in a state of another version
 * counts while the reconciler must look at it. `hint` names an index.
 */
export function findSimilarUnsettled<Row extends Submission>(
  table: Table<Row>,
  alike: Partial<Row>,
  now: number,
  hint = '',
): Statement {
  const { sql, values } = table.where(alike);
  return statement(
    `SELECT 1 FROM ${table.name} ${hint} WHERE ${sql} AND NOT ${table.hasKnownName('state', 'sending', 'uncertain')}
      AND (state = 'uncertain' OR check_at <= ? OR (state <> 'sending' AND check_at IS NOT NULL)) LIMIT 1`,
    ...values,
    new Date(now),
  );
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

/** What happened at a step of an object's history. */
export type StepKind = 'stored' | 'sent' | 'report' | 'reconciliation' | 'cancel' | 'document' | 'contradiction';

/** The columns of every history. */
export const stepColumns = {
  partnerId: text(24),
  sequence: count(),
  kind: text<StepKind>(20),
  /** Business time. */
  at: instant(),
  /** The object's state after the step. */
  state: text(20),
  /** Never anything a customer said. */
  detail: shortened(300),
  reportNumber: optional(whole()),
  /** When the upstream says that it happened. */
  upstreamAt: optional(instant()),
};

/** The history of applications and allocations. Orders have their own (`orders/table`), because trades have prices. */
export const objectSteps = defineTable({
  name: 'object_steps',
  columns: { ...stepColumns, objectId: text(24) },
  primary: ['partnerId', 'objectId', 'sequence'],
});

/** A step as it is made: the history gives it its place. */
export interface NewStep {
  readonly kind: StepKind;
  readonly at: number;
  readonly state: string;
  readonly detail: string;
  readonly reportNumber?: bigint | undefined;
  readonly upstreamAt?: number | undefined;
  readonly quantity?: bigint | undefined;
  readonly priceKobo?: bigint | undefined;
}

/** What a history is about, and how many steps it has. */
interface Stepped {
  readonly partnerId: string;
  readonly id: string;
  readonly steps: number;
}

/** Where the steps of one kind of object are kept. */
export interface History {
  /** Appends steps; `object` is as it is after them. */
  append(object: Stepped, steps: readonly NewStep[]): Statement[];
  /** A page of an object's history, oldest first. */
  page(partnerId: string, id: string, after: number, most: number): Statement;
}

/** A history that is kept in one table. `idColumn` names the object, and `more` are the table's other columns. */
export function historyIn<Row extends { readonly sequence: number }>(
  table: Table<Row>,
  idField: keyof Row & string,
  more: (step: NewStep) => object = () => ({}),
): History {
  return {
    append({ partnerId, id, steps }, added) {
      if (added.length === 0) return [];
      const rows = added.map((step, index) => ({
        partnerId,
        [idField]: id,
        sequence: steps - added.length + index + 1,
        kind: step.kind,
        at: step.at,
        state: step.state,
        detail: step.detail,
        reportNumber: step.reportNumber ?? null,
        upstreamAt: step.upstreamAt ?? null,
        ...more(step),
      }));
      return [table.insert(...(rows as unknown as Row[]))];
    },
    page(partnerId, id, after, most) {
      const tail = statement(`AND sequence > ? ORDER BY sequence LIMIT ${most}`, after);
      return table.find({ partnerId, [idField]: id } as never, table.all, tail);
    },
  };
}

export const objectHistory = historyIn(objectSteps, 'objectId');

/** How often the upstream's record was asked about an object whose outcome was unknown, and what it said last. Real time. */
export const lookUps = defineTable({
  name: 'look_ups',
  columns: {
    partnerId: text(24),
    objectId: text(24),
    asked: count(),
    firstAt: instant(),
    lastAt: instant(),
    outcome: text<'found' | 'missing' | 'unanswered'>(16),
    /** What kept it from being answered, in a word. */
    errorClass: optional(shortened(40)),
  },
  primary: ['partnerId', 'objectId'],
});

export type StoredLookUp = RowOf<typeof lookUps>;

/** What the upstream's record said when it was asked about an object. Real time. */
export interface LookUp {
  readonly at: number;
  readonly outcome: StoredLookUp['outcome'];
  readonly errorClass: string | null;
}

/** Counts a look-up, and keeps what it came to in place of the one before. The partner's lock must be held. */
export function saveLookUp({ partnerId, id }: Stepped, { at, outcome, errorClass }: LookUp): Statement {
  const row = { partnerId, objectId: id, asked: 1, firstAt: at, lastAt: at, outcome, errorClass };
  const { sql, values } = lookUps.put(row, 'lastAt', 'outcome', 'errorClass');
  return { sql: `${sql}, asked = asked + 1`, values };
}

/** How long after an instant the earliest of some steps happened at the upstream; undefined: none of them did. */
export function earliestAfter(at: number, steps: readonly Pick<NewStep, 'upstreamAt'>[]): number | undefined {
  const times = steps.flatMap(({ upstreamAt }) => upstreamAt ?? []);
  return times.length === 0 ? undefined : Math.min(...times) - at;
}

/** How far work that goes on for ever has come: the last report applied, the last key looked at for removal. */
export const positions = defineTable({
  name: 'positions',
  columns: { name: text(40), position: text(64) },
  primary: ['name'],
});

/** A stored position; undefined if there is none yet. */
export async function readPosition(database: Database, name: string): Promise<string | undefined> {
  const [row] = await database.read(positions.find({ name }));
  return row && positions.all.read(row).position;
}

export function savePosition(name: string, position: string): Statement {
  return positions.put({ name, position }, 'position');
}

/** Saves a number as a position unless a larger one is stored: whoever was ahead has looked at all before it. */
export function advancePosition(name: string, position: bigint): Statement {
  const { sql, values } = positions.insert({ name, position: position.toString() });
  const larger = 'CAST(position AS UNSIGNED) < CAST(VALUES(position) AS UNSIGNED)';
  return statement(`${sql} ON DUPLICATE KEY UPDATE position = IF(${larger}, VALUES(position), position)`, ...values);
}
