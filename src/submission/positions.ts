import { text } from '../db/columns.ts';
import type { Database } from '../db/database.ts';
import { type Statement, statement } from '../db/statement.ts';
import { defineTable } from '../db/table.ts';

/** How far work that goes on for ever has come: the last report applied, the last key looked at for removal. */
export const positions = defineTable({
  name: 'positions',
  columns: { name: text(40), position: text(64) },
  primary: ['name'],
});

/** A stored position; undefined if there is none yet. */
export async function readPosition(database: Database, name: string): Promise<string | undefined> {
  const [row] = await database.read(positions.find({ name }));
  return row && positions.all.read(row).position;
}

export function savePosition(name: string, position: string): Statement {
  return positions.put({ name, position }, 'position');
}

/** Saves a number as a position unless a larger one is stored: whoever was ahead has looked at all before it. */
export function advancePosition(name: string, position: bigint): Statement {
  const { sql, values } = positions.insert({ name, position: position.toString() });
  const larger = 'CAST(position AS UNSIGNED) < CAST(VALUES(position) AS UNSIGNED)';
  return statement(`${sql} ON DUPLICATE KEY UPDATE position = IF(${larger}, VALUES(position), position)`, ...values);
}
