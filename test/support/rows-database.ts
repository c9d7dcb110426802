import type { SqlRow, Statement } from '../../src/gateway/store/statement.ts';

type Test = (row: SqlRow) => boolean;

/**
 * A database of rows in memory that answers simple statements over one table: WHERE with comparisons, ORDER BY, LIMIT and
 * MIN, MAX and COUNT of all rows that are found. It does not group them. Statements of more are answered by `other`, if it knows them.
 */
export class RowsDatabase {
  readonly asked: Statement[] = [];

  constructor(
    readonly tables: Readonly<Record<string, readonly SqlRow[]>>,
    private readonly other: (statement: Statement) => SqlRow[] | undefined = () => undefined,
  ) {}

  async read(query: Statement): Promise<SqlRow[]> {
    this.asked.push(query);
    return this.other(query) ?? this.#answer(query);
  }

  async transaction<T>(reads: readonly Statement[], decide: (rows: SqlRow[][]) => { readonly result: T }): Promise<T> {
    return decide(await this.readAll(reads)).result;
  }

  readAll(queries: readonly Statement[]): Promise<SqlRow[][]> {
    return Promise.all(queries.map((query) => this.read(query)));
  }

  #answer(query: Statement): SqlRow[] {
    const [, table = ''] = /\bFROM (\w+)/.exec(query.sql) ?? [];
    const rows = this.tables[table];
    if (rows === undefined) throw new Error(`no rows for ${query.sql}`);
    return selectedRows(query, rows);
  }
}

/** The rows of a table that a statement finds or changes, in its order. */
export function selectedRows({ sql, values }: Statement, rows: readonly SqlRow[]): SqlRow[] {
  const given = [...values];
  const found = sql.split(' UNION ALL ').flatMap((part) => {
    const text = part.replace(/\s+/g, ' ').trim();
    return selectOnce(text.startsWith('(') ? text.slice(1, -1) : text, given, rows);
  });
  if (given.length > 0) throw new Error(`values without a use: ${sql}`);
  return found;
}

function selectOnce(sql: string, given: unknown[], rows: readonly SqlRow[]): SqlRow[] {
  const [, tail = ''] = / WHERE (.*)$/.exec(sql) ?? [undefined, / (ORDER BY .*|LIMIT .*)$/.exec(sql)?.[1]];
  const [, condition = '', order = '', limit] =
    /^(.*?)(?:(?:^| )GROUP BY \w+)?(?:(?:^| )ORDER BY (.*?))?(?: ?LIMIT (\d+|\?))?(?: FOR UPDATE)?$/.exec(tail) ?? [];
  const test = condition === '' ? () => true : new Condition(condition, given).read();
  const sorted = rows.filter(test).toSorted(orderOf(order));
  const most = limit === '?' ? Number(given.shift()) : Number(limit ?? rows.length);
  const found = sorted.slice(0, most);
  const sums = [...(/^SELECT (.*?) FROM /.exec(sql)?.[1] ?? '').matchAll(/(MIN|MAX|COUNT)\((\*|\w+)\) AS (\w+)/g)];
  if (sums.length === 0 || sql.includes('GROUP BY')) return found;
  return [Object.fromEntries(sums.map(([, kind, column = '', name = '']) => [name, sumOf(kind, column, found)]))];
}

function sumOf(kind: string | undefined, column: string, rows: readonly SqlRow[]): unknown {
  if (kind === 'COUNT') return String(rows.length);
  const sorted = rows.toSorted(orderOf(column));
  return sorted.at(kind === 'MIN' ? 0 : -1)?.[column] ?? null;
}

function orderOf(order: string): (one: SqlRow, other: SqlRow) => number {
  const parts = order === '' ? [] : order.split(', ').map((part) => part.split(' ') as [string, string?]);
  return (one, other) => {
    for (const [column, direction] of parts) {
      const difference = compare(one[plain(column)], other[plain(column)]);
      if (difference !== 0) return direction === 'DESC' ? -difference : difference;
    }
    return 0;
  };
}

/** A column without the name of its table. */
function plain(column: string): string {
  return column.replace(/^\w+\./, '');
}

function compare(one: unknown, other: unknown): number {
  const [left, right] = [comparable(one), comparable(other)];
  if (typeof left !== typeof right) return Number(left) - Number(right);
  return left < right ? -1 : left > right ? 1 : 0;
}

function comparable(value: unknown): number | string {
  if (value instanceof Date) return value.getTime();
  if (Buffer.isBuffer(value)) return value.toString('latin1');
  return typeof value === 'string' ? value : Number(value);
}

const comparisons: Readonly<Record<string, (difference: number) => boolean>> = {
  '=': (difference) => difference === 0,
  '<>': (difference) => difference !== 0,
  '<': (difference) => difference < 0,
  '<=': (difference) => difference <= 0,
  '>': (difference) => difference > 0,
  '>=': (difference) => difference >= 0,
};

/** A condition, read from its left to its right, because each `?` takes the next value. */
class Condition {
  readonly #words: string[];

  constructor(
    private readonly text: string,
    private readonly given: unknown[],
  ) {
    this.#words = text.match(/'[^']*'|[\w.]+|<=|>=|<>|[^\s\w]/g) ?? [];
  }

  read(): Test {
    const test = this.#any();
    if (this.#words.length > 0) throw new Error(`a condition that is not known: ${this.text}`);
    return test;
  }

  #any(): Test {
    const tests = [this.#all()];
    while (this.#has('OR')) tests.push(this.#all());
    return (row) => tests.some((test) => test(row));
  }

  #all(): Test {
    const tests = [this.#one()];
    while (this.#has('AND')) tests.push(this.#one());
    return (row) => tests.every((test) => test(row));
  }

  #one(): Test {
    if (this.#has('NOT')) {
      const test = this.#one();
      return (row) => !test(row);
    }
    if (this.#has('(')) {
      const test = this.#any();
      this.#need(')');
      return test;
    }
    const column = plain(this.#next());
    if (this.#has('IS')) {
      const isWanted = !this.#has('NOT');
      this.#need('NULL');
      return (row) => ((row[column] ?? null) === null) === isWanted;
    }
    const isWanted = !this.#has('NOT');
    if (this.#has('IN')) {
      this.#need('(');
      const all: unknown[] = [];
      do all.push(...[this.#value()].flat());
      while (this.#has(','));
      this.#need(')');
      return (row) => all.some((value) => isEqual(row[column], value)) === isWanted;
    }
    const holds = comparisons[this.#next()];
    if (holds === undefined) throw new Error(`a comparison that is not known: ${this.text}`);
    const value = this.#value();
    return (row) => (row[column] ?? null) !== null && value !== null && holds(compare(row[column], value));
  }

  #value(): unknown {
    const word = this.#next();
    if (word === '?') return this.given.shift();
    return word.startsWith("'") ? word.slice(1, -1) : Number(word);
  }

  #has(word: string): boolean {
    if (this.#words[0] !== word) return false;
    this.#words.shift();
    return true;
  }

  #need(word: string): void {
    if (!this.#has(word)) throw new Error(`no ${word}: ${this.text}`);
  }

  #next(): string {
    const word = this.#words.shift();
    if (word === undefined) throw new Error(`a condition that ends too soon: ${this.text}`);
    return word;
  }
}

function isEqual(one: unknown, other: unknown): boolean {
  return one !== null && other !== null && compare(one, other) === 0;
}
