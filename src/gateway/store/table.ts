import type { GenEnum } from '@bufbuild/protobuf/codegenv2';
import type { ColumnType, EntitySchemaColumnOptions, EntitySchemaOptions } from 'typeorm';
import { type EnumName, enumNames, enumNumbers } from '../../kit/enums.ts';
import { ofList, type SqlRow, type SqlValue, type Statement, statement } from './statement.ts';

/** The kinds of values in columns. Notes to the broker write each in its own form. */
export type ColumnKind = 'text' | 'bytes' | 'whole' | 'count' | 'instant' | 'day' | 'flag';

/** How a column keeps the values of one field. `read` and `write` are never given a null. */
export interface Column<Value> {
  readonly kind: ColumnKind;
  /** The type, length and precision in the database, as TypeORM names them. */
  readonly type: ColumnType;
  readonly length?: number;
  readonly precision?: number;
  readonly isNullable: boolean;
  /** The names this version knows, with their numbers; of an enumeration only. */
  readonly names?: EnumNames;
  read(stored: unknown): NonNullable<Value>;
  write(value: NonNullable<Value>): SqlValue;
}

/** An enumeration's names in a column. */
interface EnumNames {
  readonly all: readonly string[];
  /** 0 for a name of another version, which is logged once. */
  numberOf(name: string): number;
}

const asIs = { isNullable: false, read: (stored: unknown) => stored as never, write: (value: SqlValue) => value };

/** Text that is compared letter by letter. */
export function text(length: number): Column<string>;
export function text<Value extends string>(length: number): Column<Value>;
export function text(length: number): Column<string> {
  return { ...asIs, kind: 'text', type: 'varchar', length };
}

/** A value of an enumeration of a proto, by its name. Another version may have stored a name that this one does not know. */
export function enumName<Enum extends object>(
  desc: GenEnum<Enum[keyof Enum & string] & number>,
  length: number,
): Column<EnumName<Enum>> {
  return {
    ...text<EnumName<Enum>>(length),
    names: { all: [...enumNames(desc).values()], numberOf: enumNumbers(desc) },
  };
}

/** Text that is cut off at the length of its column. */
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

