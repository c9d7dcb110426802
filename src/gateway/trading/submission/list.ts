import { daysBefore, lagosDay } from '../../../kit/clock.ts';
import { firstIdAt, type IdPrefix } from '../../edge/ids.ts';
import type { Database } from '../../store/database.ts';
import { type SqlRow, sql, statement } from '../../store/statement.ts';
import type { Selection, Table } from '../../store/table.ts';

/** Which of a partner's objects are listed. */
export interface Listed {
  /** The values that they have, among them the partner's id. */
  readonly equal: { readonly partnerId: string };
  /** Only those that changed at this instant or later. */
  readonly updatedSince: number | undefined;
  /** Only those before this id. */
  readonly before: string | undefined;
  /** Only those with this id or a later one. */
  readonly from?: string | undefined;
  /** The index to read by; absent: one that has rows of these values in the order of their ids. */
  readonly index?: string | undefined;
}

const dayMs = 86_400_000;

interface ListedKind {
  readonly table: Pick<Table<never>, 'name' | 'indexes' | 'find'>;
  readonly prefix: IdPrefix;
}

/** Reads a page of a partner's objects, newest first, at most so many. */
export async function readPage(
  database: Pick<Database, 'read' | 'readAll'>,
  kind: ListedKind,
  selection: Selection<unknown>,
  { equal, updatedSince, before, from, index = indexesOf(kind.table.indexes, equal) }: Listed,
  most: number,
): Promise<SqlRow[]> {
  const { table, prefix } = kind;
  const isLater = from === undefined ? statement('') : sql`AND id >= ${from} `;
  const newest = (left: number, id: string | undefined) =>
    id === undefined
      ? sql`${isLater}${statement(`ORDER BY id DESC LIMIT ${left}`)}`
      : sql`${isLater}${statement(`AND id < ? ORDER BY id DESC LIMIT ${left}`, id)}`;
  if (updatedSince === undefined) {
    return database.read(table.find(equal as never, selection, newest(most, before), index));
  }
  const hasChanged = sql`AND updated_at >= ${new Date(updatedSince)}`;
  // All that were made since then have changed since then, so a page of them is read without passing others.
  const firstId = firstIdAt(prefix, updatedSince);
  const isOlder = before !== undefined && before <= firstId;
  const tail = sql`${hasChanged} AND id >= ${firstId} ${newest(most, before)}`;
  const madeSince = isOlder ? [] : await database.read(table.find(equal as never, selection, tail, index));
  if (madeSince.length >= most) return madeSince;
  // Of all older ones only those that were open then have changed since. In the order of their ids all would be read. Each
  // day has those at its end that changed last. One that is made at midnight may count for the day after.
  const countedDay = await readDays(database, table.name, equal.partnerId, lagosDay(updatedSince + dayMs));
  if (countedDay.length === 0) return madeSince;
  const [older = []] = await database.readAll([
    table.find(
      { ...equal, countedDay } as never,
      selection,
      sql`${hasChanged} ${newest(most - madeSince.length, isOlder ? before : firstId)}`,
      `${table.name}_counted_day`,
    ),
  ]);
  return [...madeSince, ...older];
}

/**
 * The indexes that have the rows of these values in the order of their ids. Of several the server takes the one in which it
 * counts the fewest rows. Left to itself, it may read all rows of a partner.
 */
export function indexesOf(indexes: Readonly<Record<string, readonly string[]>>, equal: object): string {
  const found = Object.entries(indexes).flatMap(([name, fields]) => {
    const values = fields.slice(0, -1);
    return fields.at(-1) === 'id' && values.every((field) => field in equal) ? [{ name, values }] : [];
  });
  const best = found.filter(
    ({ values }) =>
      !found.some((other) => other.values.length > values.length && values.every((one) => other.values.includes(one))),
  );
  return best.length === 0 ? 'PRIMARY' : best.map(({ name }) => name).join(', ');
}

/** The days on which a partner may have objects, up to a day. Both ends are read from the index, one row each. */
export async function readDays(
  database: Pick<Database, 'read'>,
  table: string,
  partnerId: string,
  until: string,
): Promise<string[]> {
  const ends = `SELECT MIN(counted_day) AS first, MAX(counted_day) AS last FROM ${table}
    FORCE INDEX (${table}_counted_day) WHERE partner_id = ?`;
  const [row] = await database.read(statement(ends, partnerId));
  if (row === undefined || row.first === null) return [];
  const days: string[] = [];
  for (let day = String(row.first); day <= until && day <= String(row.last); day = daysBefore(day, -1)) days.push(day);
  return days;
}
