import mysql, { type RowDataPacket } from 'mysql2/promise';
import type { SimulatorDatabase, WriterConnection } from '../../src/simulator/store/database.ts';
import { schema } from '../../src/simulator/store/tables.ts';
import { type Row, SqlReader, type Value } from './memory-sql.ts';

interface MemoryTable {
  readonly columns: readonly string[];
  readonly numbers: ReadonlySet<string>;
  readonly keys: readonly (readonly string[])[];
  rows: Row[];
}

/**
 * The simulator's tables in memory, for unit tests. It knows the statements that the simulator makes, and throws at others. Numbers are
 * JavaScript's, so amounts must be small.
 */
export class MemoryDatabase {
  readonly #tables = new Map<string, MemoryTable>();
  /** The statements that were read, with their values. */
  readonly statements: string[] = [];
  writersOpened = 0;
  /** How the next commits fail: before the server has the statements, or before the answer comes. */
  readonly failures: ('before' | 'after' | undefined)[] = [];

  constructor() {
    for (const definition of schema) this.#create(definition);
  }

  /** This database, as the code that reads it has it. */
  get asDatabase(): SimulatorDatabase {
    return this as unknown as SimulatorDatabase;
  }

  async read<Found extends RowDataPacket>(sql: string, values: readonly unknown[] = []): Promise<Found[]> {
    const statement = mysql.format(sql, values as never);
    this.statements.push(statement);
    return new SqlReader(statement, (name) => this.#table(name)).select() as Found[];
  }

  /** Opens the connection that writes. It is lost when a commit has failed. */
  async openWriter(): Promise<WriterConnection> {
    const state = { lost: false };
    this.writersOpened += 1;
    const connection: Pick<WriterConnection, 'lost' | 'read' | 'commit' | 'destroy'> = {
      get lost() {
        return state.lost;
      },
      read: (sql, values) => this.read(sql, values),
      commit: async (statements) => {
        if (state.lost) throw new Error('The connection is lost');
        const failure = this.failures.shift();
        if (failure !== 'before') this.run(statements);
        if (failure === undefined) return;
        state.lost = true;
        throw new Error('The connection broke');
      },
      destroy: () => {
        state.lost = true;
      },
    };
    return connection as WriterConnection;
  }

  /** Runs statements that write. */
  run(statements: readonly string[]): void {
    for (const statement of statements) this.#run(statement);
  }

  /** The rows of a table. */
  rows(name: string): readonly Row[] {
    return this.#table(name).rows;
  }

  #run(statement: string): void {
    // It fills tables of a simulator from before there were any transactions.
    if (statement.includes('ROW_NUMBER()')) return;
    const reader = new SqlReader(statement, (name) => this.#table(name));
    const change = reader.change();
    const table = this.#table(change.table);
    switch (change.kind) {
      case 'insert':
        for (const values of change.rows) this.#insert(table, change, values);
        return;
      case 'update':
        for (const row of table.rows.filter((each) => change.where(each))) change.update(row);
        return;
      case 'delete':
        table.rows = table.rows.filter((each) => !change.where(each));
    }
  }

  #insert(
    table: MemoryTable,
    change: { readonly columns?: readonly string[]; readonly how: string; readonly update?: (row: Row) => void },
    values: readonly Value[],
  ): void {
    const columns = change.columns ?? table.columns;
    const row: Row = Object.fromEntries(table.columns.map((column) => [column, null]));
    for (const [at, column] of columns.entries()) {
      const value = values[at] ?? null;
      row[column] = value !== null && table.numbers.has(column) ? Number(value) : value;
    }
    const same = table.rows.find((each) => table.keys.some((key) => key.every((part) => each[part] === row[part])));
    if (same === undefined) table.rows.push(row);
    else if (change.how === 'REPLACE') table.rows[table.rows.indexOf(same)] = row;
    else if (change.update !== undefined) Object.assign(same, changed(same, row, change.update));
    else if (change.how !== 'INSERT IGNORE') throw new Error(`Duplicate entry: ${JSON.stringify(row)}`);
  }

  #create(definition: string): void {
    const [, name = '', body = ''] = /^CREATE TABLE IF NOT EXISTS (\w+) \((.*)\) ENGINE/.exec(definition) ?? [];
    const lines = body.split(/, (?![^(]*\))/);
    const keys = lines.flatMap((line) => {
      const own = /^(\w+) .*PRIMARY KEY$/.exec(line)?.[1];
      const listed = /^(?:PRIMARY KEY|UNIQUE KEY \w+) \((.*)\)$/.exec(line)?.[1];
      return [own, listed].flatMap((key) => (key === undefined ? [] : [key.split(', ')]));
    });
    const columns = lines.filter((line) => !/^(?:PRIMARY |UNIQUE )?KEY /.test(line)).map((line) => line.split(' '));
    const numbers = columns.filter(([, type = '']) => /INT$/.test(type)).map(([column = '']) => column);
    this.#tables.set(name, {
      ...{ columns: columns.map(([column = '']) => column), numbers: new Set(numbers), keys, rows: [] },
    });
  }

  #table(name: string): MemoryTable {
    const table = this.#tables.get(name);
    if (table === undefined) throw new Error(`There is no table ${name}`);
    return table;
  }
}

/** The present row after `ON DUPLICATE KEY UPDATE`, in which `VALUES(column)` is that of the new row. */
function changed(present: Row, given: Row, update: (row: Row) => void): Row {
  const row: Row = { ...present };
  for (const [column, value] of Object.entries(given)) row[`VALUES ${column}`] = value;
  update(row);
  return Object.fromEntries(Object.entries(row).filter(([column]) => !column.startsWith('VALUES ')));
}
