import mysql, { type RowDataPacket } from 'mysql2/promise';

type ColumnValue = string | number | null;

/** A column with another form or name than the member's in snake case. */
interface Column<Value> {
  readonly name?: string;
  readonly type: string;
  readonly toColumn: (value: Value) => ColumnValue;
  readonly fromColumn: (stored: ColumnValue) => Value;
}

/** The columns of a table: for each member of the model its SQL type, or more. */
type Columns<Model> = { readonly [Member in keyof Model]-?: string | Column<Model[Member]> };

/** Whole numbers that may be too large for a JavaScript number. The driver returns them as text. */
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

export const reportColumns = {
  number: 'BIGINT NOT NULL PRIMARY KEY',
  kind: 'TINYINT NOT NULL',
  atMs: 'BIGINT NOT NULL',
  rejectReason: 'TINYINT NOT NULL',
};

/** A table of the simulator: its definition, and how objects are read and written. */
export class SimulatorTable<Model extends object> {
  readonly columns: string;
  /** Creates the table if it is missing. */
  readonly definition: string;
  readonly #columns: readonly (readonly [member: string, column: Required<Column<unknown>>])[];
  readonly #onDuplicate: string;

  constructor(
    readonly name: string,
    columns: Columns<Model>,
    /** Its keys, and the members that may change. Without the latter, storing a row twice fails. */
    {
      keys = [],
      changing = [],
    }: { readonly keys?: readonly string[]; readonly changing?: readonly (keyof Model)[] } = {},
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

  /** The statement that stores objects, if any. Rows that exist are changed. */
  save(models: Iterable<Model>): string[] {
    return this.#insert(models, 'INSERT', this.#onDuplicate);
  }

  /** The same, but existing rows stay as they are. */
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

/** Creates a table if it is missing. */
export function tableDefinition(name: string, lines: readonly string[]): string {
  const options = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';
  return `CREATE TABLE IF NOT EXISTS ${name} (${lines.join(', ')}) ${options}`;
}

const asItIs = { toColumn: (value: unknown) => value as ColumnValue, fromColumn: (stored: ColumnValue) => stored };

function snakeCase(member: string): string {
  return member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
