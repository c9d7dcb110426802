import type { SqlRow } from '../../src/gateway/store/statement.ts';
import type { Table } from '../../src/gateway/store/table.ts';

/** A row as a driver reads it from the database, for tests whose database is a script. */
export function storedRow<Row extends object>(table: Table<Row>, row: Row): SqlRow {
  const stored = table.fields.map((field): [string, unknown] => {
    const column = table.column(field);
    const value = row[field];
    const name = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return [name, value === null || value === undefined ? null : column.write(value)];
  });
  return Object.fromEntries(stored) as SqlRow;
}
