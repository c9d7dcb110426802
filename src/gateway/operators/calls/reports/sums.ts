import type { Database } from '../../../store/database.ts';
import { type SqlRow, type Statement, sql, statement, toBigInt } from '../../../store/statement.ts';
import { readDays } from '../../../trading/submission/list.ts';
import { transferTypeOf } from '../../../trading/wallet/store.ts';
import { type Days, idsAround } from './days.ts';
import { missingEntry } from './ledger-part.ts';

/** How many rows a statement adds up. */
const together = 2_000;
/** How many orders a statement adds up the trades of, each of which has some steps. */
const ordersTogether = 500;
/** How many days are looked through in one round trip. */
const daysTogether = 100;

/** A number of things with the sum of their values. */
export interface Sum {
  readonly count: bigint;
  readonly kobo: bigint;
}

export interface TradeSum extends Sum {
  readonly quantity: bigint;
}

/** Sums by the name of what they are of, such as a state. */
export type Sums = Map<string, Sum>;

/** The trades of days, by the day. */
export type TradeDays = Map<string, TradeSum>;

export const noTrades: TradeSum = { count: 0n, quantity: 0n, kobo: 0n };

export function addTo(sums: Sums, name: string, { count, kobo }: Sum): void {
  const before = sums.get(name) ?? { count: 0n, kobo: 0n };
  sums.set(name, { count: before.count + count, kobo: before.kobo + kobo });
}

export function plus(one: TradeSum, other: TradeSum): TradeSum {
  return {
    count: one.count + other.count,
    quantity: one.quantity + other.quantity,
    kobo: one.kobo + other.kobo,
  };
}

/** The value of an object of each kind. A product may need more than 64 bits. */
const kinds = {
  ord: { table: 'orders', value: 'CAST(quantity AS DECIMAL(30)) * counted_price_kobo' },
  alc: { table: 'allocations', value: 'amount_kobo' },
  wdr: { table: 'withdrawals', value: 'amount_kobo' },
} as const;

/** The objects of a kind that a partner created on a day, by state. The database adds them up, some at a time. */
export async function sumObjects(
  database: Database,
  partnerId: string,
  prefix: keyof typeof kinds,
  day: Days,
): Promise<Sums> {
  const { table, value } = kinds[prefix];
  const sums: Sums = new Map();
  for (let from: string | undefined; ; ) {
    const rows = await database.read(
      sql`SELECT state, counted_day = ${day.first} AS is_of_day, COUNT(*) AS count, SUM(kobo) AS kobo, MAX(id) AS last
        FROM (SELECT id, state, counted_day, ${statement(value)} AS kobo FROM ${statement(table)} FORCE INDEX (PRIMARY)
          WHERE partner_id = ${partnerId} AND ${idsAround(day, prefix, from)} ORDER BY id ${limit(together)}) AS page
        GROUP BY state, is_of_day`,
    );
    for (const row of rows) if (Number(row.is_of_day) === 1) addTo(sums, String(row.state), toSum(row));
    const last = lastOf(rows, together);
    if (last === undefined) return sums;
    from = `${last}2`;
  }
}

/** A trade counts on the exchange's day; a time after the gateway heard of it cannot be. In Lagos it is UTC+1 all year. */
const tradedDay = 'DATE(LEAST(COALESCE(s.upstream_at, s.at), s.at) + INTERVAL 1 HOUR)';
/** Steps of 0.1.0 do not say whether they changed the order (`isCounted`). */
const isCounted = `s.trade_sequence IS NULL AND (s.kind = 'report' OR s.state IN ('refused', 'rejected'))`;
const filled = `COALESCE(s.filled_change, IF(${isCounted}, s.quantity, 0))`;
const filledKobo = `COALESCE(s.value_change_kobo, IF(${isCounted}, CAST(s.quantity AS DECIMAL(30)) * s.price_kobo, 0))`;
const tradeSums = statement(
  `COUNT(IF(s.trade_sequence IS NULL AND ${filled} <> 0, 1, NULL)) AS count, SUM(${filled}) AS quantity, SUM(${filledKobo}) AS kobo`,
);

/** Adds the trades, on some days, of the orders that a partner placed on one of them. No trade counts before its order's day. */
export async function addTrades(
  database: Database,
  partnerId: string,
  day: Days,
  days: Days,
  trades: TradeDays,
): Promise<void> {
  // STRAIGHT_JOIN, because a server that guesses otherwise reads all steps of the partner.
  for (let from: string | undefined; ; ) {
    const page = sql`SELECT id, counted_day FROM orders FORCE INDEX (PRIMARY)
      WHERE partner_id = ${partnerId} AND ${idsAround(day, 'ord', from)} ORDER BY id ${limit(ordersTogether)}`;
    const [[last] = [], rows = []] = await database.readAll([
      sql`SELECT COUNT(*) AS count, MAX(id) AS last FROM (${page}) AS page`,
      sql`SELECT GREATEST(${statement(tradedDay)}, page.counted_day) AS day, ${tradeSums}
        FROM (${page}) AS page STRAIGHT_JOIN order_steps s FORCE INDEX (PRIMARY) ON s.order_id = page.id
        WHERE s.partner_id = ${partnerId} AND page.counted_day = ${day.first} AND s.quantity IS NOT NULL GROUP BY day`,
    ]);
    addTradeDays(trades, rows, days);
    if (last === undefined || Number(last.count) < ordersTogether) return;
    from = `${last.last}2`;
  }
}

