import type { Database } from '../../gateway/store/database.ts';
import { type SqlRow, type Statement, statement } from '../../gateway/store/statement.ts';
import {
  type FixCancel,
  type FixNumbers,
  type FixOrder,
  type FixReport,
  fixCancels,
  fixNumbers,
  fixOrders,
  fixReports,
} from './table.ts';

const longestPage = 1_000;

/** One thing that was taken. */
export interface ListedSubmission {
  readonly number: bigint;
  readonly clientId: string;
  readonly note: Buffer;
}

/** The counts that an operator watches. */
export interface FixCounts {
  /** Orders of which nothing is known. */
  readonly inDoubt: number;
  readonly oldestInDoubtAt: number | undefined;
  readonly open: number;
  /** Orders that must be asked about, because a report may have been passed over. */
  readonly unasked: number;
  /** Findings that nobody has settled. */
  readonly findings: number;
}

/** The reads of the record. Any process may read; only the one with the session writes (`FixStore`). */
export class FixReads {
  constructor(protected readonly database: Database) {}

  async numbers(): Promise<FixNumbers> {
    return numbersOf(await this.database.read(fixNumbers.find({ id: 1n })));
  }

  /** Whether an order was ever stored, by the server that writes: absence in a copy that lags proves nothing. */
  async isStored(id: string): Promise<boolean> {
    const locked = fixOrders.find({ id }, fixOrders.only('id'), statement('FOR UPDATE'));
    return this.database.transaction([locked], ([rows = []]) => ({ writes: [], result: rows.length > 0 }));
  }

  async order(id: string): Promise<FixOrder | undefined> {
    const [row] = await this.database.read(fixOrders.find({ id }));
    return row === undefined ? undefined : fixOrders.all.read(row);
  }

  async cancelsOf(orderId: string): Promise<FixCancel[]> {
    return (await this.database.read(fixCancels.find({ orderId }))).map((row) => fixCancels.all.read(row));
  }

  /** Orders of which nothing is known, oldest first: all, or those after one of them. */
  async inDoubt(limit: number, after?: OrderPlace): Promise<FixOrder[]> {
    const rows = await this.database.read(
      fixOrders.find({ state: 'sending', settled: false }, fixOrders.all, oldestFirst(limit, after)),
    );
    return rows.map((row) => fixOrders.all.read(row));
  }

  /**
   * Orders that were good for a session day before the one that began at this time, and that have not ended, newest first;
   * without those that were found so in this one.
   */
  async notEnded(dayStartedAt: number, limit: number): Promise<FixOrder[]> {
    const day = new Date(dayStartedAt);
    const rows = await this.database.read(
      statement(
        `SELECT ${fixOrders.all.list} FROM fix_orders WHERE state = 'open' AND time_in_force <> 'gtc' AND settled = 0
          AND received_at < ?
          AND id NOT IN (SELECT order_id FROM fix_findings WHERE what = 'not_ended' AND at >= ?)
          ORDER BY received_at DESC LIMIT ${limit}`,
        day,
        day,
      ),
    );
    return rows.map((row) => fixOrders.all.read(row));
  }

  /**
   * Orders about which the exchange must be asked, because a message about them may have been passed over, oldest first: all, or
   * those after one of them.
   */
  async mustAsk(limit: number, after?: OrderPlace): Promise<FixOrder[]> {
    const rows = await this.database.read(
      fixOrders.find(
        { mustAsk: true, settled: false, state: ['sending', 'open'] },
        fixOrders.all,
        oldestFirst(limit, after),
        'fix_orders_must_ask',
      ),
    );
    return rows.map((row) => fixOrders.all.read(row));
  }

  /** The reports about an order above a number, oldest first, one more than asked for if there are more. */
  async reportsOf(orderId: string, afterNumber: bigint): Promise<{ reports: FixReport[]; hasMore: boolean }> {
    const tail = statement(`AND number > ? ORDER BY number LIMIT ${longestPage + 1}`, afterNumber);
    const rows = await this.database.read(fixReports.find({ orderId }, fixReports.all, tail));
    const reports = rows.slice(0, longestPage).map((row) => fixReports.all.read(row));
    return { reports, hasMore: rows.length > longestPage };
  }

