import type { Connection, RowDataPacket } from 'mysql2/promise';
import { groupBy } from '../../../src/kit/group.ts';
import type { ColumnName, Place, TableColumns } from './places.ts';
import { bigPartner, rare } from './seed.ts';

export type Value = string | number | Buffer | null;
/** The value of a place: of a list, its members. */
export type PlaceValue = Value | readonly Value[] | readonly (readonly Value[])[];
type Row = Readonly<Record<string, Value>>;

/** How long lists are. From some twenty members on a server guesses how many rows each has. */
const listLengths = [1, 24, 64];
/** The LIMIT of pages. */
export const pageLimit = 100;
/** The most runs of a statement. */
const maxRuns = 150;

/** Values of columns that are the same in each run; whether a run has only values of one row. */
export interface RunOptions {
  readonly values?: Readonly<Record<string, Value>>;
  readonly isOneRow?: boolean;
  /** The value where none is compared with a column; absent: 1, the first of several bits, or one of the column set. */
  readonly other?: Value;
}

interface TableData {
  /** The rows whose values are tried: the newest, the oldest, one in the middle, and one of each rare sort. */
  readonly tried: readonly Row[];
  /** Rows far from each other: of the big partner, and of all. */
  readonly own: readonly Row[];
  readonly all: readonly Row[];
}

/** Makes the values of statements from the rows that are there. */
export class Values {
  private constructor(
    readonly columnsOf: TableColumns,
    private readonly keys: ReadonlyMap<string, readonly string[]>,
    private readonly data: ReadonlyMap<string, TableData>,
  ) {}

  static async load(connection: Connection, database: string): Promise<Values> {
    const rows = async (sql: string, values: unknown[] = []) =>
      (await connection.query<RowDataPacket[]>(sql, values))[0] as Row[];
    const columns = await rows(
      `SELECT table_name AS t, column_name AS c, data_type AS type FROM information_schema.columns WHERE table_schema = ? ORDER BY 1, ordinal_position`,
      [database],
    );
    const keyColumns = await rows(
      `SELECT table_name AS t, column_name AS c FROM information_schema.statistics
        WHERE table_schema = ? AND index_name = 'PRIMARY' ORDER BY 1, seq_in_index`,
      [database],
    );
    const columnsOf = grouped(columns, (own) => new Map(own.map(({ c, type }) => [String(c), String(type)])));
    const keys = grouped(keyColumns, (own) => own.map(({ c }) => String(c)));
    const data = new Map<string, TableData>();
    for (const [table, names] of columnsOf) {
      const key = keys.get(table) ?? [];
      const own = names.has('partner_id') ? `WHERE partner_id = '${bigPartner}'` : 'WHERE TRUE';
      const first = `SELECT * FROM ${table} ${own}`;
      const order = (way: string) => `ORDER BY ${key.map((column) => `${column} ${way}`).join()} LIMIT 1`;
      const [count] = await rows(`SELECT COUNT(*) AS n FROM ${table} ${own}`);
      const middle = Math.floor(Number(count?.n) / 2);
      const far = (where: string) =>
        rows(`SELECT * FROM ${table} ${where} AND CRC32(CONCAT(${key.join()})) % GREATEST(1, ? DIV 640) = 0 LIMIT 64`, [
          count?.n,
        ]);
      const tried = [
        ...(await rows(`${first} ${order('DESC')}`)),
        ...(await rows(`${first} ${order('ASC')}`)),
        ...(await rows(`${first} ${order('ASC')} OFFSET ${middle}`)),
      ];
      for (const condition of rare[table] ?? []) tried.push(...(await rows(`${first} AND ${condition} LIMIT 1`)));
      data.set(table, { tried, own: await far(own), all: await far('WHERE TRUE') });
    }
    return new Values(columnsOf, keys, data);
  }

  /** A column of the table that is in no key, to be set to itself. */
  plainColumn(table: string): string {
    const key = this.keys.get(table) ?? [];
    return [...(this.columnsOf.get(table)?.keys() ?? [])].filter((column) => !key.includes(column)).at(-1) ?? '';
  }

