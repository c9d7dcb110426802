/** The columns of each table, with their types. */
export type TableColumns = ReadonlyMap<string, ReadonlyMap<string, string>>;

export interface ColumnName {
  readonly table: string;
  readonly column: string;
}

/** What a `?` of a statement stands for. */
export type Place =
  /** A value that a column is compared with. A range has no single value; `isUpper`: it is the upper end of one. */
  | { readonly kind: 'compared'; readonly column: ColumnName; readonly isRange: boolean; readonly isUpper?: boolean }
  /** A list that has a column's value, or the values of several columns together; `isExcluded`: that does not have them. */
  | { readonly kind: 'list'; readonly columns: readonly ColumnName[]; readonly isExcluded: boolean }
  | { readonly kind: 'limit' }
  /** A value that is stored in a column, or calculated with. */
  | { readonly kind: 'other'; readonly stored?: ColumnName | undefined };

const token = /'(?:[^'\\]|\\.|'')*'|[A-Za-z_][\w.]*|<=>|<=|>=|<>|\d+|\S/g;
const ranges = ['<', '>', '<=', '>=', 'LIKE', 'BETWEEN', '<>'];
const comparisons = ['=', '<=>', ...ranges];

/** Says of each `?` of a statement what it stands for, by the words around it. */
export function placesOf(sql: string, columnsOf: TableColumns): Place[] {
  const tokens: readonly string[] = sql.replaceAll('`', '').match(token) ?? [];
  const resolve = (at: number, name: string) => columnAt(tokens, at, name, columnsOf);
  const setFrom = tokens[0] === 'UPDATE' ? tokens.indexOf('SET') : Number.POSITIVE_INFINITY;
  const setTo = tokens.indexOf('WHERE', setFrom);
  return tokens.flatMap((word, at): Place[] => {
    if (word !== '?') return [];
    if (at > setFrom && at < setTo) {
      const stored = tokens[tokens.lastIndexOf('=', at) - 1] ?? '';
      return [{ kind: 'other', stored: resolve(at, stored) }];
    }
    return [placeAt(tokens, at, (name) => resolve(at, name))];
  });
}

function placeAt(tokens: readonly string[], at: number, resolve: (name: string) => ColumnName | undefined): Place {
  const before = (back: number) => tokens[at - back] ?? '';
  if (before(1) === 'LIMIT') return { kind: 'limit' };
  if (before(1) === '(' && before(2) === 'IN') {
    const isExcluded = before(3) === 'NOT';
    const end = at - (isExcluded ? 4 : 3);
    const start = tokens[end] === ')' ? tokens.lastIndexOf('(', end) : end;
    const columns = tokens.slice(start, end + 1).flatMap((word) => resolve(word) ?? []);
    return columns.length === 0 ? { kind: 'other' } : { kind: 'list', columns, isExcluded };
  }
  const isSecondBound = before(1) === 'AND' && before(3) === 'BETWEEN';
  const operator = isSecondBound ? 'BETWEEN' : before(1);
  const column = comparisons.includes(operator) ? resolve(before(isSecondBound ? 4 : 2)) : undefined;
  if (column !== undefined) {
    const isUpper = operator.startsWith('<') || isSecondBound;
    return { kind: 'compared', column, isRange: ranges.includes(operator), isUpper };
  }
  const after = tokens[at + 1] ?? '';
  const later = comparisons.includes(after) ? resolve(tokens[at + 2] ?? '') : undefined;
  if (later === undefined) return { kind: 'other' };
  return { kind: 'compared', column: later, isRange: ranges.includes(after), isUpper: after.startsWith('>') };
}

/** The column that a name means at a place: of the tables of the innermost SELECT around it that has one. */
function columnAt(
  tokens: readonly string[],
  at: number,
  name: string,
  columnsOf: TableColumns,
): ColumnName | undefined {
  const [alias, column = alias] = name.split('.') as [string, string?];
  if (!/^[a-z_]\w*$/.test(column)) return undefined;
  const isQualified = name.includes('.');
  for (const [from, to] of [...selectsAround(tokens, at), [0, tokens.length] as const]) {
    for (const { table, called } of tablesIn(tokens, from, to, columnsOf)) {
      if ((!isQualified || called === alias) && columnsOf.get(table)?.has(column)) return { table, column };
    }
  }
  return undefined;
}

/** Where the brackets around a place begin and end, the innermost first. */
function selectsAround(tokens: readonly string[], at: number): [number, number][] {
  const around: [number, number][] = [];
  let depth = 0;
  for (let from = at; from >= 0; from -= 1) {
    if (tokens[from] === ')') depth += 1;
    if (tokens[from] !== '(') continue;
    if (depth > 0) depth -= 1;
    else if (tokens[from + 1] === 'SELECT') around.push([from, closing(tokens, from)]);
  }
  return around;
}

function closing(tokens: readonly string[], open: number): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at += 1) {
    if (tokens[at] === '(') depth += 1;
    if (tokens[at] === ')') depth -= 1;
    if (depth === 0) return at;
  }
  return tokens.length;
}

/** The tables that a part of a statement names, each with its other name. A derived table stands for those in it. */
function tablesIn(tokens: readonly string[], from: number, to: number, columnsOf: TableColumns) {
  const found: { table: string; called: string }[] = [];
  for (let at = from; at < to; at += 1) {
    const table = tokens[at] ?? '';
    if (columnsOf.has(table) && ['FROM', 'JOIN', 'STRAIGHT_JOIN', 'UPDATE', 'INTO'].includes(tokens[at - 1] ?? '')) {
      const next = tokens[at + 1] === 'AS' ? tokens[at + 2] : tokens[at + 1];
      found.push({ table, called: next !== undefined && /^[a-z]\w*$/.test(next) ? next : table });
    }
    if (table === '(' && ['FROM', 'JOIN'].includes(tokens[at - 1] ?? '')) {
      const end = closing(tokens, at);
      const called = (tokens[end + 1] === 'AS' ? tokens[end + 2] : tokens[end + 1]) ?? '';
      found.push(...tablesIn(tokens, at + 1, end, columnsOf).map(({ table: inner }) => ({ table: inner, called })));
    }
  }
  return found;
}
