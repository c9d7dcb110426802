import type { Connection } from 'mysql2/promise';
import { specialOf } from './bounds.ts';
import { type LookAlikes, otherPartners, ownPartner, rowCount } from './look-alikes.ts';
import { type Runnable, runnablesOf } from './measure.ts';
import { type ColumnName, type Place, placesOf } from './places.ts';
import { type PlaceValue, pageLimit, type Value } from './values.ts';

/** Databases of the partner alone, and with others whose rows look the same. */
export interface TwoDatabases {
  readonly alone: Connection;
  readonly beside: Connection;
}

/** The finding about a statement that was run for one partner, in all its runs. */
export interface Finding {
  /** A run whose answer or effect is another one if other partners are there. */
  readonly differs: string | undefined;
  /** The statement without one of the places that name its partner, if that made no difference in any run. */
  readonly unseen: readonly string[];
  /** Whether the values of its places name the partner. */
  readonly isOfPartner: boolean;
}

/** How many runs go in one round trip. */
const batch = 12;
/** After so many runs that find something the others are left out. */
const enoughMet = 4;

/** Runs a statement for the partner with many values, in both databases, and compares them. */
export async function findDifference(databases: TwoDatabases, shape: string, rows: LookAlikes): Promise<Finding> {
  const all: Finding[] = [];
  for (const runnable of [...runnablesOf(shape, rows).slice(0, 1), ...insertOf(shape, rows)]) {
    all.push(await findInRunnable(databases, runnable, shape, rows));
  }
  return {
    differs: all.find(({ differs }) => differs !== undefined)?.differs,
    unseen: all.flatMap(({ unseen }) => unseen),
    isOfPartner: all.some(({ isOfPartner }) => isOfPartner),
  };
}

async function findInRunnable(databases: TwoDatabases, runnable: Runnable, shape: string, rows: LookAlikes) {
  const { alone, beside } = databases;
  const runs = runsOf(runnable.places, specialOf(shape)?.other, rows);
  const texts = (sql: string, some: readonly PlaceValue[][]) =>
    some.map((values) => alone.format(sql, values as never));
  const unseen = new Set(withoutPartner(runnable));
  const found = { differs: undefined as string | undefined, met: 0 };
  for (let from = 0; from < runs.length; from += batch) {
    const some = runs.slice(from, from + batch);
    const asked = texts(runnable.sql, some);
    const right = await results(alone, asked, rows);
    const answered = await resultsOrFailure(beside, asked, rows);
    const at = right.findIndex((each, number) => each !== answered[number]);
    if (at >= 0) found.differs ??= `${asked[at]}\n  alone: ${right[at]}\n  beside: ${answered[at]}`;
    found.met += right.filter((each) => !nothing.test(each)).length;
    for (const changed of unseen) {
      const wrong = await resultsOrFailure(beside, texts(changed, some), rows);
      if (wrong.some((each, number) => each !== right[number])) unseen.delete(changed);
    }
    if (found.met >= enoughMet && unseen.size === 0) break;
  }
  const isOfPartner = runnable.places.some(namesPartner);
  return { differs: found.differs, unseen: [...unseen], isOfPartner };
}

/** An INSERT of values that changes a row that is there already, which could be another partner's. */
function insertOf(shape: string, rows: LookAlikes): Runnable[] {
  const [, table = '', names = ''] = /^INSERT INTO (\w+) \((.*?)\) VALUES \? ON DUPLICATE/.exec(shape) ?? [];
  if (table === '') return [];
  const columns = names.split(', ');
  const sql = shape.replace('VALUES ?', `VALUES (${columns.map(() => '?').join(', ')})`);
  const places = placesOf(sql, rows.columnsOf);
  return [
    {
      sql,
      places: places.map((place, at) => {
        const column = columns[at];
        return column === undefined ? place : { kind: 'other', stored: { table, column } };
      }),
      parts: 1,
    },
  ];
}