/** Adds the trades, on some days, of the orders that a partner placed before. They have changed since. */
export async function addCarriedTrades(
  database: Database,
  partnerId: string,
  days: Days,
  trades: TradeDays,
  signal: AbortSignal,
): Promise<void> {
  for await (const ids of carriedOrders(database, partnerId, days)) {
    if (signal.aborted) return;
    const [rows = []] = await database.readAll([
      sql`SELECT ${statement(tradedDay)} AS day, ${tradeSums} FROM order_steps s FORCE INDEX (PRIMARY)
        WHERE s.partner_id = ${partnerId} AND s.order_id IN (${ids}) AND s.quantity IS NOT NULL GROUP BY day`,
    ]);
    addTradeDays(trades, rows, days);
  }
}

/** The orders of earlier days that changed on some days or later. Each day has those at its end that changed last. */
async function* carriedOrders(database: Database, partnerId: string, days: Days): AsyncGenerator<string[]> {
  const placedOn = (await readDays(database, 'orders', partnerId, days.first)).filter((day) => day < days.first);
  for (let at = 0; at < placedOn.length; at += daysTogether) {
    const some = placedOn.slice(at, at + daysTogether);
    const pages = await database.readAll(some.map((day) => changedSince(partnerId, day, days.from, '')));
    for (const [index, day] of some.entries()) {
      for (let page = pages[index] ?? []; page.length > 0; ) {
        yield page.map(({ id }) => String(id));
        const last = page.at(-1);
        if (last === undefined || page.length < ordersTogether) break;
        const after = changedSince(partnerId, day, (last.updated_at as Date).getTime(), String(last.id));
        [page = []] = await database.readAll([after]);
      }
    }
  }
}

function changedSince(partnerId: string, day: string, atMs: number, id: string): Statement {
  const at = new Date(atMs);
  return sql`SELECT id, updated_at FROM orders FORCE INDEX (orders_counted_day)
    WHERE partner_id = ${partnerId} AND counted_day = ${day} AND updated_at >= ${at} AND NOT (updated_at = ${at} AND id <= ${id})
    ORDER BY updated_at, id ${limit(ordersTogether)}`;
}

/** The entries of a part of a ledger, by type. */
export async function sumEntries(
  database: Database,
  partnerId: string,
  { first, end }: { readonly first: bigint; readonly end: bigint },
): Promise<Sums> {
  const sums: Sums = new Map();
  for (let from = first; from < end; ) {
    const rows = await database.read(
      sql`SELECT type, COUNT(*) AS count, SUM(amount_kobo) AS kobo, MAX(sequence) AS last FROM (SELECT type, amount_kobo, sequence
        FROM wallet_transfers FORCE INDEX (PRIMARY) WHERE partner_id = ${partnerId} AND sequence >= ${from.toString()}
        AND sequence < ${end.toString()} ORDER BY sequence ${limit(together)}) AS page GROUP BY type`,
    );
    for (const row of rows) addTo(sums, transferTypeOf(String(row.type)), toSum(row));
    const last = rows.map((row) => toBigInt(row.last)).reduce((most, each) => (each > most ? each : most), from - 1n);
    const count = rows.reduce((sum, row) => sum + toBigInt(row.count), 0n);
    if (count === 0n || last !== from + count - 1n) throw missingEntry(partnerId, from);
    from = last + 1n;
  }
  return sums;
}

function addTradeDays(trades: TradeDays, rows: readonly SqlRow[], { first, last }: Days): void {
  for (const row of rows) {
    const day = String(row.day);
    if (day < first || day > last) continue;
    trades.set(day, plus(trades.get(day) ?? noTrades, { ...toSum(row), quantity: toBigInt(row.quantity) }));
  }
}

function toSum(row: SqlRow): Sum {
  return { count: toBigInt(row.count), kobo: toBigInt(row.kobo) };
}

/** The last id of a full page; undefined: no page follows. */
function lastOf(rows: readonly SqlRow[], most: number): string | undefined {
  const count = rows.reduce((sum, row) => sum + Number(row.count), 0);
  return count < most
    ? undefined
    : rows
        .map(({ last }) => String(last))
        .toSorted()
        .at(-1);
}

function limit(most: number): Statement {
  return statement(`LIMIT ${most}`);
}
