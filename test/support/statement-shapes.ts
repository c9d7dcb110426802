/**
 * The shape of a statement: its text, with what differs from call to call written in one way. Values are `?` already. A
 * guard's conditions are shapes of their own, because any of them can come together in one statement.
 */
export function shapesOf(sql: string): string[] {
  const text = sql.replace(/\s+/g, ' ').trim();
  const guarded = /^INSERT INTO guards \(ok\) SELECT 0 FROM DUAL WHERE \((.*)\) IS NOT TRUE$/.exec(text)?.[1];
  if (guarded !== undefined) return conditionsIn(guarded).map((condition) => shapeOf(`${guardStart}${condition}`));
  return isWork(text) ? [shapeOf(text)] : [];
}

/** The shape of a guard's condition begins with this. */
export const guardStart = 'GUARD ';
/** After what can be repeated any number of times. */
export const repeated = ' ...';

function shapeOf(text: string): string {
  let shape = text
    // Lists of values, and of rows of values.
    .replace(/\(\?(?:, \?)+\)/g, '(?)')
    .replace(/\(\(\?\)(?:, \(\?\))*\)/g, '(?)')
    .replace(/\(0(?:, \?)+\)/g, '(?)')
    .replace(/ VALUES (?:\?|\(.*?\))(?= ON DUPLICATE|$)/, ' VALUES ?')
    .replace(/^(UPDATE \S+(?: FORCE INDEX \(\w+\))? SET )\w+ = \?(?:, \w+ = \?)* WHERE/, '$1* WHERE')
    .replace(/\bSELECT \d+ AS page\b/g, 'SELECT 0 AS page')
    .replace(/\bLIMIT (?:\d{2,}|[2-9])\b/g, 'LIMIT ?');
  // The same part again and again, between OR or UNION ALL.
  for (const between of [' OR ', ' UNION ALL ']) shape = oncePerPart(shape, between);
  return shape;
}

/** Transactions are begun and ended by words that read nothing, and connections by settings. */
function isWork(text: string): boolean {
  return /^(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|WITH|\()/.test(text) && / (?:FROM|INTO|UPDATE) |^UPDATE /.test(text);
}

/** The conditions that a guard joins by AND, each in its own brackets. */
function conditionsIn(text: string): string[] {
  const conditions: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '(') {
      if (depth === 0) from = at + 1;
      depth += 1;
    } else if (text[at] === ')') {
      depth -= 1;
      if (depth === 0) conditions.push(text.slice(from, at));
    }
  }
  return conditions;
}

/** Writes parts in brackets that repeat each other as one, with `...` behind it, also if it is there once. */
function oncePerPart(text: string, between: string): string {
  let found = text;
  for (let at = found.indexOf(`)${between}(`); at >= 0; at = found.indexOf(`)${between}(`, at + 1)) {
    const part = bracketEndingAt(found, at);
    const following = between + part;
    let end = at + 1;
    while (found.startsWith(following, end)) end += following.length;
    if (end > at + 1) found = found.slice(0, at + 1) + repeated + found.slice(end);
  }
  return found;
}

function bracketEndingAt(text: string, end: number): string {
  let depth = 0;
  for (let at = end; at >= 0; at -= 1) {
    if (text[at] === ')') depth += 1;
    if (text[at] === '(') depth -= 1;
    if (depth === 0) return text.slice(at, end + 1);
  }
  return text.slice(0, end + 1);
}
