import { originColumns } from '../../delivery/events/table.ts';
import type { Database } from '../../store/database.ts';
import { type SqlRow, type Statement, statement } from '../../store/statement.ts';
import {
  bytes,
  type Column,
  type Columns,
  count,
  defineTable,
  exactText,
  instant,
  longText,
  optional,
  type RowOf,
  type RowOfColumns,
  shortened,
  Table,
  text,
  whole,
} from '../../store/table.ts';
import { farAheadMs, type ReportedStep } from './rules.ts';

/** The first answer to the creating request: the object, or one of the two errors that a replay repeats. */
export type FirstAnswer = 'object' | 'rejected' | 'not_sent';

/**
 * The columns that orders, applications and allocations share: the owner, the data to compare a repeated request with, and
 * the data to settle an unknown outcome. Instants marked real are not business time.
 */
const submissionColumns = {
  partnerId: text(24),
  id: text(24),
  ...originColumns,
  /** The key it was created with; null in rows older than the column. */
  keyId: optional(text(24)),
  /** Explains the state in a sentence. */
  reason: optional(text(300)),
  rejectReason: optional(text(40)),
  createdAt: instant(),
  updatedAt: instant(),
  /** Null once another request may have it. */
  idempotencyKey: optional(exactText(255)),
  requestDigest: bytes(32),
  firstAnswer: optional(text<FirstAnswer>(16)),
  /** The number of steps in the history. */
  steps: count(),
  /** Real: the upstream must not take it after this. */
  notAfter: instant(),
  /** Real: when the reconciler queries it next; null once the outcome is known. */
  checkAt: optional(instant()),
  /** How often the reconciler has queried it. */
  checks: count(),
  /** Real: when the upstream's record first did not have it. */
  missingSince: optional(instant()),
  /** What later reports are held against since an operator settled it by evidence, as the kind writes it; null: nothing. */
  settlement: optional(longText()),
};

type SharedColumns = typeof submissionColumns;

/** Describes the table of a kind: the shared columns, those that only it has, and indexes on them. */
export function defineSubmissions<const Own extends Columns>(
  name: string,
  columns: Own,
  indexes: Readonly<Record<string, readonly (keyof (SharedColumns & Own) & string)[]>>,
): Table<RowOfColumns<SharedColumns & Own>> {
  return new Table<RowOfColumns<SharedColumns & Own>>({
    name,
    columns: { ...submissionColumns, ...columns },
    primary: ['partnerId', 'id'],
    indexes: { [`${name}_check_at`]: ['checkAt'], ...indexes },
    unique: { [`${name}_id`]: ['id'], [`${name}_idempotency_key`]: ['partnerId', 'idempotencyKey'] },
  });
}

/** The table of a kind, to be read by the objects' ids, whatever the server guesses of its size. */
export function byId({ table: { name } }: { readonly table: { readonly name: string } }): string {
  return `${name} FORCE INDEX (${name}_id)`;
}

type Shared = {
  readonly [Field in keyof typeof submissionColumns]: (typeof submissionColumns)[Field] extends Column<infer Value>
    ? Value
    : never;
};

/** The fields of every object that is stored, sent once and recorded. */
export interface Submission extends Shared {
  readonly state: string;
  /** The field that caused a rejection, by its name; never its value. */
  readonly param?: string | null;
  /** The numbers of the last report applied, and of the last that a version did not apply because it did not know the object. */
  readonly lastReport?: bigint;
  readonly missedReport?: bigint;
  /** The Lagos day it counts for, of a kind whose lists are by day. */
  readonly countedDay?: string;
  /** Business time until which it waits for its release by operators; null: it does not wait. */
  readonly heldUntil?: number | null;
  /** Business time at which operators released it; null: it did not wait. */
  readonly releasedAt?: number | null;
}

/** Whether an object is stored and waits for its release: it was not sent. */
export function isHeld({ state, heldUntil = null }: Pick<Submission, 'state' | 'heldUntil'>): boolean {
  return state === 'sending' && heldUntil !== null;
}

/** The earliest instant of business time at which an object can have been sent. */
export function sentFrom({ createdAt, releasedAt = null }: Pick<Submission, 'createdAt' | 'releasedAt'>): number {
  return releasedAt ?? createdAt;
}

