import { groupBy } from '../../../kit/group.ts';
import { attempts, deliveries } from '../../delivery/webhooks/table.ts';
import { joined, type SqlValue, type Statement, sql, statement, toBigInt } from '../../store/statement.ts';
import type { Table } from '../../store/table.ts';
import { type StoredKind, storedKinds } from '../../trading/kinds.ts';
import { orderSteps } from '../../trading/orders/table.ts';
import type { KindName } from '../../trading/submission/kind.ts';
import { lookUps, objectSteps } from '../../trading/submission/table.ts';
import { transfers } from '../../trading/wallet/store.ts';

// biome-ignore lint/suspicious/noExplicitAny: tables of all rows stand in one list.
type AnyTable = Table<any>;

/** A row of the archive: column names, and values as JSON has them. */
export type ArchivedRow = Readonly<Record<string, unknown>>;

/** Rows of another table that are archived with their object, as a member of its row. */
interface Attached {
  readonly member: 'history' | 'look_ups';
  readonly table: AnyTable;
  /** The column with the object's id. */
  readonly idColumn: string;
  /** The column with the instant of such a row. */
  readonly atColumn: 'at' | 'last_at';
  /** How they leave the database: only while a column still has the archived value. Absent: they stay. */
  readonly remove?: { readonly from: string; readonly key: string; value(row: ArchivedRow): SqlValue };
}

/** The rows that one file of the archive holds. */
export interface ArchivedSet {
  /** Of the file. */
  readonly name: string;
  readonly table: AnyTable;
  /** The column after `partner_id` in the primary key. */
  readonly keyColumn: 'id' | 'sequence' | 'version';
  /** A condition for the rows of a period; `late` are the ids of those that got attached rows in it. */
  readonly isOf: (from: Date, to: Date, late: readonly string[]) => Statement;
  readonly attached: readonly Attached[];
}

const ofObject: Attached = { member: 'history', table: objectSteps, idColumn: 'object_id', atColumn: 'at' };
/** Histories that stay in the database, because partners read them. */
const keptHistories: Partial<Record<KindName, Attached>> = {
  order: { member: 'history', table: orderSteps, idColumn: 'order_id', atColumn: 'at' },
  withdrawal: ofObject,
};
const removedHistory: Attached = {
  ...ofObject,
  remove: {
    ...{ from: 'DELETE old FROM object_steps AS old', key: 'sequence' },
    value: ({ sequence }) => Number(sequence),
  },
};
const evidence: Attached = {
  ...{ member: 'look_ups', table: lookUps, idColumn: 'object_id', atColumn: 'last_at' },
  remove: {
    ...{ from: 'DELETE old FROM look_ups AS old', key: 'last_at' },
    value: ({ last_at: at }) => new Date(String(at)),
  },
};

/**
 * By the month of an object's last change, and of each row that is attached to it: a final object that changes again, or gets
 * another step, belongs to a later month then.
 */
const monthly: readonly ArchivedSet[] = [
  ...storedKinds.map(finalObjects),
  {
    ...{ name: 'wallet-transfers', table: transfers, keyColumn: 'sequence', attached: [] },
    isOf: (from, to) => sql`created_at >= ${from} AND created_at < ${to}`,
  },
];

/** The objects of a kind that are final, each with its history and what the reconciler heard of it. */
function finalObjects({ name, table, states: { final } }: StoredKind): ArchivedSet {
  const history = keptHistories[name] ?? removedHistory;
  return {
    ...{ name: table.name, table, keyColumn: 'id', attached: [history, evidence] },
    isOf: (from, to, late) =>
      sql`updated_at < ${to} AND (updated_at >= ${from} OR id IN (${['', ...late]})) AND state IN (${final})`,
  };
}

/** By day, because they are removed from the database after 30 days. */
const daily: readonly ArchivedSet[] = [
  {
    ...{ name: 'webhook-deliveries', table: deliveries, keyColumn: 'version', attached: [] },
    isOf: (from, to) => sql`occurred_at >= ${from} AND occurred_at < ${to}`,
  },
  {
    ...{ name: 'webhook-attempts', table: attempts, keyColumn: 'version', attached: [] },
    isOf: (from, to) => sql`at >= ${from} AND at < ${to}`,
  },
];

/** Finds a delivery of a day that is still to be sent or to expire. */
export function findWaiting(from: Date, to: Date): Statement {
  return sql`SELECT version FROM webhook_deliveries FORCE INDEX (webhook_deliveries_age)
    WHERE queue IN (1, 2) AND occurred_at >= ${from} AND occurred_at < ${to} LIMIT 1`;
}

export const sets = { month: monthly, day: daily } as const;

/** The most rows that a statement examines, whether or not they belong to the period. */
const maxRows = 2_000;
const maxIds = 500;

/** Runs a read; the archive rests between reads. */
export type Read = (query: Statement) => Promise<Record<string, unknown>[]>;