  /** The report that says that an order is cancelled. */
  async cancellationOf(orderId: string): Promise<FixReport | undefined> {
    const [row] = await this.database.read(fixReports.find({ orderId, kind: 'cancelled' }));
    return row === undefined ? undefined : fixReports.all.read(row);
  }

  /** Reports above a number, and the number of the last one there is. */
  async reportsAfter(number: bigint, limit: number): Promise<{ reports: FixReport[]; last: bigint }> {
    // In this order: a report that comes between the two reads must not make the last one look sent.
    const [[numbers], rows = []] = (await this.database.readAll([
      statement('SELECT last_report FROM fix_numbers WHERE id = 1'),
      statement(
        `SELECT ${fixReports.all.list} FROM fix_reports WHERE number > ? ORDER BY number LIMIT ${limit}`,
        number,
      ),
    ])) as [SqlRow[], SqlRow[]];
    const reports = rows.map((row) => fixReports.all.read(row));
    return { reports, last: BigInt(String(numbers?.last_report ?? 0)) };
  }

  /** A page of what was taken. */
  async submissions(afterNumber: bigint, limit: number): Promise<ListedSubmission[]> {
    const rows = await this.database.read(
      statement(
        `SELECT s.number, s.client_id, COALESCE(s.note, o.note) AS note
         FROM fix_submissions s LEFT JOIN fix_orders o ON o.id = s.client_id
         WHERE s.number > ? ORDER BY s.number LIMIT ${limit}`,
        afterNumber,
      ),
    );
    return rows.map(({ number, client_id, note }) => ({
      number: BigInt(String(number)),
      clientId: String(client_id),
      note: note as Buffer,
    }));
  }

  /** How many orders are in each state that an operator watches, and the age of the oldest one in doubt. */
  async counts(): Promise<FixCounts> {
    const [rows = [], [findings] = []] = await this.database.readAll([
      statement(
        `SELECT state, COUNT(*) AS orders, MIN(received_at) AS oldest, SUM(must_ask) AS unasked FROM fix_orders
         WHERE state IN ('sending', 'open') AND settled = 0 GROUP BY state`,
      ),
      statement(
        `SELECT COUNT(*) AS findings FROM fix_findings f
         WHERE NOT EXISTS (SELECT 1 FROM fix_finding_settlements s WHERE s.finding_id = f.id)`,
      ),
    ]);
    const of = (state: string) => rows.find((row) => row.state === state);
    const oldest = of('sending')?.oldest;
    return {
      inDoubt: Number(of('sending')?.orders ?? 0),
      oldestInDoubtAt: oldest instanceof Date ? oldest.getTime() : undefined,
      open: Number(of('open')?.orders ?? 0),
      unasked: Number(of('sending')?.unasked ?? 0) + Number(of('open')?.unasked ?? 0),
      findings: Number(findings?.findings ?? 0),
    };
  }
}

/** The place of an order among those that are listed oldest first. */
type OrderPlace = Pick<FixOrder, 'receivedAt' | 'id'>;

/** The first orders, or the first ones after one of them. */
function oldestFirst(limit: number, after: OrderPlace | undefined): Statement {
  const since = new Date(after?.receivedAt ?? 0);
  return statement(
    `AND received_at >= ? AND (received_at > ? OR id > ?) ORDER BY received_at, id LIMIT ${limit}`,
    ...[since, since, after?.id ?? ''],
  );
}

/** The numbers in a row. Throws if there is none. */
export function numbersOf([row]: readonly SqlRow[]): FixNumbers {
  if (row === undefined) throw new Error('the database has no numbers of a session: migrate it first');
  return fixNumbers.all.read(row);
}
