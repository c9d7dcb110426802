import type { Connection, RowDataPacket } from 'mysql2/promise';
import { groupBy } from '../../../src/kit/group.ts';
import type { TableColumns } from './places.ts';
import type { Value } from './values.ts';

type Row = Readonly<Record<string, Value>>;

/** The partner whose statements are run. */
export const ownPartner = `par_${'4'.repeat(20)}`;
/** Their rows look like the partner's, and come before and after them in each index: a LIMIT hides one of them at most. */
export const otherPartners = [`par_${'3'.repeat(20)}`, `par_${'5'.repeat(20)}`];

/** Rows of a partner in each table: enough for each pair of names that statements compare with two columns. */
export const rowCount = 24;
/** The clock of the sessions. */
export const nowSeconds = 1_790_000_000;

interface Column {
  readonly name: string;
  readonly type: string;
  readonly isNullable: boolean;
  readonly maxLength: number;
}

interface Table {
  readonly columns: readonly Column[];
  readonly primary: readonly string[];
}

/** Columns by which a row is found among those of all partners: the gateway never gives the same to two. */
const identity = /^(?:id|subject|account|bank_reference|reference|\w+_id)$/;
/** A check of these tables fails for every row. */
const withoutRows = ['guards', 'writer_guards', 'migrations'];
/** The distances of instants from now, before and after. */
const distancesS = [-3_000_000, 5, -90_000, 90_000, -3_600, 3_600, -1];

/** Tables in which the rows of each partner are the same, but for the partner and what identifies them. */
export class LookAlikes {
  private constructor(
    private readonly tables: ReadonlyMap<string, Table>,
    private readonly names: ReadonlyMap<string, readonly Value[]>,
    readonly columnsOf: TableColumns,
  ) {}

  /** Reads which columns there are, and which names the statements compare them with. */
  static async load(connection: Connection, database: string, shapes: readonly string[]): Promise<LookAlikes> {
    const rows = async (sql: string) => (await connection.query<RowDataPacket[]>(sql, [database]))[0] as Row[];
    const columns = await rows(
      `SELECT table_name AS t, column_name AS name, data_type AS type, is_nullable AS nullable,
          character_maximum_length AS length FROM information_schema.columns
        WHERE table_schema = ? ORDER BY 1, ordinal_position`,
    );
    const keys = await rows(
      `SELECT table_name AS t, column_name AS c FROM information_schema.statistics
        WHERE table_schema = ? AND index_name = 'PRIMARY' ORDER BY 1, seq_in_index`,
    );
    const primaryOf = groupBy(keys, ({ t }) => String(t));
    const tables = new Map<string, Table>();
    for (const [table, own] of groupBy(columns, ({ t }) => String(t))) {
      if (withoutRows.includes(table)) continue;
      tables.set(table, {
        columns: own.map(({ name, type, nullable, length }) => ({
          name: String(name),
          type: String(type),
          isNullable: nullable === 'YES',
          maxLength: Number(length ?? 0),
        })),
        primary: (primaryOf.get(table) ?? []).map(({ c }) => String(c)),
      });
    }
    const columnsOf = new Map(
      [...tables].map(([table, own]) => [table, new Map(own.columns.map(({ name, type }) => [name, type]))]),
    );
    return new LookAlikes(tables, namesIn(shapes, columnsOf), columnsOf);
  }

  /** A column of the table that is in no key, to be set to itself. */
  plainColumn(table: string): string {
    const { columns, primary } = this.#table(table);
    return columns.filter(({ name }) => !primary.includes(name)).at(-1)?.name ?? '';
  }

  /** The tables that a statement names whose rows belong to partners. */
  ofPartnersIn(sql: string): string[] {
    return [...new Set(sql.match(/\w+/g))].filter(
      (word) => this.tables.has(word) && this.#partnerColumn(word) !== undefined,
    );
  }

  /** Fills the tables with the rows of these partners, and those that belong to none. */
  async fill(connection: Connection, partners: readonly string[]): Promise<void> {
    for (const [table, { columns }] of this.tables) {
      const names = columns.map(({ name }) => `\`${name}\``).join();
      const owners = this.#partnerColumn(table) === undefined ? [ownPartner] : partners;
      const rows = owners.flatMap((partner) =>
        this.#numbersOf(table).map((at) => columns.map((column) => this.#value(table, column, at, partner))),
      );
      await connection.query(`REPLACE INTO ${table} (${names}) VALUES ?`, [rows]);
    }
  }

  /** The value that a row of a partner has in a column. */
  value(table: string, column: string, at: number, partner: string): Value {
    const own = this.#table(table).columns.find(({ name }) => name === column);
    if (own === undefined) throw new Error(`${table} has no column ${column}.`);
    const numbers = this.#numbersOf(table);
    return this.#value(table, own, numbers[at % numbers.length] as number, partner);
  }

