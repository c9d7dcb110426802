/** One SQL statement with its values. */
export interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** Its one value is a list, and it means the same as one statement for each item. */
  readonly isOfList?: true;
}

export type SqlValue = string | number | bigint | boolean | Date | Buffer | null | readonly SqlValue[];

/** A row as the driver returns it. */
export type SqlRow = Record<string, unknown>;

/** The writes and the result of a transaction. No writes: nothing changed. */
export interface Decision<T> {
  readonly writes: readonly Statement[];
  readonly result: T;
}

/** Writes a statement: `sql` holds a `?` for each value. */
export function statement(sql: string, ...values: SqlValue[]): Statement {
  return { sql, values };
}

/**
 * Writes a statement as a template in which values stand where they are used. A statement in it becomes a part of it. What
 * `Database.read` prepares may have no list and no LIMIT among its values: MySQL takes neither.
 */
export function sql(
  [first = '', ...texts]: TemplateStringsArray,
  ...parts: readonly (SqlValue | Statement)[]
): Statement {
  let whole = first;
  const values: SqlValue[] = [];
  for (const [index, part] of parts.entries()) {
    const isValue = part === null || typeof part !== 'object' || !('sql' in part);
    whole += `${isValue ? '?' : part.sql}${texts[index]}`;
    if (isValue) values.push(part);
    else values.push(...part.values);
  }
  return { sql: whole, values };
}

/** A statement with one value, a list, that means the same as one statement for each item. */
export function ofList(sql: string, items: readonly SqlValue[]): Statement {
  return { sql, values: [items], isOfList: true };
}

/**
 * Joins the statements of lists that have the same text, where the first of them stands. A statement costs the server and
 * the driver more than an item, and a transaction of many pieces has many that are alike.
 */
export function joinLists(statements: readonly Statement[]): Statement[] {
  const lists = new Map<string, SqlValue[]>();
  const joined: Statement[] = [];
  for (const one of statements) {
    const list = one.isOfList === true ? lists.get(one.sql) : undefined;
    const items = one.values[0] as readonly SqlValue[];
    if (list !== undefined) list.push(...items);
    else if (one.isOfList === true) {
      const whole = [...items];
      lists.set(one.sql, whole);
      joined.push({ sql: one.sql, values: [whole] });
    } else joined.push(one);
  }
  return joined;
}

/** Several conditions or lists as one. */
export function joined(parts: readonly Statement[], between: string): Statement {
  return { sql: parts.map((part) => part.sql).join(between), values: parts.flatMap((part) => part.values) };
}

/**
 * Fails the transaction unless all conditions are true. The table `guards` has a check that no row passes, and its name is
 * in the error, so a guard that is not true cannot be taken for another failure. The table is always empty, so nobody waits.
 */
export function guard(conditions: readonly Statement[]): Statement {
  const sql = conditions.map((condition) => `(${condition.sql})`).join(' AND ');
  const values = conditions.flatMap((condition) => condition.values);
  return { sql: `INSERT INTO guards (ok) SELECT 0 FROM DUAL WHERE (${sql}) IS NOT TRUE`, values };
}

/** A whole number from a column that can be beyond 2^53. */
export function toBigInt(value: unknown): bigint {
  if (typeof value === 'number' || typeof value === 'string' || typeof value === 'bigint') return BigInt(value);
  throw new Error('a column that must be a whole number is not');
}

/** An instant from a column, in milliseconds, or null. */
export function milliseconds(value: unknown): number | null {
  return value === null ? null : (value as Date).getTime();
}

/** An instant for a column. */
export function instant(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

/** Text for a binary column, which compares it byte by byte, trailing spaces too. */
export function binary(text: string | null): Buffer | null {
  return text === null ? null : Buffer.from(text);
}

/** More than any lease lasts, in seconds. */
const longestLease = 15;

/**
 * A condition for leases that have not run out, by their end. One that ends later than any lease can was written
 * before the database's clock was set back, or by a server with another clock: its holder may be gone, and it has run out.
 */
export function hasNotRunOut(end: string): string {
  return `${end} > NOW(3) AND ${end} <= NOW(3) + INTERVAL ${longestLease} SECOND`;
}
