import type { Database } from '../../store/database.ts';
import { joined, type SqlRow, type Statement, sql, statement } from '../../store/statement.ts';
import type { BreakKindName } from './rules.ts';
import {
  type ComparedDay,
  comparedDay,
  newItem,
  type RunNote,
  reconciliationBreaks,
  reconciliationItems,
  reconciliationRuns,
} from './table.ts';

/** The most breaks that are counted. */
const maxBreaksCounted = 10_000;

/** The newest run of a day. `lock`: for a transaction that decides on it. */
export function newestRun(of: ComparedDay, lock = false): Statement {
  const tail = statement(`ORDER BY number DESC LIMIT 1${lock ? ' FOR UPDATE' : ''}`);
  return reconciliationRuns.find(comparedDay(of), reconciliationRuns.all, tail);
}

/** The run that the worker must go on with. */
export function nextRun(now: number): Statement {
  return statement(
    `SELECT ${reconciliationRuns.all.list} FROM reconciliation_runs FORCE INDEX (reconciliation_runs_next_at)
      WHERE next_at <= ? ORDER BY next_at, day, number LIMIT 1`,
    new Date(now),
  );
}

/** Those of some days that have a run, and whether one of its runs ended. */
export function daysWithRuns(days: readonly string[]): Statement {
  return statement(
    `SELECT day, MAX(state IN ('complete', 'not_offered')) AS is_done FROM reconciliation_runs FORCE INDEX (PRIMARY)
      WHERE day IN (?) GROUP BY day ORDER BY day`,
    days,
  );
}

/** A page of runs, the newest day first. `before`: the day and number of the last one shown. */
export function listRuns(day: string, before: readonly [day: string, number: number] | undefined, most: number) {
  const order = `ORDER BY day DESC, number DESC LIMIT ${most}`;
  const list = `SELECT ${reconciliationRuns.all.list} FROM reconciliation_runs`;
  if (day !== '') {
    return before === undefined
      ? statement(`${list} WHERE day = ? ${order}`, day)
      : statement(`${list} WHERE day = ? AND number < ? ${order}`, day, before[1]);
  }
  return before === undefined
    ? statement(`${list} ${order}`)
    : statement(`${list} WHERE (day = ? AND number < ?) OR day < ? ${order}`, before[0], before[1], before[0]);
}

/** The last day that was compared completely. */
export function lastCompleteDay(): Statement {
  return statement(
    `SELECT MAX(day) AS day FROM reconciliation_runs FORCE INDEX (reconciliation_runs_state) WHERE state = 'complete'`,
  );
}

/** The newest run that completed, and the newest for which the broker gave no statement. */
export function lastOffer(): Statement[] {
  return ['complete', 'not_offered'].map((state) =>
    statement(
      `SELECT day, number FROM reconciliation_runs FORCE INDEX (reconciliation_runs_state)
        WHERE state = ? ORDER BY day DESC, number DESC LIMIT 1`,
      state,
    ),
  );
}

/** The open breaks by kind, as far as they are counted. */
export function countOpenBreaks(): Statement {
  return statement(
    `SELECT kind, COUNT(*) AS count FROM (SELECT kind FROM reconciliation_breaks
      FORCE INDEX (reconciliation_breaks_open) WHERE is_open = 1 LIMIT ${maxBreaksCounted}) AS counted GROUP BY kind`,
  );
}

export function readOpenBreaks(rows: readonly SqlRow[]): readonly (readonly [BreakKindName, number])[] {
  return rows.map(({ kind, count }) => [String(kind) as BreakKindName, Number(count)]);
}

/** Removes a batch of a day's records. */
export function removeItems({ day }: ComparedDay, most: number): Statement {
  return statement(
    `DELETE FROM reconciliation_items WHERE day = ? ORDER BY day, object_id, section, item_id LIMIT ${most}`,
    day,
  );
}

/** One record of a day, if there is any. */
export function anyItem({ day }: ComparedDay): Statement {
  return statement('SELECT 1 FROM reconciliation_items FORCE INDEX (PRIMARY) WHERE day = ? LIMIT 1', day);
}

/** Notes something about the run of a day, once, until its records are removed. */
export function note(of: ComparedDay, name: RunNote): Statement {
  return reconciliationItems.insert({ ...newItem(of), section: 'note', itemId: name });
}

/** The notes of the run of a day. */
export async function notesOf(database: Pick<Database, 'read'>, { day }: ComparedDay): Promise<Set<RunNote>> {
  const query = `SELECT item_id FROM reconciliation_items FORCE INDEX (PRIMARY)
    WHERE day = ? AND object_id = '' AND section = 'note'`;
  const rows = await database.read(statement(query, day));
  return new Set(rows.map(({ item_id: name }) => String(name) as RunNote));
}

/** The position before the first record that has an object of the gateway. */
export const beforeObjects: readonly string[] = ['', '\x7f', ''];

/** The position before the first record. */
export const beforeAccounts: readonly string[] = ['', '', '', '', ''];

