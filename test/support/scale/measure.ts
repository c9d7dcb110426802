import type { Connection } from 'mysql2/promise';
import { mySqlSettings } from '../../../src/gateway/store/data-source.ts';
import { guardStart, repeated } from '../statement-shapes.ts';
import { specialOf } from './bounds.ts';
import { type Place, placesOf } from './places.ts';
import type { PlaceValue, Values } from './values.ts';

/** A statement as it is run, from its shape. */
export interface Runnable {
  readonly sql: string;
  readonly places: readonly Place[];
  /** How many times a repeated part is there. */
  readonly parts: number;
}

/** The reads of a run: rows of tables and of indexes. */
export interface Measured {
  readonly shape: string;
  readonly read: number;
  readonly allowed: number;
  readonly sql: string;
}

/** Reads in addition to those that are asked for: the ends of ranges, and tables of one row. */
const alwaysAllowed = 20;
/** Reads for each row that is asked for: its index, its row, the same of two tables that are joined to it, sorting it. */
const allowedEach = 6;
/** How often a part stands that can be there any number of times. */
const partCounts = [1, 8];
const longestSeconds = 20;

/** The statements of a shape. None for an INSERT of values, which reads nothing but the keys of its own rows. */
export function runnablesOf(shape: string, values: Pick<Values, 'columnsOf' | 'plainColumn'>): Runnable[] {
  if (shape.includes(' VALUES ?')) return [];
  let sql = shape.startsWith(guardStart)
    ? `SELECT 0 FROM DUAL WHERE (${shape.slice(guardStart.length)}) IS NOT TRUE`
    : shape;
  const [, updated] = /^UPDATE (\w+)(?: FORCE INDEX \(\w+\))? SET \* WHERE/.exec(sql) ?? [];
  if (updated !== undefined) {
    const column = values.plainColumn(updated);
    sql = sql.replace(' SET * WHERE', ` SET ${column} = ${column} WHERE`);
  }
  // The row that it would insert may be there already.
  sql = sql.replace(/^INSERT INTO(?= .* SELECT )/, 'INSERT IGNORE INTO');
  const counts = sql.includes(`)${repeated}`) ? partCounts : [1];
  return counts.map((parts) => {
    const whole = repeat(sql, parts);
    return { sql: whole, places: placesOf(whole, values.columnsOf), parts };
  });
}

function repeat(sql: string, parts: number): string {
  let whole = sql;
  for (let at = whole.indexOf(`)${repeated}`); at >= 0; at = whole.indexOf(`)${repeated}`)) {
    const start = openingOf(whole, at);
    const between = whole.slice(start).startsWith('(SELECT') ? ' UNION ALL ' : ' OR ';
    const part = whole.slice(start, at + 1);
    whole = whole.slice(0, start) + Array(parts).fill(part).join(between) + whole.slice(at + 1 + repeated.length);
  }
  return whole;
}

function openingOf(text: string, end: number): number {
  let depth = 0;
  for (let at = end; at >= 0; at -= 1) {
    if (text[at] === ')') depth += 1;
    if (text[at] === '(') depth -= 1;
    if (depth === 0) return at;
  }
  return 0;
}

/** Runs a statement with values, undoes what it changed, and says what it read. */
export async function measure(connection: Connection, { sql, places, parts }: Runnable, run: PlaceValue[]) {
  const text = connection.format(sql, run as never);
  const asked = places.map((place, at) => {
    const value = run[at];
    if (place.kind === 'limit') return Number(value);
    return place.kind === 'list' && Array.isArray(value) ? value.length : 0;
  });
  const limits = [...sql.matchAll(/LIMIT (\d+)/g)].map(([, limit]) => Number(limit));
  const rows = Math.max(
    parts,
    1,
    [...asked, ...limits].reduce((sum, each) => sum + each, 0),
  );
  const allowed = alwaysAllowed + allowedEach * rows;
  return { read: await readBy(connection, text), allowed, sql: text };
}

/** The rows that the server read for a statement: by the counters of its handlers, index entries that it passed over too. */
async function readBy(connection: Connection, text: string): Promise<number> {
  const counters = "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler\\_%'";
  try {
    const [results] = await connection.query(`FLUSH STATUS; START TRANSACTION; ${text}; ${counters}; ROLLBACK`);
    const rows = (results as unknown[])[3] as { Variable_name: string; Value: string }[];
    const counted = new Map(rows.map(({ Variable_name: name, Value: value }) => [name, Number(value)]));
    const passedOver = (counted.get('Handler_icp_attempts') ?? 0) - (counted.get('Handler_icp_match') ?? 0);
    const reads = [...counted].filter(([name]) => name.startsWith('Handler_read_'));
    return reads.reduce((sum, [, count]) => sum + count, passedOver);
  } catch (error) {
    await connection.query('ROLLBACK');
    if (isTimeout(error)) return Number.POSITIVE_INFINITY;
    throw new Error(`${(error as Error).message}: ${text}`, { cause: error });
  }
}

/** Gives up on a statement after a while, because it has then read more than any may, and plans as gateways' sessions do. */
export async function prepareSession(connection: Connection): Promise<void> {
  const [rows] = await connection.query('SELECT VERSION() AS version');
  const isMariaDb = (rows as { version: string }[])[0]?.version.includes('MariaDB');
  const limit = isMariaDb ? `max_statement_time = ${longestSeconds}` : `max_execution_time = ${longestSeconds * 1_000}`;
  await connection.query(`SET SESSION ${limit} ${mySqlSettings}`);
}

function isTimeout(error: unknown): boolean {
  return [1969, 3024].includes((error as { errno?: number }).errno ?? 0);
}

/** The greatest excess of a statement over all its runs. Once it reads far too much it is not run any more. */
export async function worstOf(connection: Connection, shape: string, values: Values): Promise<Measured | undefined> {
  const special = specialOf(shape);
  let worst: Measured | undefined;
  for (const runnable of runnablesOf(shape, values)) {
    for (const run of values.runs(runnable.places, special)) {
      const { allowed, ...one } = await measure(connection, runnable, run);
      const measured = { ...one, shape, allowed: allowed + (special?.more ?? 0) };
      if (worst === undefined || excess(measured) > excess(worst)) worst = measured;
      if (measured.read > 50 * measured.allowed) return measured;
    }
  }
  return worst;
}

function excess({ read, allowed }: Measured): number {
  return read / allowed;
}
