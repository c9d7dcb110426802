/** A value of a column. */
export type Value = string | number | Buffer | null;
export type Row = Record<string, Value>;

/** The rows of a table or of a query, with its columns. */
export interface RowsFrom {
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
}

/** A row of each table of a query, and the query around it. */
interface Scope {
  readonly rows: ReadonlyMap<string, Row>;
  /** The rows that an aggregate function counts. */
  readonly group?: readonly Scope[];
  readonly outer?: Scope | undefined;
}

type Expression = (scope: Scope) => Value;

interface Source {
  readonly alias: string;
  readonly from: (outer: Scope) => RowsFrom;
}

/** A parsed statement that writes. */
export type Change =
  | {
      readonly kind: 'insert';
      readonly table: string;
      readonly how: string;
      readonly columns?: readonly string[];
      readonly rows: readonly (readonly Value[])[];
      readonly update?: (row: Row) => void;
    }
  | {
      readonly kind: 'update';
      readonly table: string;
      readonly where: (row: Row) => boolean;
      readonly update: (row: Row) => void;
    }
  | { readonly kind: 'delete'; readonly table: string; readonly where: (row: Row) => boolean };

const token = /\s*(X'[0-9a-f]*'|'(?:[^'\\]|\\.|'')*'|\d+(?:\.\d+)?|[A-Za-z_]\w*|[<>!]=|<>|[=<>(),.*+-])/gy;
const keywords = /^(?:FROM|WHERE|GROUP|ORDER|LIMIT|UNION|LEFT|JOIN|ON|AS|DESC|ASC|AND|OR|DIV|IN|SET|VALUES)$/i;
const none: Scope = { rows: new Map() };

/** Reads a statement of MySQL, of the few forms that the simulator uses. */
export class SqlReader {
  readonly #tokens: readonly string[];
  #at = 0;
  /** Whether the expressions that are read now have aggregate functions. */
  #hasAggregate = false;

  constructor(
    private readonly sql: string,
    private readonly table: (name: string) => RowsFrom,
  ) {
    const tokens = [...sql.matchAll(token)];
    const read = tokens.map(([whole]) => whole).join('');
    if (read.length !== sql.trimEnd().length) throw new Error(`This cannot be read: ${sql.slice(read.length)}`);
    this.#tokens = tokens.map(([, text = '']) => text);
  }