/**
 * A condition for the rows that the reconciler must query now. `now` is real time. A next query that is further ahead than
 * the longest time was set by a wrong clock.
 */
export function mustBeLookedAt(now: number): Statement {
  return statement('(check_at <= ? OR check_at > ?)', new Date(now), new Date(now + farAheadMs));
}

/** Whether a version that did not know the object left reports unapplied that nobody has looked up since. */
export function isBehind({
  missedReport = 0n,
  lastReport = 0n,
}: Pick<Submission, 'missedReport' | 'lastReport'>): boolean {
  return missedReport > lastReport;
}

/** The kinds of steps in an object's history. */
export type StepKind =
  | 'stored'
  | 'sent'
  | 'report'
  | 'reconciliation'
  | 'cancel'
  | 'document'
  | 'contradiction'
  | 'settled_by_operator'
  | 'release';

/** The columns of every history. */
export const stepColumns = {
  partnerId: text(24),
  sequence: count(),
  kind: text<StepKind>(20),
  /** Business time. */
  at: instant(),
  /** The object's state after the step. */
  state: text(20),
  /** Never a customer's data. */
  detail: shortened(300),
  reportNumber: optional(whole()),
  /** The upstream's time of it. */
  upstreamAt: optional(instant()),
};

/** The history of applications and allocations. Orders have their own (`gateway/trading/orders/table`), because trades have prices. */
export const objectSteps = defineTable({
  name: 'object_steps',
  columns: { ...stepColumns, objectId: text(24) },
  primary: ['partnerId', 'objectId', 'sequence'],
});

/** A new step. The history numbers it. */
export interface NewStep extends ReportedStep {
  readonly kind: StepKind;
  readonly at: number;
  readonly state: string;
  readonly detail: string;
}

/** An object with a history. */
interface Stepped {
  readonly partnerId: string;
  readonly id: string;
  readonly steps: number;
}

/** The history of one kind of object. */
export interface History {
  /** Appends steps; `object` is as it is after them. */
  append(object: Stepped, steps: readonly NewStep[]): Statement[];
  /** A page of an object's history, oldest first. */
  page(partnerId: string, id: string, after: number, most: number): Statement;
}

/** The number of an added step in a history that has so many steps with the added ones. */
export function sequenceOf(steps: number, added: readonly NewStep[], index: number): number {
  return steps - added.length + index + 1;
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
        sequence: sequenceOf(steps, added, index),
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

/** The queries of the upstream's record about an object with an unknown outcome: their number and the last result. Real time. */
export const lookUps = defineTable({
  name: 'look_ups',
  columns: {
    partnerId: text(24),
    objectId: text(24),
    asked: count(),
    firstAt: instant(),
    lastAt: instant(),
    outcome: text<'found' | 'missing' | 'unanswered'>(16),
    /** Why there was no answer: an error code or a status. */
    errorClass: optional(shortened(40)),
  },
  primary: ['partnerId', 'objectId'],
});

export type StoredLookUp = RowOf<typeof lookUps>;

/** One query of the upstream's record about an object. Real time. */
export interface LookUp {
  readonly at: number;
  readonly outcome: StoredLookUp['outcome'];
  readonly errorClass: string | null;
}

/** Counts a query, and keeps its result instead of the one before. The partner's lock must be held. */
export function saveLookUp({ partnerId, id }: Stepped, { at, outcome, errorClass }: LookUp): Statement {
  const row = { partnerId, objectId: id, asked: 1, firstAt: at, lastAt: at, outcome, errorClass };
  const { sql, values } = lookUps.put(row, 'lastAt', 'outcome', 'errorClass');
  return { sql: `${sql}, asked = asked + 1`, values };
}

/** The time from an instant to the earliest of some steps at the upstream, in milliseconds; undefined if none has a time. */
export function earliestAfter(at: number, steps: readonly Pick<NewStep, 'upstreamAt'>[]): number | undefined {
  const times = steps.flatMap(({ upstreamAt }) => upstreamAt ?? []);
  return times.length === 0 ? undefined : Math.min(...times) - at;
}

/** Reads in a transaction, because a read can come from a replica that lags. */
export async function readUpToDate(database: Database, query: Statement): Promise<SqlRow[]> {
  return database.transaction([query], ([rows = []]) => ({ writes: [], result: rows }));
}
