import type { SqlValue, Statement } from '../../src/gateway/store/statement.ts';

/** An INSERT of some rows, each a list of values in the order of the columns. */
export function insertRows(
  table: string,
  columns: readonly string[],
  rows: readonly (readonly SqlValue[])[],
): Statement {
  // One place for all rows: looking for a place for each value took longer than writing the values.
  return { sql: `INSERT INTO ${table} (${columns.join(', ')}) VALUES ?`, values: [rows] };
}
