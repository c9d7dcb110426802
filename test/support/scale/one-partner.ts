import type { EntitySchemaColumnOptions, EntitySchemaOptions } from 'typeorm';
import { guardStart } from '../statement-shapes.ts';

/** A unique key of a table, by the names of its columns. */
export interface UniqueKey {
  readonly name: string;
  readonly columns: readonly string[];
}

/** A table whose rows belong to partners. */
export interface PartnerTable {
  readonly columns: ReadonlySet<string>;
  /** The column that names the partner. */
  readonly partner: string;
  readonly keys: readonly UniqueKey[];
}

/** The tables whose rows belong to partners, by name. */
export function partnerTables(tables: readonly EntitySchemaOptions<object>[]): Map<string, PartnerTable> {
  const found = new Map<string, PartnerTable>();
  for (const table of tables) {
    const name = String(table.tableName);
    const described = Object.entries(table.columns as Record<string, EntitySchemaColumnOptions>);
    const names = new Map(described.map(([field, column]) => [field, String(column.name)]));
    const partner = name === 'partners' ? 'id' : 'partner_id';
    const columns = new Set(names.values());
    if (!columns.has(partner)) continue;
    const primary = described.flatMap(([, column]) => (column.primary === true ? [String(column.name)] : []));
    const unique = (table.indices ?? []).filter((index) => index.unique === true);
    const keys = unique.map((index) => ({
      name: String(index.name),
      columns: (index.columns as string[]).map((field) => names.get(field) ?? field),
    }));
    found.set(name, { columns, partner, keys: [{ name: 'PRIMARY', columns: primary }, ...keys] });
  }
  return found;
}

/**
 * The tables in which a statement can reach rows of several partners. A table is bound to one partner if its column of the
 * partner is equal to one value, or to a column that is. An INSERT of values is bound by the partner that each row names.
 */
export function tablesAcross(shape: string, tables: ReadonlyMap<string, PartnerTable>): string[] {
  const sql = shape.startsWith(guardStart) ? `SELECT 0 FROM DUAL WHERE ${shape.slice(guardStart.length)}` : shape;
  const across = new Set<string>();
  new Reader(tables, across).read(nested(sql), []);
  return [...across].sort();
}

/** The words of a statement. A list in brackets is a list of its own. */
type Part = string | Part[];

const token = /'(?:[^'\\]|\\.|'')*'|[A-Za-z_][\w.]*|<=>|<=|>=|<>|\d+|\S/g;

function nested(sql: string): Part[] {
  const open: Part[][] = [[]];
  for (const word of sql.replaceAll('`', '').match(token) ?? []) {
    if (word === '(') open.push([]);
    else if (word === ')') {
      const part = open.pop() ?? [];
      open.at(-1)?.push(part);
    } else open.at(-1)?.push(word);
  }
  return open[0] ?? [];
}

/** A table of a SELECT, UPDATE, DELETE or INSERT, by the name that it has there. */
interface Named {
  readonly called: string;
  readonly table: string;
  /** The column of the partner; undefined: its rows belong to none. */
  readonly partner: string | undefined;
  /** Undefined for the table that a SELECT in brackets makes. */
  readonly columns: ReadonlySet<string> | undefined;
}

interface Scope {
  readonly named: Named[];
  /** Columns that are equal to one value, as `name.column`. */
  readonly bound: Set<string>;
}

const tableFollows = ['FROM', 'JOIN', 'STRAIGHT_JOIN', 'UPDATE'];
const conditionEnds = [
  'JOIN',
  'LEFT',
  'INNER',
  'STRAIGHT_JOIN',
  'WHERE',
  'GROUP',
  'HAVING',
  'ORDER',
  'LIMIT',
  'FOR',
  'LOCK',
];
const noAlias = [...conditionEnds, 'ON', 'USING', 'FORCE', 'USE', 'SET', 'VALUES', 'SELECT', 'UNION'];

/**
 * The findings about a query's reads: whether all of it is bound to one partner, and whether it has rows of partners at
 * all.
 */
interface Found {
  readonly isBound: boolean;
  readonly hasPartners: boolean;
}

class Reader {
  constructor(
    private readonly tables: ReadonlyMap<string, PartnerTable>,
    /** Where the tables that are not bound are noted. */
    private readonly across: Set<string>,
  ) {}