/** The rows of a set that belong to a period, partner by partner, in pages with their attached rows. */
export async function* rowsOf(read: Read, set: ArchivedSet, from: Date, to: Date): AsyncGenerator<ArchivedRow[]> {
  const { table, keyColumn, isOf } = set;
  const key = statement(keyColumn);
  const inOrder = statement(`${table.name} FORCE INDEX (PRIMARY)`);
  for await (const partnerId of partnerIds(read)) {
    const own = sql`partner_id = ${partnerId}`;
    for (let after: SqlValue = keyColumn === 'id' ? '' : -1; ; ) {
      const [window] = await read(
        sql`SELECT MIN(${key}) AS first, MAX(${key}) AS last, COUNT(*) AS count FROM (SELECT ${key} FROM ${inOrder}
          WHERE ${own} AND ${key} > ${after} ORDER BY ${key} LIMIT ${statement(String(maxRows))}) AS keys_in_order`,
      );
      const count = Number(window?.count ?? 0);
      if (count === 0) break;
      const [first, last] = [keyOf(window?.first, keyColumn), keyOf(window?.last, keyColumn)];
      const late = await lateIds(read, set, sql`${own}`, first, last, from, to);
      const rows = await read(
        sql`SELECT ${statement(table.all.list)} FROM ${inOrder} WHERE ${own} AND ${key} >= ${first} AND ${key} <= ${last}
          AND ${isOf(from, to, late)} ORDER BY ${key}`,
      );
      for (let at = 0; at < rows.length; at += maxIds) {
        yield await withAttached(read, set, partnerId, rows.slice(at, at + maxIds));
      }
      if (count < maxRows) break;
      after = last;
    }
  }
}

/** The objects between two ids that got attached rows in a period. */
async function lateIds(
  read: Read,
  { attached }: ArchivedSet,
  own: Statement,
  first: SqlValue,
  last: SqlValue,
  from: Date,
  to: Date,
): Promise<string[]> {
  const found = new Set<string>();
  for (const { table, idColumn, atColumn } of attached) {
    const [id, at] = [statement(idColumn), statement(atColumn)];
    const rows = await read(
      sql`SELECT DISTINCT ${id} AS id FROM ${statement(`${table.name} FORCE INDEX (PRIMARY)`)}
        WHERE ${own} AND ${id} >= ${first} AND ${id} <= ${last} AND ${at} >= ${from} AND ${at} < ${to}`,
    );
    for (const row of rows) found.add(String(row.id));
  }
  return [...found];
}

/** As the database compares it. */
function keyOf(value: unknown, column: ArchivedSet['keyColumn']): SqlValue {
  return column === 'id' ? String(value) : toBigInt(value);
}

async function* partnerIds(read: Read): AsyncGenerator<string> {
  for (let after = ''; ; ) {
    const rows = await read(
      sql`SELECT id FROM partners FORCE INDEX (PRIMARY) WHERE id > ${after} ORDER BY id LIMIT ${statement('500')}`,
    );
    for (const { id } of rows) yield String(id);
    if (rows.length < 500) return;
    after = String(rows.at(-1)?.id);
  }
}

async function withAttached(
  read: Read,
  { table, attached }: ArchivedSet,
  partnerId: string,
  rows: readonly Record<string, unknown>[],
): Promise<ArchivedRow[]> {
  const archived = rows.map((row) => table.toJson(row));
  for (const { member, table: from, idColumn } of attached) {
    const ids = rows.map(({ id }) => String(id));
    const found = await read(
      sql`SELECT ${statement(from.all.list)} FROM ${statement(`${from.name} FORCE INDEX (PRIMARY)`)}
        WHERE partner_id = ${partnerId} AND ${statement(idColumn)} IN (${ids})`,
    );
    const own = groupBy(found, (row) => String(row[idColumn]));
    for (const [at, id] of ids.entries()) {
      archived[at] = { ...archived[at], [member]: (own.get(id) ?? []).map((row) => from.toJson(row)) };
    }
  }
  return archived;
}

/** Removes what is attached to archived objects and leaves the database. What changed since then stays. */
export function removals({ attached }: ArchivedSet, objects: readonly ArchivedRow[]): Statement[] {
  return attached.flatMap(({ member, idColumn, remove }) => {
    const rows = objects.flatMap((object) => (object[member] ?? []) as ArchivedRow[]);
    if (remove === undefined || rows.length === 0) return [];
    const same = rows.map((row) => {
      const isSame = sql`${statement(remove.key)} = ${remove.value(row)}`;
      return sql`(partner_id = ${String(row.partner_id)} AND ${statement(idColumn)} = ${String(row[idColumn])} AND ${isSame})`;
    });
    return [sql`${statement(remove.from)} FORCE INDEX (PRIMARY) WHERE ${joined(same, ' OR ')}`];
  });
}