const byObject = ['object_id', 'section', 'item_id'] as const;
const byAccount = ['account', 'symbol', 'object_id', 'section', 'item_id'] as const;

/** A page of a day's records by the ids of the gateway's objects, after a position. */
export function itemsByObject(of: ComparedDay, after: readonly string[], most: number): Statement {
  return itemsAfter('PRIMARY', byObject, of, after, most);
}

/** A page of a day's records by account and symbol, after a position. */
export function itemsByAccount(of: ComparedDay, after: readonly string[], most: number): Statement {
  return itemsAfter('reconciliation_items_account', byAccount, of, after, most);
}

/** Each condition is a range of the index, so that a page reads its own rows only. */
function itemsAfter(
  index: string,
  columns: readonly string[],
  { day }: ComparedDay,
  after: readonly string[],
  most: number,
): Statement {
  const ranges = columns.map((column, at) => {
    const equal = columns.slice(0, at).map((one) => `${one} = ? AND `);
    return statement(`(day = ? AND ${equal.join('')}${column} > ?)`, day, ...after.slice(0, at + 1));
  });
  const list = statement(`SELECT ${reconciliationItems.all.list} FROM reconciliation_items FORCE INDEX (${index})`);
  const order = statement(`ORDER BY day, ${columns.join(', ')} LIMIT ${most}`);
  return sql`${list} WHERE ${joined(ranges, ' OR ')} ${order}`;
}

/** Which of some objects the statement of a day has. One row is read of each. */
export function statedAmong({ day }: ComparedDay, objectIds: readonly string[]): Statement {
  const one = `(SELECT object_id FROM reconciliation_items FORCE INDEX (PRIMARY)
    WHERE day = ? AND object_id = ? LIMIT 1)`;
  return statement(objectIds.map(() => one).join(' UNION ALL '), ...objectIds.flatMap((id) => [day, id]));
}

/** The first partner after an id, null without one. By `MIN`, because MySQL may scan the index for a `LIMIT 1`. */
export function partnerAfter(partnerId: string): Statement {
  return statement('SELECT MIN(id) AS id FROM partners WHERE id > ?', partnerId);
}

/** When the first partner was created: before, there was nothing to compare. */
export function firstPartner(): Statement {
  return statement('SELECT created_at FROM partners ORDER BY id LIMIT 1');
}

/** The partners of some accounts. One row is read of each. */
export function ownersOf(accounts: readonly string[]): Statement {
  const one = '(SELECT account, partner_id FROM accounts FORCE INDEX (accounts_account) WHERE account = ? LIMIT 1)';
  return statement(accounts.map(() => one).join(' UNION ALL '), ...accounts);
}

/** Some breaks by their ids, locked. */
export function breaksById(ids: readonly string[]): Statement {
  return statement(
    `SELECT ${reconciliationBreaks.all.list} FROM reconciliation_breaks FORCE INDEX (reconciliation_breaks_id)
      WHERE id IN (?) FOR UPDATE`,
    ids,
  );
}

/** A page of a day's breaks after an id. */
export function breaksOfDay({ day }: ComparedDay, afterId: string, most: number): Statement {
  return statement(
    `SELECT ${reconciliationBreaks.all.list} FROM reconciliation_breaks FORCE INDEX (reconciliation_breaks_day)
      WHERE day = ? AND id > ? ORDER BY id LIMIT ${most}`,
    day,
    afterId,
  );
}

/** Which breaks a list shows. */
export interface BreakFilter {
  /** Empty: any. */
  readonly day: string;
  /** Empty: any, also none. */
  readonly partnerId: string;
  readonly openOnly: boolean;
}

/** A page of breaks, the newest day first, and of a day by their ids. */
export function listBreaks(
  { day, partnerId, openOnly }: BreakFilter,
  after: readonly [day: string, id: string] | undefined,
  most: number,
): Statement {
  const conditions: Statement[] = [];
  if (partnerId !== '') conditions.push(sql`partner_id = ${partnerId}`);
  if (openOnly) conditions.push(sql`is_open = 1`);
  if (day !== '') conditions.push(sql`day = ${day}`);
  if (after !== undefined && day !== '') conditions.push(sql`id < ${after[1]}`);
  else if (after !== undefined) conditions.push(sql`((day = ${after[0]} AND id < ${after[1]}) OR day < ${after[0]})`);
  const index = openOnly
    ? partnerId === ''
      ? 'reconciliation_breaks_open'
      : 'reconciliation_breaks_partner_open'
    : partnerId === ''
      ? 'reconciliation_breaks_day'
      : 'PRIMARY';
  const list = statement(`SELECT ${reconciliationBreaks.all.list} FROM reconciliation_breaks FORCE INDEX (${index})`);
  const where = conditions.length === 0 ? statement('') : sql`WHERE ${joined(conditions, ' AND ')}`;
  return sql`${list} ${where} ORDER BY day DESC, id DESC LIMIT ${statement(String(most))}`;
}