/** At most so many bytes. */
export function bytesUpTo(length: number): Column<Buffer> {
  return { ...bytes(length), type: 'varbinary' };
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

/** The same column with NULL allowed. */
export function optional<Value>(column: Column<Value>): Column<Value | null> {
  return { ...column, isNullable: true } as Column<Value | null>;
}

/** The columns of a table by the fields of its rows. A field `priceKobo` is kept in `price_kobo`. */
// biome-ignore lint/suspicious/noExplicitAny: a row has fields of many types; `RowOf` gives each its own.
export type Columns = Readonly<Record<string, Column<any>>>;

export type RowOfColumns<Of extends Columns> = {
  readonly [Field in keyof Of]: Of[Field] extends Column<infer Value> ? Value : never;
};

/** A row of a table, as the code has it. */
export type RowOf<Of> = Of extends Table<infer Row> ? Row : never;

/** The rows that a selection reads. */
export type ShownBy<Of> = Of extends Selection<infer Shown> ? Shown : never;

type Field<Row> = keyof Row & string;

/** Conditions on rows: each field has the given value, or one of a list of values. */
type Where<Row> = { readonly [F in Field<Row>]?: Row[F] | readonly Row[F][] };

interface TableOptions<Row> {
  readonly name: string;
  readonly columns: Columns;
  /** The fields of the primary key, in its order. */
  readonly primary: readonly Field<Row>[];
  /** A number that the database gives each new row. */
  readonly generated?: Field<Row>;
  /** The other indexes, by their names. */
  readonly indexes?: Readonly<Record<string, readonly Field<Row>[]>>;
  readonly unique?: Readonly<Record<string, readonly Field<Row>[]>>;
}

/** Some of a table's columns: a list for SELECT, and a reader of its rows. */
export interface Selection<Shown> {
  /** The columns' names with commas between them. */
  readonly list: string;
  read(row: SqlRow): Shown;
}

/** Describes a table. */
export function defineTable<const Of extends Columns>(
  options: TableOptions<RowOfColumns<Of>> & { readonly columns: Of },
): Table<RowOfColumns<Of>> {
  return new Table(options);
}

/**
 * A table, described once: its TypeORM schema for cold paths, and compiled statements from the same columns for hot ones.
 * Statements hold one `?` for each value, so each is prepared once per connection.
 */
export class Table<Row extends object> {
  readonly name: string;
  readonly fields: readonly Field<Row>[];
  /** The same for TypeORM, which knows it by the table's name. */
  readonly schema: EntitySchemaOptions<Row>;
  /** All columns. */
  readonly all: Selection<Row>;
  /** The indexes that may have several rows of one value, by their names. */
  readonly indexes: Readonly<Record<string, readonly Field<Row>[]>>;
  readonly #columns: Columns;
  readonly #primary: readonly Field<Row>[];
  readonly #changing: readonly Field<Row>[];
  readonly #inserted: readonly Field<Row>[];
  readonly #insertSql: string;
  readonly #insertIfMissingSql: string;
  readonly #keySql: string;
  readonly #rowSql: string;
  readonly #enumerations: readonly { readonly field: Field<Row>; readonly names: EnumNames }[];

  constructor({ name, columns, primary, generated, indexes = {}, unique = {} }: TableOptions<Row>) {
    this.name = name;
    this.indexes = indexes;
    this.#columns = columns;
    this.#primary = primary;
    this.fields = Object.keys(columns) as Field<Row>[];
    this.#inserted = this.fields.filter((field) => field !== generated);
    // One `?` for all rows, because finding one for each value took longer than writing the values.
    const into = `INSERT INTO ${name} (${this.#inserted.map(columnName).join(', ')})`;
    this.#insertSql = `${into} VALUES ?`;
    this.#keySql = primary.map((field) => `${columnName(field)} = ?`).join(' AND ');
    const marks = this.#inserted.map(() => '?').join(', ');
    this.#insertIfMissingSql = `${into} SELECT ${marks} FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM ${name} WHERE ${this.#keySql})`;
    this.#changing = this.fields.filter((field) => !primary.includes(field));
    this.#rowSql = [this.#keySql, ...this.#changing.map((field) => `${columnName(field)} <=> ?`)].join(' AND ');
    this.all = this.only(...this.fields) as Selection<Row>;
    this.#enumerations = this.fields.flatMap((field) => {
      const { names } = this.column(field);
      return names === undefined ? [] : [{ field, names }];
    });
    const index =
      (isUnique: boolean) =>
      ([indexName, indexed]: [string, readonly string[]]) => ({
        ...{ name: indexName, columns: [...indexed], unique: isUnique },
      });
    const schemaColumns = this.fields.map((field) => [
      field,
      {
        ...schemaColumn(field, this.column(field), primary.includes(field)),
        ...(field === generated ? { generated: 'increment' } : {}),
      },
    ]);
    this.schema = {
      name,
      tableName: name,
      columns: Object.fromEntries(schemaColumns) as never,
      indices: [...Object.entries(indexes).map(index(false)), ...Object.entries(unique).map(index(true))],
    };
  }

  /** Some of the columns. A read of few columns is a good deal cheaper than one of all. */
  only<F extends Field<Row>>(...fields: readonly F[]): Selection<Pick<Row, F>> {
    const readers = fields.map((field) => ({ field, name: columnName(field), column: this.column(field) }));
    return {
      list: readers.map(({ name }) => name).join(', '),
      read: (row) => {
        const shown: Record<string, unknown> = {};
        for (const { field, name, column } of readers) {
          const stored = row[name];
          shown[field] = stored === null ? null : column.read(stored);
        }
        return shown as Pick<Row, F>;
      },
    };
  }

  /**
   * A row as JSON has it, by the names of its columns: instants in RFC 3339, numbers that can be beyond 2^53 as texts, bytes in
   * hex.
   */
  toJson(row: SqlRow): Record<string, unknown> {
    const members = this.fields.map((field) => {
      const { kind, read } = this.column(field);
      const name = columnName(field);
      const stored = row[name];
      if (stored === null || stored === undefined) return [name, null];
      if (kind === 'instant') return [name, (stored as Date).toISOString()];
      if (kind === 'bytes') return [name, (stored as Buffer).toString('hex')];
      return [name, kind === 'whole' ? String(stored) : read(stored)];
    });
    return Object.fromEntries(members);
  }

  /**
   * Whether this version knows the name in each of the row's enumerations. Another version may have stored others: such a
   * row is shown, and left alone.
   */
  isKnown(row: Row): boolean {
    return this.#enumerations.every(({ field, names }) => names.numberOf(String(row[field])) !== 0);
  }

  /** A condition that is true for the rows that this version knows. */
  get isKnownSql(): string {
    return this.#enumerations.map(({ field }) => this.hasKnownName(field)).join(' AND ');
  }

  /** A condition for rows whose enumeration has a name that this version knows, except those left out. */
  hasKnownName(field: Field<Row>, ...leftOut: readonly string[]): string {
    const names = this.column(field).names?.all.filter((name) => !leftOut.includes(name)) ?? [];
    return `${columnName(field)} IN (${names.map((name) => `'${name}'`).join(', ')})`;
  }

  /** How a field is kept. */
  // biome-ignore lint/suspicious/noExplicitAny: see `Columns`.
  column(field: Field<Row>): Column<any> {
    const column = this.#columns[field];
    if (column === undefined) throw new Error(`${this.name} has no field ${field}`);
    return column;
  }

  /** A condition that is true for rows with these values. Throws if a value is undefined. */
  where(where: Where<Row>): Statement {
    const parts: string[] = [];
    const values: SqlValue[] = [];
    for (const [field, wanted] of Object.entries<unknown>(where)) {
      // Leaving it out would find, change or remove every row.
      if (wanted === undefined) throw new Error(`${this.name} is asked for rows without a ${field}`);
      const many = Array.isArray(wanted) ? wanted : undefined;
      const marks = many === undefined ? '= ?' : `IN (${many.map(() => '?').join(', ')})`;
      parts.push(wanted === null ? `${columnName(field)} IS NULL` : `${columnName(field)} ${marks}`);
      if (many?.includes(null)) throw new Error(`${this.name} cannot look for null in a list of ${field}`);
      for (const one of many ?? [wanted]) if (one !== null) values.push(this.#write(field as Field<Row>, one));
    }
    return { sql: parts.join(' AND '), values };
  }

  /** A condition that is true for exactly this row, as it is: each of its columns has this value. */
  isRow(row: Row): Statement {
    const values = [...this.#primary, ...this.#changing].map((field) => this.#write(field, row[field]));
    return { sql: this.#rowSql, values };
  }

  /**
   * Reads rows with these values. `tail` is what comes after: further conditions, an order, a limit. `index` is the index to
   * read by; by default the server chooses, except between a list of keys and all rows that begin like them.
   */
  find(
    where: Where<Row>,
    selection: Selection<unknown> = this.all,
    tail: Statement = statement(''),
    index = this.#listsKeys(where) ? 'PRIMARY' : undefined,
  ): Statement {
    const { sql, values } = this.where(where);
    return {
      sql: `SELECT ${selection.list} FROM ${this.name}${forceIndex(index)} WHERE ${sql} ${tail.sql}`.trimEnd(),
      values: [...values, ...tail.values],
    };
  }

  insert(...rows: readonly Row[]): Statement {
    const lists = rows.map((row) => this.#inserted.map((field) => this.#write(field, row[field])));
    return ofList(this.#insertSql, lists);
  }

  /**
   * Inserts a row unless one with its primary key is there, which stays as it is. Unlike INSERT IGNORE it fails on a value that
   * the column cannot keep.
   */
  insertIfMissing(row: Row): Statement {
    const values = this.#inserted.map((field) => this.#write(field, row[field]));
    const keys = this.#primary.map((field) => this.#write(field, row[field]));
    return { sql: this.#insertIfMissingSql, values: [...values, ...keys] };
  }

  /** Inserts a row, or saves these fields of the one that is there. */
  put(row: Row, ...saved: readonly Field<Row>[]): Statement {
    const { sql, values } = this.insert(row);
    const sets = saved.map(columnName).map((name) => `${name} = VALUES(${name})`);
    return { sql: `${sql} ON DUPLICATE KEY UPDATE ${sets.join(', ')}`, values };
  }

  /** Inserts a row, or adds its value of a field to the one that is there. */
  addTo(row: Row, field: Field<Row>): Statement {
    const { sql, values } = this.insert(row);
    const name = columnName(field);
    return { sql: `${sql} ON DUPLICATE KEY UPDATE ${name} = ${name} + VALUES(${name})`, values, isOfList: true };
  }

  /** Saves what changed of a row. No statement where nothing did. */
  update(before: Row, after: Row): Statement[] {
    const sets: string[] = [];
    const values: SqlValue[] = [];
    for (const field of this.#changing) {
      if (before[field] === after[field]) continue;
      sets.push(`${columnName(field)} = ?`);
      values.push(this.#write(field, after[field]));
    }
    if (sets.length === 0) return [];
    for (const field of this.#primary) values.push(this.#write(field, before[field]));
    return [{ sql: `UPDATE ${this.name} SET ${sets.join(', ')} WHERE ${this.#keySql}`, values }];
  }

  /** Saves some fields of the rows with these values. */
  set(where: Where<Row>, fields: Partial<Row>): Statement {
    const set = Object.entries<unknown>(fields).map(([field, value]) => ({
      sql: `${columnName(field)} = ?`,
      value: this.#write(field as Field<Row>, value),
    }));
    const { sql, values } = this.where(where);
    return {
      sql: `UPDATE ${this.name} SET ${set.map((one) => one.sql).join(', ')} WHERE ${sql}`,
      values: [...set.map(({ value }) => value), ...values],
    };
  }

  remove(where: Where<Row>): Statement {
    const { sql, values } = this.where(where);
    return { sql: `DELETE FROM ${this.name} WHERE ${sql}`, values };
  }

  /**
   * Whether these values are a list of primary keys, or of their beginnings. The server takes the rows of a partner to be a
   * few thousand, and prefers to read them all to looking up some ten keys. A large partner has millions.
   */
  #listsKeys(where: Where<Row>): boolean {
    const fields = Object.keys(where);
    if (!Object.values(where).some(Array.isArray)) return false;
    return this.#primary.slice(0, fields.length).every((field) => field in where);
  }

  #write(field: Field<Row>, value: unknown): SqlValue {
    if (value === undefined) throw new Error(`${this.name} is given no ${field}`);
    if (value !== null) return this.column(field).write(value);
    if (!this.column(field).isNullable) throw new Error(`${this.name} is given null as its ${field}`);
    return null;
  }
}

/** Names the index to read a table by, which MySQL and MariaDB then use whatever they guess; none if undefined. */
export function forceIndex(index: string | undefined): string {
  return index === undefined ? '' : ` FORCE INDEX (${index})`;
}

const columnNames = new Map<string, string>();

/** The column of a field. Each is made once, because hot statements name dozens. */
function columnName(field: string): string {
  let name = columnNames.get(field);
  if (name === undefined) {
    name = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    columnNames.set(field, name);
  }
  return name;
}

// biome-ignore lint/suspicious/noExplicitAny: see `Columns`.
function schemaColumn(field: string, column: Column<any>, isPrimary: boolean): EntitySchemaColumnOptions {
  const { type, length, precision, isNullable, read, write } = column;
  return {
    name: columnName(field),
    type,
    ...(length === undefined ? {} : { length }),
    ...(precision === undefined ? {} : { precision }),
    nullable: isNullable,
    primary: isPrimary,
    transformer: {
      to: (value) => (value === null || value === undefined ? value : write(value)),
      from: (stored) => (stored === null || stored === undefined ? stored : read(stored)),
    },
  };
}
