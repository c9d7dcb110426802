import mysql, { type RowDataPacket } from 'mysql2/promise';

/** A value of a column. */
type ColumnValue = string | number | null;

/** A column that holds a member's values in another form, or under another name than the member's in snake case. */
interface Column<Value> {
  readonly name?: string;
  readonly type: string;
  readonly toColumn: (value: Value) => ColumnValue;
  readonly fromColumn: (stored: ColumnValue) => Value;
}

/** What a table's columns hold: for each member of the model its type in SQL, or more. */
type Columns<Model> = { readonly [Member in keyof Model]-?: string | Column<Model[Member]> };

/** Whole numbers that may be too large for a JavaScript number. The driver gives such values as text. */
export const bigWhole: Column<bigint> = {
  type: 'BIGINT NOT NULL',
  toColumn: (value) => value.toString(),
  fromColumn: (stored) => BigInt(stored ?? 0),
};

/** True or false as 1 or 0. */
export const flag: Column<boolean> = {
  type: 'TINYINT NOT NULL',
  toColumn: (value) => (value ? 1 : 0),
  fromColumn: (stored) => stored === 1,
};

/** The columns of each table of reports. */
export const reportColumns = {
  number: 'BIGINT NOT NULL PRIMARY KEY',
  kind: 'TINYINT NOT NULL',
  atMs: 'BIGINT NOT NULL',
  rejectReason: 'TINYINT NOT NULL',
};

/** A table of the simulator: how it is made, and how objects are read from and written to it. */
export class Table<Model extends object> {
  /** The names of all columns, for a SELECT. */
  readonly columns: string;
  /** Makes the table where it is missing. */
  readonly definition: string;
  readonly #columns: readonly (readonly [member: string, column: Required<Column<unknown>>])[];
  readonly #onDuplicate: string;

  constructor(
    readonly name: string,
    columns: Columns<Model>,
    /** Its keys, and the members that change. Without such, storing a row a second time fails. */
    { keys = [], changing = [] }: { readonly keys?: readonly string[]; readonly changing?: readonly (keyof Model)[] },
  ) {
    this.#columns = (Object.entries(columns) as [string, string | Column<unknown>][]).map(([member, column]) => [
      member,
      { name: snakeCase(member), ...(typeof column === 'string' ? { type: column, ...asItIs } : column) },
    ]);
    this.columns = this.#columns.map(([, column]) => column.name).join(', ');
    const lines = [...this.#columns.map(([, column]) => `${column.name} ${column.type}`), ...keys];
    this.definition = tableDefinition(name, lines);
    const changes = this.#columns.filter(([member]) => changing.includes(member as keyof Model));
    const updates = changes.map(([, column]) => `${column.name} = VALUES(${column.name})`).join(', ');
    this.#onDuplicate = updates === '' ? '' : ` ON DUPLICATE KEY UPDATE ${updates}`;
  }

  fromRow = (row: RowDataPacket): Model => {
    const members = this.#columns.map(([member, column]) => [member, column.fromColumn(row[column.name])]);
    return Object.fromEntries(members) as Model;
  };

  /** The statement that stores objects, or none. Those that were stored before are changed. */
  save(models: Iterable<Model>): string[] {
    return this.#insert(models, 'INSERT', this.#onDuplicate);
  }

  /** The same, but what was stored before stays as it is. */
  saveNew(models: Iterable<Model>): string[] {
    return this.#insert(models, 'INSERT IGNORE', '');
  }

  #insert(models: Iterable<Model>, insert: string, onDuplicate: string): string[] {
    const rows = [...models].map((model) =>
      this.#columns.map(([member, column]) => column.toColumn(model[member as keyof Model])),
    );
    if (rows.length === 0) return [];
    return [mysql.format(`${insert} INTO ${this.name} (${this.columns}) VALUES ?${onDuplicate}`, [rows])];
  }
}

/** Makes a table where it is missing. */
export function tableDefinition(name: string, lines: readonly string[]): string {
  const options = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';
  return `CREATE TABLE IF NOT EXISTS ${name} (${lines.join(', ')}) ${options}`;
}

const asItIs = { toColumn: (value: unknown) => value as ColumnValue, fromColumn: (stored: ColumnValue) => stored };

function snakeCase(member: string): string {
  return member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