/** The statement without its partner, once for each place that names it. The value stays where it is. */
function withoutPartner({ sql, places }: Runnable): string[] {
  const changed: string[] = [];
  let at = -1;
  for (const place of places) {
    at = sql.indexOf('?', at + 1);
    if (!namesPartner(place) || place.kind !== 'compared') continue;
    const before = sql.slice(0, at);
    const condition = /[\w`.]+\)? <?=>? $/.exec(before)?.[0];
    if (condition === undefined) throw new Error(`The condition before ${at} is not known: ${sql}`);
    changed.push(`${before.slice(0, -condition.length)}? IS NOT NULL${sql.slice(at + 1)}`);
  }
  for (const { index, 0: condition } of sql.matchAll(/\b\w+\.partner_id = \w+\.(?:partner_id|id)\b/g)) {
    changed.push(`${sql.slice(0, index)}TRUE${sql.slice(index + condition.length)}`);
  }
  return changed;
}

const nothing = /^(?:\[\]|0 )/;

/** Returns the answer of each statement, or how many rows it met and which rows it left. Nothing stays changed. */
async function results(connection: Connection, texts: readonly string[], rows: LookAlikes): Promise<string[]> {
  const [first = ''] = texts;
  if (/^\(?(?:SELECT|WITH)/.test(first)) {
    const [sets] = await connection.query(texts.join(';\n'));
    const all = (texts.length === 1 ? [sets] : sets) as unknown[][];
    return all.map((set) => JSON.stringify(set.map((row) => JSON.stringify(row)).sort()));
  }
  const tables = rows.ofPartnersIn(first);
  const [own, others] = (['=', '<>'] as const).map((sign) => tables.map((table) => rows.checksum(table, sign)));
  const query = async (parts: readonly (string | undefined)[]) =>
    (await connection.query(parts.join(';\n')))[0] as unknown[];
  const untouched = JSON.stringify((await query(['DO 0', ...(others ?? [])])).slice(1));
  const parts = texts.map((text) => ['START TRANSACTION', text, ...(own ?? []), ...(others ?? []), 'ROLLBACK']);
  const sets = await query(parts.flat());
  const length = parts[0]?.length ?? 0;
  return texts.map((_, number) => {
    const [, changed, ...sums] = sets.slice(number * length, (number + 1) * length - 1);
    const areOthersSame = JSON.stringify(sums.slice(tables.length)) === untouched;
    const { affectedRows } = changed as { affectedRows: number };
    return `${affectedRows} rows; ${JSON.stringify(sums.slice(0, tables.length))}; others the same: ${areOthersSame}`;
  });
}

/** The same for the database with other partners, where a statement may find more rows than it can do with. */
async function resultsOrFailure(connection: Connection, texts: readonly string[], rows: LookAlikes): Promise<string[]> {
  try {
    return await results(connection, texts, rows);
  } catch (error) {
    await connection.query('ROLLBACK');
    return texts.map(() => (error as Error).message);
  }
}

/**
 * The values of the places for each run: those of a row, with ranges that have all rows in them, and with ranges that end
 * at the row. The partner is always the one. In half of the runs the other values are another partner's, as if the
 * partner named another's order.
 */
function runsOf(places: readonly Place[], special: Value | undefined, rows: LookAlikes): PlaceValue[][] {
  const runs = new Map<string, PlaceValue[]>();
  for (const isOpen of [true, false]) {
    for (let at = 0; at < rowCount; at += 1) {
      for (const owner of [ownPartner, otherPartners[at % 2] as string]) {
        const values = places.map((place) => chosenValue(place, { at, owner, isOpen, special }, rows));
        runs.set(JSON.stringify(values), values);
      }
    }
  }
  return [...runs.values()];
}

interface Run {
  readonly at: number;
  readonly owner: string;
  readonly isOpen: boolean;
  readonly special: Value | undefined;
}

function chosenValue(place: Place, { at, owner, isOpen, special }: Run, rows: LookAlikes): PlaceValue {
  if (place.kind === 'limit') return pageLimit;
  const own = (column: ColumnName, number = at, partner = ownPartner) =>
    isPartner(column) ? partner : rows.value(column.table, column.column, number, owner);
  if (place.kind === 'other') return special ?? (place.stored ? own(place.stored) : isOpen ? 1 : '');
  if (place.kind === 'list') {
    const both = [at, at + 1].map((number) =>
      place.columns.map((column) => own(column, number, place.isExcluded ? otherPartners[0] : ownPartner)),
    );
    return place.columns.length === 1 ? both.map(([value = null]) => value) : both;
  }
  if (!place.isRange || !isOpen) return own(place.column);
  const type = rows.columnsOf.get(place.column.table)?.get(place.column.column) ?? '';
  const [least, greatest] = /date/.test(type)
    ? ['1971-01-01', '2037-12-31']
    : /int/.test(type)
      ? [0, 2 ** 52]
      : ['', '~'];
  return place.isUpper === true ? (greatest as Value) : (least as Value);
}

function isPartner({ table, column }: ColumnName): boolean {
  return column === 'partner_id' || (table === 'partners' && column === 'id');
}

/** Whether a place names the partner that the statement is for. */
function namesPartner(place: Place): boolean {
  if (place.kind === 'compared') return !place.isRange && isPartner(place.column);
  return place.kind === 'list' && !place.isExcluded && place.columns.some(isPartner);
}
