import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { RowDataPacket } from 'mysql2/promise';
import { ReportKind } from '../gen/marina/broker/v1/orders_pb.ts';
import { Call } from '../gen/marina/simulator/v1/controls_pb.ts';
import type { Database } from './database.ts';
import type { OrderReport } from './model.ts';
import { type ReportRow, reportColumns, reportFromRow } from './rows.ts';

/** How many records a page holds. */
const maxPage = 1_000;

/** What the simulator's record says, read from its tables. */
export class Records {
  constructor(private readonly database: Database) {}

  /** Whether the broker has an order, and its reports above a number. */
  async reportsOf(clientOrderId: string, afterNumber: number) {
    const orders = await this.database.read('SELECT 1 FROM orders WHERE client_order_id = ?', [clientOrderId]);
    const rows = await this.database.read<ReportRow>(
      `SELECT ${reportColumns} FROM reports WHERE client_order_id = ? AND number > ? ORDER BY number LIMIT ?`,
      [clientOrderId, afterNumber, maxPage + 1],
    );
    return { found: orders.length > 0, ...page(rows.map(reportFromRow)) };
  }

  /** Reports above a number, and not above the last that readers may see. */
  async reportsAfter(number: number, last: number, limit: number): Promise<OrderReport[]> {
    const rows = await this.database.read<ReportRow>(
      `SELECT ${reportColumns} FROM reports WHERE number > ? AND number <= ? ORDER BY number LIMIT ?`,
      [number, last, limit],
    );
    return rows.map(reportFromRow);
  }

  /** The report that cancelled an order, if one did. */
  async cancellationOf(clientOrderId: string): Promise<OrderReport | undefined> {
    const [row] = await this.database.read<ReportRow>(
      `SELECT ${reportColumns} FROM reports WHERE client_order_id = ? AND kind = ? ORDER BY number LIMIT 1`,
      [clientOrderId, ReportKind.CANCELLED],
    );
    return row === undefined ? undefined : reportFromRow(row);
  }

  /** What was reported last about an order, if there is one. */
  async lastReportOf(clientOrderId: string): Promise<OrderReport | undefined> {
    const [row] = await this.database.read<ReportRow>(
      `SELECT ${reportColumns} FROM reports WHERE client_order_id = ? ORDER BY number DESC LIMIT 1`,
      [clientOrderId],
    );
    return row === undefined ? undefined : reportFromRow(row);
  }

  /** The account of an order, empty when there is no such order. */
  async accountOf(clientOrderId: string): Promise<string> {
    const [row] = await this.database.read('SELECT account FROM orders WHERE client_order_id = ?', [clientOrderId]);
    return (row?.account as string | undefined) ?? '';
  }

  /** The messages received, oldest first. */
  async messages(afterNumber: number, clientOrderId: string) {
    const rows = await this.database.read<MessageRow>(
      `SELECT number, call_kind, client_order_id, account, received_at_ms, taken, request_id, trace_parent
       FROM received_messages WHERE number > ? ${clientOrderId === '' ? '' : 'AND client_order_id = ?'} ORDER BY number LIMIT ?`,
      [afterNumber, ...(clientOrderId === '' ? [] : [clientOrderId]), maxPage + 1],
    );
    const { records, hasMore } = page(rows);
    const messages = records.map((row) => ({
      number: BigInt(row.number),
      call: row.call_kind,
      clientOrderId: row.client_order_id,
      account: row.account,
      receivedAt: timestampFromMs(row.received_at_ms),
      taken: row.taken === 1,
      requestId: row.request_id,
      traceparent: row.trace_parent,
    }));
    return { messages, hasMore };
  }

  /** What was taken above a number, with the notes it came with. */
  async submissions(afterNumber: number, limit: number) {
    const rows = await this.database.read<SubmissionRow>(
      'SELECT number, client_id, note FROM submissions WHERE number > ? ORDER BY number LIMIT ?',
      [afterNumber, limit],
    );
    return rows.map((row) => ({ number: BigInt(row.number), clientId: row.client_id, note: row.note }));
  }

  /** The orders the exchange has, in the order it took them. */
  async orders(afterSequence: number, clientOrderId: string) {
    const rows = await this.database.read<ExchangeOrderRow>(
      `SELECT o.sequence, o.client_order_id, o.exchange_order_id, o.account, o.symbol, o.quantity, o.filled, o.ended_by,
         (SELECT COUNT(*) FROM received_messages m WHERE m.client_order_id = o.client_order_id AND m.call_kind = ?) AS received
       FROM orders o
       WHERE o.sequence > ? ${clientOrderId === '' ? '' : 'AND o.client_order_id = ?'} ORDER BY o.sequence LIMIT ?`,
      [Call.SUBMIT_ORDER, afterSequence, ...(clientOrderId === '' ? [] : [clientOrderId]), maxPage + 1],
    );
    const { records, hasMore } = page(rows);
    const orders = records.map((row) => ({
      sequence: BigInt(row.sequence),
      clientOrderId: row.client_order_id,
      exchangeOrderId: row.exchange_order_id,
      account: row.account,
      symbol: row.symbol,
      quantity: BigInt(row.quantity),
      filledQuantity: BigInt(row.filled),
      endedBy: row.ended_by,
      timesReceived: row.received,
    }));
    return { orders, hasMore };
  }
}

function page<T>(records: readonly T[]): { records: readonly T[]; hasMore: boolean } {
  return { records: records.slice(0, maxPage), hasMore: records.length > maxPage };
}

interface SubmissionRow extends RowDataPacket {
  number: number;
  client_id: string;
  note: Buffer;
}

interface MessageRow extends RowDataPacket {
  number: number;
  call_kind: number;
  client_order_id: string;
  account: string;
  received_at_ms: number;
  taken: number;
  request_id: string;
  trace_parent: string;
}

interface ExchangeOrderRow extends RowDataPacket {
  sequence: number;
  client_order_id: string;
  exchange_order_id: string;
  account: string;
  symbol: string;
  quantity: number;
  filled: number;
  ended_by: number;
  received: number;
}