  /** Reads one query, or several with UNION between them. */
  read(parts: readonly Part[], around: readonly Scope[]): Found {
    const queries = splitAt(parts, 'UNION').map((query) => (query[0] === 'ALL' ? query.slice(1) : query));
    return together(
      queries.map((query) => {
        const [first, next] = query;
        if (first === 'INSERT') return this.#insert(query, around);
        if (!Array.isArray(first)) return this.#query(query, around);
        // `...`: the part again, with the values of another partner.
        if (next === '.') for (const word of wordsOf(first)) this.#note(word);
        return this.read(first, around);
      }),
    );
  }

  #query(parts: readonly Part[], around: readonly Scope[]): Found {
    const scope: Scope = { named: [], bound: new Set() };
    /** Columns of which the second is bound if the first is. */
    const leads: [string, string][] = [];
    const derived = new Set<Part>();
    let isLeftJoin = false;
    for (const [at, part] of parts.entries()) {
      const next = parts[at + 1];
      if (namesTable(parts, at) && next !== undefined) {
        isLeftJoin = part === 'JOIN' && ['LEFT', 'OUTER'].includes(String(parts[at - 1]));
        if (Array.isArray(next)) derived.add(next);
        if (next !== 'DUAL') scope.named.push(this.#named(next, aliasAt(parts, at + 2), scope.bound));
      }
      if (part === 'USING' && Array.isArray(next)) leads.push(...sameColumns(scope.named, next));
      if (part !== 'WHERE' && (part !== 'ON' || next === 'DUPLICATE')) continue;
      const onlyOf = part === 'ON' && isLeftJoin ? scope.named.at(-1)?.called : undefined;
      // A row of the other tables stays if a condition of a LEFT JOIN is not met.
      const counts = (column: string) => onlyOf === undefined || column.startsWith(`${onlyOf}.`);
      for (const [one, other] of equalitiesIn(parts.slice(at + 1, endOf(parts, at + 1)))) {
        const [left, right] = [columnOf(one, scope, around), columnOf(other, scope, around)];
        const isFixed = other === '?' || (right !== undefined && isBoundAround(right, around));
        if (left !== undefined && isFixed && counts(left)) scope.bound.add(left);
        if (left === undefined || right === undefined) continue;
        if (counts(left)) leads.push([right, left]);
        if (counts(right)) leads.push([left, right]);
      }
    }
    for (let size = -1; size < scope.bound.size; ) {
      size = scope.bound.size;
      for (const [one, other] of leads) if (scope.bound.has(one)) scope.bound.add(other);
    }
    const inBrackets = parts.filter((part): part is Part[] => Array.isArray(part) && !derived.has(part));
    const inner = together(inBrackets.map((part) => this.#inside(part, [scope, ...around])));
    const own = scope.named.filter(({ partner }) => partner !== undefined);
    const free = own.filter(({ called, partner }) => !scope.bound.has(`${called}.${partner}`));
    for (const { table } of free) this.#note(table);
    return together([{ isBound: free.length === 0, hasPartners: own.length > 0 }, inner]);
  }

  /** Reads the SELECTs in brackets, however deep. */
  #inside(parts: readonly Part[], around: readonly Scope[]): Found {
    if (parts[0] === 'SELECT') return this.read(parts, around);
    return together(parts.filter(Array.isArray).map((part) => this.#inside(part, around)));
  }

  /** An INSERT is bound if each row names its partner and can meet no other partner's row. */
  #insert(parts: readonly Part[], around: readonly Scope[]): Found {
    const table = String(parts[parts.indexOf('INTO') + 1]);
    const selectAt = parts.indexOf('SELECT');
    const source = this.read(selectAt < 0 ? [] : parts.slice(selectAt), around);
    const known = this.tables.get(table);
    if (known === undefined) return source;
    const columns = parts.find(Array.isArray) ?? [];
    const mayMeet = parts.includes('DUPLICATE') && known.keys.some((key) => !key.columns.includes(known.partner));
    const isBound = source.isBound && columns.includes(known.partner) && !mayMeet;
    if (!isBound) this.#note(table);
    return { isBound, hasPartners: true };
  }

  /** A table, or the one that a SELECT in brackets makes: that is bound if all that it reads is. */
  #named(factor: Part, alias: string | undefined, bound: Set<string>): Named {
    if (typeof factor === 'string') {
      const known = this.tables.get(factor);
      return { called: alias ?? factor, table: factor, partner: known?.partner, columns: known?.columns };
    }
    const { isBound, hasPartners } = this.read(factor, []);
    if (isBound) bound.add(`${alias}.partner_id`);
    return { called: `${alias}`, table: '', partner: hasPartners ? 'partner_id' : undefined, columns: undefined };
  }

  #note(table: string): void {
    if (this.tables.has(table)) this.across.add(table);
  }
}