  /**
   * The values of a statement's places for each run: those of one row together, and of each two places all pairs of
   * values. So two filters also meet values that are common, each by itself, and never in one row.
   */
  runs(places: readonly Place[], { values: fixed = {}, isOneRow = false, other }: RunOptions = {}): PlaceValue[][] {
    const choices = places.map((place) => this.#choices(place, places, fixed, other));
    const rowCount = Math.max(1, ...places.map((place) => ('column' in place ? this.#tried(place.column).length : 1)));
    const runs = new Map<string, PlaceValue[]>();
    const add = (run: PlaceValue[]) => runs.set(JSON.stringify(run), run);
    for (let row = 0; row < rowCount; row += 1) {
      add(places.map((place, at) => this.#ofRow(place, row, fixed) ?? pick(choices[at], 0)));
    }
    if (isOneRow) return [...runs.values()];
    const base = choices.map((own) => pick(own, 0));
    for (let first = 0; first < places.length; first += 1) {
      for (let second = first; second < places.length; second += 1) {
        for (const one of choices[first] ?? []) {
          for (const other of choices[second] ?? []) {
            const run = [...base];
            run[first] = one;
            run[second] = other;
            add(run);
          }
        }
      }
    }
    const all = [...runs.values()];
    if (all.length <= maxRuns) return all;
    return Array.from({ length: maxRuns }, (_, at) => all[Math.floor((at * all.length) / maxRuns)] as PlaceValue[]);
  }

  #tried({ table }: ColumnName): readonly Row[] {
    return this.data.get(table)?.tried ?? [];
  }

  #ofRow(place: Place, row: number, fixed: Readonly<Record<string, Value>>): PlaceValue | undefined {
    if (place.kind !== 'compared' || place.column.column in fixed) return undefined;
    const tried = this.#tried(place.column);
    return tried[row % Math.max(1, tried.length)]?.[place.column.column] ?? undefined;
  }

  #choices(
    place: Place,
    places: readonly Place[],
    fixed: Readonly<Record<string, Value>>,
    other: Value | undefined,
  ): PlaceValue[] {
    if (place.kind === 'limit') return [pageLimit];
    if (place.kind === 'other') return [other ?? (place.stored === undefined ? 1 : this.#anyOf(place.stored))];
    if (place.kind === 'list') {
      const isOfOne = places.some((other) => other.kind === 'compared' && other.column.column === 'partner_id');
      const [{ table, column: only }] = place.columns as [ColumnName];
      if (only in fixed) return [['', fixed[only] as Value]];
      const rows = (isOfOne ? this.data.get(table)?.own : this.data.get(table)?.all) ?? [];
      const members = rows.map((row) => place.columns.map(({ column }) => row[column] ?? null));
      const distinct = [...new Map(members.map((member) => [JSON.stringify(member), member])).values()];
      const list = place.columns.length === 1 ? distinct.map(([only = null]) => only) : distinct;
      return [...new Set(listLengths.map((length) => Math.min(length, list.length)))].map(
        (length) => list.slice(0, Math.max(1, length)) as PlaceValue,
      );
    }
    const { column } = place.column;
    if (column in fixed) return [fixed[column] as Value];
    if (column === 'partner_id' && !place.isRange) return [bigPartner];
    const values = this.#tried(place.column).flatMap((row) => row[column] ?? []);
    const distinct = [...new Map(values.map((value) => [String(value), value])).values()];
    return [...distinct, ...this.#extremes(place.column, place.isRange)];
  }

  /** Some value that the column can have. */
  #anyOf(column: ColumnName): Value {
    const [value] = this.#tried(column).flatMap((row) => row[column.column] ?? []);
    return value ?? this.#extremes(column, false)[0] ?? null;
  }

  /** Values that no row has: the least, and for ranges the greatest too. */
  #extremes({ table, column }: ColumnName, isRange: boolean): Value[] {
    const type = this.columnsOf.get(table)?.get(column) ?? '';
    const [least, greatest]: [Value, Value] = /date/.test(type)
      ? ['1971-01-01', '2037-12-31']
      : /int/.test(type)
        ? [0, 2 ** 52]
        : ['', '~'];
    return isRange ? [least, greatest] : [least];
  }
}

function pick(choices: readonly PlaceValue[] | undefined, at: number): PlaceValue {
  return choices?.[at] ?? null;
}

/** Rows by their table `t`. */
function grouped<T>(rows: readonly Row[], of: (own: Row[]) => T): Map<string, T> {
  return new Map([...groupBy(rows, ({ t }) => String(t))].map(([table, own]) => [table, of(own)]));
}
