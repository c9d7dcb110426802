import type { SqlRow, Statement } from './statement.ts';

/**
 * Something a decision about a partner's objects depends on. It is read under the partner's lock, or, when the value it
 * must have is known, proven by conditions in the transaction that writes.
 */
export interface Fact<Value> {
  /** Run under the lock. A statement object that several facts share is run once. */
  readonly reads: readonly Statement[];
  value(rows: readonly SqlRow[][]): Value;
  /** Absent: it must be read. Asked for when the transaction is made, which can be seconds after the fact was named. */
  readonly expected?: Expected<Value> | undefined;
  /** The shared values that the decision reads and changes through the transaction. */
  readonly shared?: readonly Shared<unknown>[];
}

/** The value that a fact is expected to have. */
export interface Expected<Value> {
  readonly value: Value;
  /** Conditions that are all true exactly if the fact has this value. */
  readonly guards: readonly Statement[];
  /** Run before the guards: they lock rows that must not change before COMMIT, without waiting. */
  readonly locks?: readonly Statement[];
}

/**
 * Something of a partner that all work in a transaction shares, such as its wallet: read once, changed in memory, saved
 * once at the end. Its last value is remembered for the next transaction.
 */
export interface Shared<Value> {
  readonly name: string;
  readonly read: Statement;
  value(rows: readonly SqlRow[]): Value;
  /** A condition that is true exactly if this is still the value. */
  guard(value: Value): Statement;
  save(before: Value, after: Value): readonly Statement[];
  /** The part of a saved value to cache; absent: all of it. */
  remembered?(saved: Value): Value;
}

/** A sum that a transaction can add to without reading it. */
export interface StoredSum extends Shared<bigint> {
  add(amount: bigint): Statement;
}

/** A fact on which nothing depends. */
export const noFact: Fact<undefined> = {
  reads: [],
  value: () => undefined,
  expected: { value: undefined, guards: [] },
};

/** Whether a query finds a row, with the expected answer. */
export function existsFact(query: Statement, isExpected: boolean): Fact<boolean> {
  const guard = { sql: `${isExpected ? '' : 'NOT '}EXISTS (${query.sql})`, values: query.values };
  return {
    reads: [query],
    value: ([rows = []]) => rows.length > 0,
    expected: { value: isExpected, guards: [guard] },
  };
}

/** The rows that queries find, which must be read. */
export function rowsFact(...queries: readonly Statement[]): Fact<readonly SqlRow[][]> {
  return { reads: queries, value: (rows) => rows };
}

/** The result of a query that must be read. */
export function queryFact<Value>(query: Statement, value: (rows: readonly SqlRow[]) => Value): Fact<Value> {
  return { reads: [query], value: ([rows = []]) => value(rows) };
}

/** Shared values, without a value of their own. */
export function sharedFact(...shared: readonly Shared<unknown>[]): Fact<undefined> {
  return { shared, ...noFact };
}

/** Several facts as one. It has an expected value if each of them has one. */
export function allFacts<Values extends Readonly<Record<string, unknown>>>(
  facts: {
    readonly [Name in keyof Values]: Fact<Values[Name]>;
  },
): Fact<Values> {
  const named = Object.entries(facts) as [string, Fact<unknown>][];
  // Loops rather than chains of `flatMap`, because each order makes several of these.
  const reads: Statement[] = [];
  const shared: Shared<unknown>[] = [];
  for (const [, fact] of named) {
    reads.push(...fact.reads);
    if (fact.shared !== undefined) shared.push(...fact.shared);
  }
  return {
    reads,
    value: (rows) => {
      const values: Record<string, unknown> = {};
      let at = 0;
      for (const [name, { reads, value }] of named) {
        values[name] = value(rows.slice(at, at + reads.length));
        at += reads.length;
      }
      return values as Values;
    },
    get expected() {
      return expectedOf<Values>(named);
    },
    shared,
  };
}

/** The expected value of several facts, if each of them has one. */
function expectedOf<Values>(named: readonly [string, Fact<unknown>][]): Expected<Values> | undefined {
  const guards: Statement[] = [];
  const locks: Statement[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, { expected }] of named) {
    if (expected === undefined) return undefined;
    values[name] = expected.value;
    guards.push(...expected.guards);
    if (expected.locks !== undefined) locks.push(...expected.locks);
  }
  return { value: values as Values, guards, locks };
}