  /** A query that gives a number and a checksum of a table's rows that are, or are not, the partner's. */
  checksum(table: string, sign: '=' | '<>'): string {
    const names = this.#table(table).columns.map(({ name }) => `IFNULL(CONCAT(\`${name}\`), '~')`);
    return `SELECT COUNT(*) AS n, SUM(CRC32(CONCAT_WS('|', ${names.join()}))) AS sum FROM ${table}
      WHERE ${this.#partnerColumn(table)} ${sign} '${ownPartner}'`;
  }

  #partnerColumn(table: string): 'id' | 'partner_id' | undefined {
    if (table === 'partners') return 'id';
    return this.columnsOf.get(table)?.has('partner_id') ? 'partner_id' : undefined;
  }

  /** A table whose key is the partner has one row for each. */
  #numbersOf(table: string): number[] {
    const { primary } = this.#table(table);
    const isOne = primary.length === 1 && primary[0] === this.#partnerColumn(table);
    return isOne ? [1] : Array.from({ length: rowCount }, (_, at) => at);
  }

  #value(table: string, { name, type, isNullable, maxLength }: Column, at: number, partner: string): Value {
    if (name === this.#partnerColumn(table)) return partner;
    if (table === 'positions' && name === 'name') return positionNames[at] ?? text(at);
    // Compared with an amount: only another partner's is below that of the partner.
    if (name === 'withdrawal_release_above_kobo') return partner === ownPartner ? 2 : 1;
    const salt = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
    const isOne = this.#numbersOf(table).length === 1;
    if (isNullable && !(isOne && name.startsWith('lease_')) && (at + salt) % 5 === 0) return null;
    const own = this.#isOwn(table, at) ? Number(partner.at(-1)) - Number(ownPartner.at(-1)) : 0;
    // Statements over several tables compare the names with one of them.
    const isName = (value: Value) => typeof value === 'number' || String(value).length <= maxLength;
    const names = (this.names.get(`${table}.${name}`) ?? []).filter(isName);
    const known = names[Math.floor(at / (1 + (salt % 3))) % (names.length + 1)];
    if (known !== undefined) return known;
    if (type === 'date') return instant(-86_400 * (at % 5) + 864_000 * own).slice(0, 10);
    if (type === 'datetime') return instant(distancesS[(at + salt) % distancesS.length] ?? 0);
    if (type === 'tinyint' && name !== 'id') return (at + salt) % 2;
    if (/int/.test(type)) {
      const number = at + 1 + (table === 'outbox' && name === 'version' ? rowCount / 2 : 0);
      return name === 'id' && this.#partnerColumn(table) !== undefined
        ? number * 10 + Number(partner.at(-1))
        : number + 100 * (own && own + 1);
    }
    return (identity.test(name) || own !== 0 ? `${text(at)}${partner.at(-1)}` : text(at)).slice(0, maxLength);
  }

  /** Some rows of a partner have values that the other partners have not: only they can fulfil a condition. */
  #isOwn(table: string, at: number): boolean {
    return this.#partnerColumn(table) !== undefined && (at % 4 === 3 || this.#numbersOf(table).length === 1);
  }

  #table(name: string): Table {
    const table = this.tables.get(name);
    if (table === undefined) throw new Error(`There is no table ${name}.`);
    return table;
  }
}

const positionNames = ['order-reports', 'application-reports'].concat(
  [ownPartner, ...otherPartners].flatMap((partner) => [`ledger-check ${partner}`, `ledger-recheck ${partner}`]),
);

/** Of the same row number in each table, so that the rows of different tables belong together. */
function text(at: number): string {
  return `row${String(at).padStart(3, '0')}`;
}

function instant(distanceS: number): string {
  return new Date((nowSeconds + distanceS) * 1_000).toISOString().replace('T', ' ').slice(0, 23);
}

/** The names and numbers that statements compare a column with, by `table.column`. */
function namesIn(shapes: readonly string[], columnsOf: TableColumns): Map<string, Value[]> {
  const found = new Map<string, Set<Value>>();
  const compared = /(\w+)`?\)? (?:=|<>|IN|NOT IN) (\((?:'[^']*'|\d+)(?:, (?:'[^']*'|\d+))*\)|'[^']*'|\d+)/g;
  for (const shape of shapes) {
    const tables = [...new Set(shape.match(/\w+/g))].filter((word) => columnsOf.has(word));
    for (const [, column = '', values = ''] of shape.matchAll(compared)) {
      for (const table of tables.filter((each) => columnsOf.get(each)?.has(column))) {
        const own = found.get(`${table}.${column}`) ?? new Set();
        for (const [literal] of values.matchAll(/'[^']*'|\d+/g)) {
          // In a statement over several tables a number may be compared with the number of another one.
          const isNumber = /int/.test(columnsOf.get(table)?.get(column) ?? '') && !literal.startsWith("'");
          own.add(isNumber ? Number(literal) : literal.replace(/^'|'$/g, ''));
        }
        found.set(`${table}.${column}`, own);
      }
    }
  }
  return new Map([...found].map(([column, values]) => [column, [...values].sort()]));
}
