import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { defineTable, text } from '../../store/table.ts';

/** The positions of continuous jobs: the last report applied, the last key checked for removal, the last ledger entry checked. */
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

/** Saves a position with a mark behind it, unless one with the same mark is stored. */
export function saveFirst(name: string, position: string, mark: string): Statement {
  const { sql, values } = positions.insert({ name, position: `${position} ${mark}` });
  const hasMark = "SUBSTRING_INDEX(position, ' ', -1) = SUBSTRING_INDEX(VALUES(position), ' ', -1)";
  return statement(`${sql} ON DUPLICATE KEY UPDATE position = IF(${hasMark}, position, VALUES(position))`, ...values);
}

/** Saves a number as a position unless a larger one is stored: another process has then done everything before it. */
export function advancePosition(name: string, position: bigint): Statement {
  const { sql, values } = positions.insert({ name, position: position.toString() });
  const larger = 'CAST(position AS UNSIGNED) < CAST(VALUES(position) AS UNSIGNED)';
  return statement(`${sql} ON DUPLICATE KEY UPDATE position = IF(${larger}, VALUES(position), position)`, ...values);
}