function together(found: readonly Found[]): Found {
  return { isBound: found.every(({ isBound }) => isBound), hasPartners: found.some((one) => one.hasPartners) };
}

function wordsOf(parts: readonly Part[]): string[] {
  return parts.flatMap((part) => (typeof part === 'string' ? [part] : wordsOf(part)));
}

/** Whether a table follows a word. */
function namesTable(parts: readonly Part[], at: number): boolean {
  const [word, before] = [parts[at], parts[at - 1]];
  if (word === 'UPDATE' && (before === 'FOR' || before === 'KEY')) return false;
  return typeof word === 'string' && tableFollows.includes(word);
}

/** The name that a table has in a query, if it has another there. */
function aliasAt(parts: readonly Part[], at: number): string | undefined {
  const word = parts[at] === 'AS' ? parts[at + 1] : parts[at];
  return typeof word === 'string' && /^[a-z]\w*$/i.test(word) && !noAlias.includes(word) ? word : undefined;
}

/** The columns of USING, of the table that is joined and of each before it. */
function sameColumns(named: readonly Named[], columns: readonly Part[]): [string, string][] {
  const joined = named.at(-1)?.called;
  return named
    .slice(0, -1)
    .flatMap(({ called }) => columns.map((column): [string, string] => [`${called}.${column}`, `${joined}.${column}`]));
}

/** A column as `name.column`; undefined if the word is none that is known here. */
function columnOf(word: string, scope: Scope, around: readonly Scope[]): string | undefined {
  if (!/^[a-z_][\w.]*$/i.test(word)) return undefined;
  if (word.includes('.')) return word;
  for (const { named } of [scope, ...around]) {
    const owner = named.find(({ columns, partner }) => columns?.has(word) ?? word === partner);
    if (owner !== undefined) return `${owner.called}.${word}`;
  }
  return undefined;
}

function isBoundAround(column: string, around: readonly Scope[]): boolean {
  return around.some(({ bound }) => bound.has(column));
}

function endOf(parts: readonly Part[], from: number): number {
  const end = parts.findIndex(
    (part, at) => at >= from && typeof part === 'string' && (conditionEnds.includes(part) || part === 'ON'),
  );
  return end < 0 ? parts.length : end;
}

/** The comparisons `one = other` that all rows must meet. */
function equalitiesIn(condition: readonly Part[]): [string, string][] {
  if (condition.includes('OR') || condition.includes('.')) return []; // `...`: the part before it again, after OR.
  const parts = splitAt(withoutBetween(condition), 'AND');
  return parts.flatMap((part): [string, string][] => {
    const [one, sign, other] = part;
    if (part.length === 1 && Array.isArray(one)) return equalitiesInBrackets(one);
    const isEquality = part.length === 3 && sign === '=' && typeof one === 'string' && typeof other === 'string';
    return isEquality ? [[one, other]] : [];
  });
}

/**
 * Several comparisons in brackets can be one of many such parts that the code joins by OR, and which a run sent only one
 * of. They count only if each has its own brackets again, as TypeORM writes them.
 */
function equalitiesInBrackets(part: readonly Part[]): [string, string][] {
  const isOne = !part.includes('AND');
  const areBracketed = splitAt(part, 'AND').every((each) => each.length === 1 && Array.isArray(each[0]));
  return isOne || areBracketed ? equalitiesIn(part) : [];
}

/** A condition without `BETWEEN ? AND ?`, whose AND joins nothing. */
function withoutBetween(parts: readonly Part[]): Part[] {
  const left: Part[] = [];
  for (let at = 0; at < parts.length; at += 1) {
    left.push(parts[at] as Part);
    if (parts[at] === 'BETWEEN') at += 3;
  }
  return left;
}

function splitAt(parts: readonly Part[], word: string): Part[][] {
  const found: Part[][] = [[]];
  for (const part of parts) {
    if (part === word) found.push([]);
    else found.at(-1)?.push(part);
  }
  return found;
}
