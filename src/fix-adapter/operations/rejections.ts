import type { Database } from '../../gateway/store/database.ts';
import { type Statement, statement } from '../../gateway/store/statement.ts';
import { fixCancels, fixReports } from '../store/table.ts';

/** The exchange's words when it rejected or ended an order, or refused to cancel one. */
export interface Rejection {
  /** The number of the report; undefined: a request to cancel was refused. */
  readonly number: bigint | undefined;
  readonly at: number | null;
  readonly orderId: string;
  readonly what: string;
  /** The reason that partners are given; null if they are given none. */
  readonly shownReason: string | null;
  readonly exchangeReason: string | null;
  readonly exchangeText: string | null;
}

/** How many reports are looked through for rejections, the newest first. */
const lookedThrough = 100_000;

const shown = fixReports.only('number', 'at', 'orderId', 'kind', 'rejectReason', 'exchangeReason', 'exchangeText');
const order = (id: string) => statement('order_id = ?', Buffer.from(id));

/**
 * Lists rejections, newest first, at most `limit` in all: of an order all of its ends and refused cancels, and otherwise the
 * rejected orders. A refused cancel stands where it was requested, and a report without a time behind the one before it.
 */
export async function listRejections(
  database: Database,
  orderId: string | undefined,
  limit: number,
): Promise<readonly Rejection[]> {
  const where: Statement =
    orderId === undefined
      ? statement(
          `kind = 'rejected' AND number > (SELECT last_report FROM fix_numbers WHERE id = 1) - ${lookedThrough}`,
        )
      : { ...order(orderId), sql: `${order(orderId).sql} AND kind NOT IN ('accepted', 'trade')` };
  const reports = await database.read({
    sql: `SELECT ${shown.list} FROM fix_reports WHERE ${where.sql} ORDER BY number DESC LIMIT ${limit}`,
    values: where.values,
  });
  const newest = statement(`ORDER BY requested_at DESC, id DESC LIMIT ${limit}`);
  const cancels =
    orderId === undefined
      ? []
      : await database.read(fixCancels.find({ orderId, state: 'refused' }, fixCancels.all, newest));
  const refused = cancels.map((row): Rejection => {
    const { id, orderId: of, requestedAt, exchangeReason, exchangeText } = fixCancels.all.read(row);
    const what = `cancel ${id} refused`;
    return { number: undefined, at: requestedAt, orderId: of, what, shownReason: null, exchangeReason, exchangeText };
  });
  const ends = reports.map((row): Rejection => {
    const { kind, rejectReason, ...report } = shown.read(row);
    return { ...report, what: kind, shownReason: rejectReason };
  });
  return newestFirst(ends, refused).slice(0, limit);
}

/** Merges reports, which stay in the order of their numbers, with refused cancels. Both are newest first. */
export function newestFirst(ends: readonly Rejection[], refused: readonly Rejection[]): readonly Rejection[] {
  let last = 0;
  const placed = [...ends].reverse().map((end) => {
    last = Math.max(last, end.at ?? 0);
    return { end, at: last };
  });
  const merged: Rejection[] = [];
  let cancels = [...refused];
  for (const { end, at } of placed.reverse()) {
    const later = cancels.filter((cancel) => (cancel.at ?? 0) > at);
    merged.push(...later, end);
    cancels = cancels.slice(later.length);
  }
  return [...merged, ...cancels];
}
