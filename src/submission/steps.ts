import { count, instant, optional, shortened, text, whole } from '../db/columns.ts';
import { type Statement, statement } from '../db/statement.ts';
import { defineTable, type RowOf, type Table } from '../db/table.ts';

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