  select(): Row[] {
    const rows = this.#select()(none).rows;
    if (this.#at !== this.#tokens.length) this.#fail('the end');
    return [...rows];
  }

  change(): Change {
    if (this.#take('UPDATE')) return this.#update();
    if (this.#take('DELETE')) {
      this.#must('FROM');
      return { kind: 'delete', table: this.#next(), where: this.#where() };
    }
    let how = this.#next();
    if (this.#take('IGNORE')) how = `${how} IGNORE`;
    this.#must('INTO');
    const table = this.#next();
    const columns = this.#take('(') ? this.#list(() => this.#next()) : undefined;
    this.#must('VALUES');
    const rows: Value[][] = [];
    do {
      this.#must('(');
      rows.push(this.#list(() => this.#expression()(none)));
    } while (this.#take(','));
    const insert = { kind: 'insert', table, how, rows, ...(columns === undefined ? {} : { columns }) } as const;
    if (!this.#take('ON')) return insert;
    for (const word of ['DUPLICATE', 'KEY', 'UPDATE']) this.#must(word);
    return { ...insert, update: this.#assignments() };
  }

  #update(): Change {
    const table = this.#next();
    this.#must('SET');
    const update = this.#assignments();
    return { kind: 'update', table, update, where: this.#where() };
  }

  #where(): (row: Row) => boolean {
    const where = this.#take('WHERE') ? this.#expression() : () => 1;
    return (row) => isTrue(where({ rows: new Map([['', row]]) }));
  }

  /** MySQL assigns from left to right, and each value sees those before it. */
  #assignments(): (row: Row) => void {
    const all: [string, Expression][] = [];
    do {
      const column = this.#next();
      this.#must('=');
      all.push([column, this.#expression()]);
    } while (this.#take(','));
    return (row) => {
      for (const [column, value] of all) row[column] = value({ rows: new Map([['', row]]) });
    };
  }

  #select(): (outer: Scope) => RowsFrom {
    const parts = [this.#oneSelect()];
    while (this.#take('UNION')) {
      this.#must('ALL');
      parts.push(this.#oneSelect());
    }
    return (outer) => {
      const all = parts.map((part) => part(outer));
      const columns = all[0]?.columns ?? [];
      const named = (one: RowsFrom) =>
        one.rows.map((row) =>
          Object.fromEntries(columns.map((column, at) => [column, row[one.columns[at] ?? ''] ?? null])),
        );
      return { columns, rows: all.flatMap(named) };
    };
  }

  #oneSelect(): (outer: Scope) => RowsFrom {
    this.#must('SELECT');
    const isDistinct = this.#take('DISTINCT');
    const isWithin = this.#hasAggregate;
    this.#hasAggregate = false;
    const columns: { name: string; value: Expression; of?: string }[] = [];
    do columns.push(this.#column());
    while (this.#take(','));
    const hasAggregate = this.#hasAggregate;
    this.#hasAggregate = isWithin;
    const from = this.#take('FROM') ? this.#sources() : () => ({ scopes: [none], columns: new Map() });
    const where = this.#take('WHERE') ? this.#expression() : undefined;
    const groupBy = this.#takeBy('GROUP') ? this.#expressions() : undefined;
    const orderBy = this.#takeBy('ORDER') ? this.#ordering() : [];
    const limit = this.#take('LIMIT') ? Number(this.#next()) : Number.POSITIVE_INFINITY;
    return (outer) => {
      const source = from(outer);
      const within = source.scopes.filter((scope) => where === undefined || isTrue(where(scope)));
      const scopes = groupBy === undefined && !hasAggregate ? within : grouped(within, groupBy ?? [], outer);
      const named = columns.flatMap(({ name, value, of }) =>
        of === undefined
          ? [{ name, value }]
          : [...source.columns]
              .filter(([alias]) => of === '' || alias === of)
              .flatMap(([alias, names]) =>
                names.map((each: string) => ({
                  name: each,
                  value: (scope: Scope) => scope.rows.get(alias)?.[each] ?? null,
                })),
              ),
      );
      const made = scopes.map((scope) => {
        const row = Object.fromEntries(named.map(({ name, value }) => [name, value(scope)]));
        const sorted = { ...scope, rows: new Map([...scope.rows, [' output', row]]) };
        return { row, keys: orderBy.map(({ value }) => value(sorted)) };
      });
      made.sort((one, other) => {
        for (const [at, { isDown }] of orderBy.entries()) {
          const order = compared(one.keys[at] ?? null, other.keys[at] ?? null);
          if (order !== 0) return isDown ? -order : order;
        }
        return 0;
      });
      const texts = new Set<string>();
      const rows = made
        .map(({ row }) => row)
        .filter((row) => !isDistinct || (!texts.has(JSON.stringify(row)) && texts.add(JSON.stringify(row))));
      return { columns: named.map(({ name }) => name), rows: rows.slice(0, limit) };
    };
  }

  #column(): { name: string; value: Expression; of?: string } {
    if (this.#take('*')) return { name: '*', value: () => null, of: '' };
    if (this.#tokens[this.#at + 1] === '.' && this.#tokens[this.#at + 2] === '*') {
      const of = this.#next();
      this.#at += 2;
      return { name: '*', value: () => null, of };
    }
    const first = this.#at;
    const value = this.#expression();
    const last = this.#tokens[this.#at - 1] ?? '';
    const name = this.#take('AS')
      ? this.#next()
      : this.#at - first > 3
        ? this.#tokens.slice(first, this.#at).join('')
        : last;
    return { name, value };
  }

  #sources(): (outer: Scope) => { scopes: Scope[]; columns: Map<string, readonly string[]> } {
    const first = this.#source();
    const joins: { source: Source; isLeft: boolean; on: Expression }[] = [];
    for (;;) {
      const isLeft = this.#take('LEFT');
      if (!this.#take('JOIN')) break;
      const source = this.#source();
      this.#must('ON');
      joins.push({ source, isLeft, on: this.#expression() });
    }
    return (outer) => {
      const { alias, from } = first;
      const found = from(outer);
      const columns = new Map([[alias, found.columns]]);
      let scopes: Scope[] = found.rows.map((row) => ({ rows: new Map([[alias, row]]), outer }));
      for (const { source, isLeft, on } of joins) {
        const joined = source.from(outer);
        columns.set(source.alias, joined.columns);
        const empty: Row = Object.fromEntries(joined.columns.map((column) => [column, null]));
        scopes = scopes.flatMap((scope) => {
          const withRow = (row: Row): Scope => ({ rows: new Map([...scope.rows, [source.alias, row]]), outer });
          const both = joined.rows.map(withRow).filter((each) => isTrue(on(each)));
          return both.length === 0 && isLeft ? [withRow(empty)] : both;
        });
      }
      return { scopes, columns };
    };
  }

  /** A table or a query in brackets, with the name that it has in the query. */
  #source(): Source {
    if (this.#take('(')) {
      const query = this.#select();
      this.#must(')');
      this.#take('AS');
      return { alias: this.#next(), from: query };
    }
    const name = this.#next();
    const next = this.#tokens[this.#at] ?? '';
    const hasAlias = this.#take('AS') || (/^[A-Za-z_]\w*$/.test(next) && !keywords.test(next));
    return { alias: hasAlias ? this.#next() : name, from: () => this.table(name) };
  }

  #ordering(): { value: Expression; isDown: boolean }[] {
    const all: { value: Expression; isDown: boolean }[] = [];
    do {
      const value = this.#expression();
      all.push({ value, isDown: this.#take('DESC') });
    } while (this.#take(','));
    return all;
  }

  #expressions(): Expression[] {
    const all: Expression[] = [];
    do all.push(this.#expression());
    while (this.#take(','));
    return all;
  }

  #expression(): Expression {
    let value = this.#and();
    while (this.#take('OR')) {
      const [left, right] = [value, this.#and()];
      value = (scope) => (isTrue(left(scope)) || isTrue(right(scope)) ? 1 : 0);
    }
    return value;
  }

  #and(): Expression {
    let value = this.#comparison();
    while (this.#take('AND')) {
      const [left, right] = [value, this.#comparison()];
      value = (scope) => (isTrue(left(scope)) && isTrue(right(scope)) ? 1 : 0);
    }
    return value;
  }

  #comparison(): Expression {
    const left = this.#sum();
    if (this.#take('IN')) {
      this.#must('(');
      if (this.#tokens[this.#at] === 'SELECT') return this.#inQuery(left);
      const all = this.#list(() => this.#expression());
      return (scope) => (all.some((each) => compared(left(scope), each(scope)) === 0) ? 1 : 0);
    }
    const sign = ['=', '<', '>', '<=', '>=', '!=', '<>'].find((each) => this.#take(each));
    if (sign === undefined) return left;
    const right = this.#sum();
    return (scope) => {
      const [one, other] = [left(scope), right(scope)];
      return one === null || other === null ? null : holds(sign, compared(one, other));
    };
  }

  #inQuery(left: Expression): Expression {
    const query = this.#select();
    this.#must(')');
    return (scope) => {
      const { columns, rows } = query(scope);
      return rows.some((row) => compared(left(scope), row[columns[0] ?? ''] ?? null) === 0) ? 1 : 0;
    };
  }

  #sum(): Expression {
    let value = this.#product();
    for (;;) {
      const sign = ['+', '-'].find((each) => this.#take(each));
      if (sign === undefined) return value;
      const [left, right] = [value, this.#product()];
      value = arithmetic(left, right, (one, other) => (sign === '+' ? one + other : one - other));
    }
  }

  #product(): Expression {
    let value = this.#term();
    for (;;) {
      const sign = ['*', 'DIV'].find((each) => this.#take(each));
      if (sign === undefined) return value;
      const [left, right] = [value, this.#term()];
      value = arithmetic(left, right, (one, other) => (sign === '*' ? one * other : Math.trunc(one / other)));
    }
  }

  #term(): Expression {
    if (this.#take('-')) {
      const value = this.#term();
      return arithmetic(value, value, (one) => -one);
    }
    if (this.#take('(')) return this.#inBrackets();
    const text = this.#next();
    if (text.startsWith("X'")) return () => Buffer.from(text.slice(2, -1), 'hex');
    if (text.startsWith("'")) {
      const plain = text.slice(1, -1).replace(/\\(.)|''/g, (_, escaped: string | undefined) => escaped ?? "'");
      return () => plain;
    }
    if (/^\d/.test(text)) return () => Number(text);
    if (/^null$/i.test(text)) return () => null;
    if (this.#take('(')) return this.#call(text.toUpperCase());
    if (this.#take('.')) return column(this.#next(), text);
    return column(text);
  }

  #inBrackets(): Expression {
    const isQuery = this.#tokens[this.#at]?.toUpperCase() === 'SELECT';
    const query = isQuery ? this.#select() : undefined;
    const value = isQuery ? undefined : this.#expression();
    this.#must(')');
    if (value !== undefined) return value;
    return (scope) => {
      const found = query?.(scope);
      return found?.rows[0]?.[found.columns[0] ?? ''] ?? null;
    };
  }

  #call(name: string): Expression {
    if (name === 'EXISTS') {
      const query = this.#select();
      this.#must(')');
      return (scope) => (query(scope).rows.length > 0 ? 1 : 0);
    }
    if (name === 'CAST') {
      const value = this.#expression();
      this.#must('AS');
      const type = this.#next();
      while (!this.#take(')')) this.#at += 1;
      if (type === 'DECIMAL') this.#take(')');
      return (scope) => cast(value(scope), type);
    }
    if (name === 'VALUES') {
      const of = this.#next();
      this.#must(')');
      return column(`VALUES ${of}`);
    }
    if (name === 'COUNT' && this.#take('*')) {
      this.#must(')');
      this.#hasAggregate = true;
      return (scope) => scope.group?.length ?? 0;
    }
    const given = this.#list(() => this.#expression());
    const [first = () => null, second = () => null, third = () => null] = given;
    switch (name) {
      case 'IF':
        return (scope) => (isTrue(first(scope)) ? second(scope) : third(scope));
      case 'COALESCE':
        return (scope) => given.map((each) => each(scope)).find((each) => each !== null) ?? null;
      case 'SUM':
      case 'MAX':
        this.#hasAggregate = true;
        return (scope) => {
          const all = (scope.group ?? []).map(first).flatMap((each) => (each === null ? [] : [Number(each)]));
          if (all.length === 0) return null;
          return name === 'MAX' ? Math.max(...all) : all.reduce((sum, each) => sum + each, 0);
        };
      default:
        throw new Error(`The function ${name} is not known`);
    }
  }

  /** Reads a list to its closing bracket. */
  #list<T>(read: () => T): T[] {
    const all: T[] = [];
    if (this.#take(')')) return all;
    do all.push(read());
    while (this.#take(','));
    this.#must(')');
    return all;
  }

  #takeBy(word: string): boolean {
    if (!this.#take(word)) return false;
    this.#must('BY');
    return true;
  }

  #take(word: string): boolean {
    if (this.#tokens[this.#at]?.toUpperCase() !== word) return false;
    this.#at += 1;
    return true;
  }

  #must(word: string): void {
    if (!this.#take(word)) this.#fail(word);
  }

  #next(): string {
    const text = this.#tokens[this.#at];
    if (text === undefined) this.#fail('more');
    this.#at += 1;
    return text ?? '';
  }

  #fail(wanted: string): never {
    throw new Error(
      `${wanted} is expected at "${this.#tokens.slice(this.#at, this.#at + 4).join(' ')}" of ${this.sql}`,
    );
  }
}

function grouped(scopes: readonly Scope[], by: readonly Expression[], outer: Scope): Scope[] {
  if (by.length === 0) return [{ rows: scopes[0]?.rows ?? new Map(), group: scopes, outer }];
  const groups = new Map<string, Scope[]>();
  for (const scope of scopes) {
    const key = JSON.stringify(by.map((each) => each(scope)));
    groups.set(key, [...(groups.get(key) ?? []), scope]);
  }
  return [...groups.values()].map((group) => ({ rows: group[0]?.rows ?? new Map(), group, outer }));
}

function column(name: string, of?: string): Expression {
  return (scope) => {
    for (let at: Scope | undefined = scope; at !== undefined; at = at.outer) {
      for (const [alias, row] of at.rows) {
        const value = of === undefined || of === alias ? row[name] : undefined;
        if (value !== undefined) return value;
      }
    }
    throw new Error(`There is no column ${of === undefined ? '' : `${of}.`}${name}`);
  };
}

function arithmetic(
  left: Expression,
  right: Expression,
  calculate: (one: number, other: number) => number,
): Expression {
  return (scope) => {
    const [one, other] = [left(scope), right(scope)];
    return one === null || other === null ? null : calculate(Number(one), Number(other));
  };
}

function cast(value: Value, type: string): Value {
  if (value === null || type !== 'CHAR') return value;
  return String(value);
}

function isTrue(value: Value): boolean {
  return value !== null && value !== 0 && value !== '';
}

function compared(one: Value, other: Value): number {
  if (typeof one === 'string' && typeof other === 'string') return one === other ? 0 : one < other ? -1 : 1;
  return Number(one) - Number(other);
}

function holds(sign: string, order: number): number {
  const all: Record<string, boolean> = {
    ...{ '=': order === 0, '<': order < 0, '>': order > 0, '<=': order <= 0, '>=': order >= 0 },
    ...{ '!=': order !== 0, '<>': order !== 0 },
  };
  return all[sign] === true ? 1 : 0;
}
