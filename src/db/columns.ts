import type { ColumnType } from 'typeorm';
import type { SqlValue } from './statement.ts';

/** What a column holds. Notes to the broker write each kind of value in a form of their own. */
export type ColumnKind = 'text' | 'bytes' | 'whole' | 'count' | 'instant' | 'day' | 'flag';

/** How a column keeps the values of one field. `read` and `write` are never given a null. */
export interface Column<Value> {
  readonly kind: ColumnKind;
  /** The type, length and precision in the database, as TypeORM names them. */
  readonly type: ColumnType;
  readonly length?: number;
  readonly precision?: number;
  readonly isNullable: boolean;
  read(stored: unknown): NonNullable<Value>;
  write(value: NonNullable<Value>): SqlValue;
}

const asIs = { isNullable: false, read: (stored: unknown) => stored as never, write: (value: SqlValue) => value };

/** Text that is compared letter by letter. An enumeration is kept by its names. */
export function text(length: number): Column<string>;
export function text<Value extends string>(length: number): Column<Value>;
export function text(length: number): Column<string> {
  return { ...asIs, kind: 'text', type: 'varchar', length };
}

/** Text that is cut off where it is longer than its column. */
export function shortened(length: number): Column<string> {
  return { ...text(length), write: (value) => value.slice(0, length) };
}

/** Text of any length. */
export function longText(): Column<string> {
  return { ...asIs, kind: 'text', type: 'text' };
}

/** Text that is compared byte by byte, with its trailing spaces. */
export function exactText(length: number): Column<string> {
  return {
    ...asIs,
    ...{ kind: 'text', type: 'varbinary', length },
    read: (stored) => String(stored),
    write: (value) => Buffer.from(value),
  };
}

/** A fixed number of bytes. */
export function bytes(length: number): Column<Buffer> {
  return { ...asIs, kind: 'bytes', type: 'binary', length };
}

/** Bytes of any number. */
export function manyBytes(): Column<Buffer> {
  return { ...asIs, kind: 'bytes', type: 'mediumblob' };
}

/** A whole number that can be beyond 2^53, such as an amount in kobo. */
export function whole(): Column<bigint> {
  return { ...asIs, kind: 'whole', type: 'bigint', read: (stored) => BigInt(stored as string | number) };
}

/** A whole number below 2^31. */
export function count(): Column<number> {
  return { ...asIs, kind: 'count', type: 'int', read: Number };
}

/** A whole number from 0 to 127. */
export function small(): Column<number> {
  return { ...count(), type: 'tinyint' };
}

/** An instant, in milliseconds since the epoch. */
export function instant(): Column<number> {
  return {
    ...asIs,
    ...{ kind: 'instant', type: 'datetime', precision: 3 },
    read: (stored) => (stored as Date).getTime(),
    write: (value) => new Date(value),
  };
}

/** A Lagos day, as YYYY-MM-DD. */
export function day(): Column<string> {
  return { ...asIs, kind: 'day', type: 'date', read: String };
}

export function flag(): Column<boolean> {
  return { ...asIs, kind: 'flag', type: 'tinyint', read: (stored) => Number(stored) !== 0 };
}

/** The same column where there may be no value. */
export function optional<Value>(column: Column<Value>): Column<Value | null> {
  return { ...column, isNullable: true } as Column<Value | null>;
}
