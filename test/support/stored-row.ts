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

/** A stored row with these values. All others are what their columns have for nothing. */
export function anyRow<Row extends object>(table: Table<Row>, values: Partial<Row>): SqlRow {
  const nothing = {
    text: '',
    bytes: Buffer.alloc(32),
    whole: 0n,
    count: 0,
    instant: 0,
    day: '2026-03-02',
    flag: false,
  };
  const fields = table.fields.map((field): [string, unknown] => {
    const { isNullable, kind, names } = table.column(field);
    return [field, isNullable ? null : (names?.all[0] ?? nothing[kind])];
  });
  return storedRow(table, { ...Object.fromEntries(fields), ...values } as Row);
}
