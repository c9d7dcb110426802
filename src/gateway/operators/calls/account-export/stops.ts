import { auditEntries } from '../../../edge/auth/audit-store.ts';
import type { Database } from '../../../store/database.ts';
import { type SqlRow, sql, statement } from '../../../store/statement.ts';
import { type StoredStop, stops } from '../../../trading/stops/table.ts';
import { parsedJson } from '../audit-period.ts';
import type { Days } from '../reports/days.ts';
import { type AccountLine, timeText } from './lines.ts';
import { type AccountLink, hadIt } from './links.ts';

/** How many stops are read at a time. */
const together = 200;

/** The target of a stop, as its row and its entries of the audit have it. */
interface Target {
  readonly target: unknown;
  readonly value: unknown;
}

/** Whether a stop affected the account at some time from an instant on and before another one. */
export function isStopOf(
  { target, value }: Target,
  account: string,
  links: readonly AccountLink[],
  from: number,
  until: number,
): boolean {
  if (target === 'partner') return hadIt(links, String(value), from, until);
  return target === 'everything' || (target === 'account' && value === account);
}

/** The stops that affected the account on some days: those that are open, and then those that have ended since. */
export async function* stopLines(
  database: Database,
  account: string,
  links: readonly AccountLink[],
  days: Days,
): AsyncGenerator<AccountLine[]> {
  const linesOf = (rows: readonly SqlRow[]) =>
    rows.filter((row) => wasInForceOn(stops.all.read(row), account, links, days)).map(toLine);
  const columns = statement(stops.all.list);
  for (let after = ''; ; ) {
    const rows = await database.read(
      sql`SELECT ${columns} FROM stops FORCE INDEX (stops_ended_at) WHERE ended_at IS NULL AND id > ${after}
        ORDER BY id ${statement(`LIMIT ${together}`)}`,
    );
    yield linesOf(rows);
    if (rows.length < together) break;
    after = String(rows.at(-1)?.id);
  }
  for (let [at, after] = [new Date(days.from), '']; ; ) {
    const rows = await database.read(
      sql`SELECT ${columns} FROM stops FORCE INDEX (stops_ended_at)
        WHERE ended_at >= ${at} AND NOT (ended_at = ${at} AND id <= ${after})
        ORDER BY ended_at, id ${statement(`LIMIT ${together}`)}`,
    );
    yield linesOf(rows);
    const last = rows.at(-1);
    if (last === undefined || rows.length < together) return;
    [at, after] = [last.ended_at as Date, String(last.id)];
  }
}

/** The pause of all trading in which the first day began; none if trading was not paused then. */
export async function pauseLines(database: Database, { from }: Days): Promise<AccountLine[]> {
  const [paused, resumed] = await Promise.all(
    ['Trading.PauseTrading', 'Trading.ResumeTrading'].map(async (action) => {
      const [row] = await database.read(
        sql`SELECT ${statement(auditEntries.all.list)} FROM audit_entries FORCE INDEX (audit_entries_action)
          WHERE partner_id IS NULL AND action = ${action} AND at < ${new Date(from)} ORDER BY at DESC, id DESC LIMIT 1`,
      );
      return row && auditEntries.all.read(row);
    }),
  );
  if (paused === undefined || (resumed !== undefined && resumed.id > paused.id)) return [];
  const { id, at, operator, detail } = paused;
  return [{ line: 'pause', at: timeText(at), operator, detail: parsedJson(detail), entry: String(id) }];
}

function wasInForceOn(stop: StoredStop, account: string, links: readonly AccountLink[], days: Days): boolean {
  const end = Math.min(...[stop.endedAt, stop.endsAt].map((at) => at ?? Number.POSITIVE_INFINITY));
  const [from, until] = [Math.max(stop.startedAt, days.from), Math.min(end, days.until)];
  return from < until && isStopOf(stop, account, links, from, until);
}

function toLine(row: SqlRow): AccountLine {
  return { line: 'stop', ...stops.toJson(row) };
}
