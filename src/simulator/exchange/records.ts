import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { RowDataPacket } from 'mysql2/promise';
import { ReportKind } from '../../gen/marina/broker/v1/orders_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { OrderReport } from '../model.ts';
import type { SimulatorDatabase } from '../store/database.ts';
import { listPage, maxPage } from '../store/pages.ts';
import { messages, orders, reports } from '../store/tables.ts';

/** Reads the simulator's tables. */
export class Records {
  constructor(private readonly database: SimulatorDatabase) {}

  /** Whether the broker has an order, and its reports above a number. */
  async reportsOf(clientOrderId: string, afterNumber: number) {
    const found = await this.database.read('SELECT 1 FROM orders WHERE client_order_id = ?', [clientOrderId]);
    const rows = await this.database.read(
      `SELECT ${reports.columns} FROM reports WHERE client_order_id = ? AND number > ? ORDER BY number LIMIT ?`,
      [clientOrderId, afterNumber, maxPage + 1],
    );
    return { found: found.length > 0, ...page(rows.map(reports.fromRow)) };
  }

  /** Reports above a number, up to the last that readers may see. */
  async reportsAfter(number: number, last: number, limit: number): Promise<OrderReport[]> {
    const rows = await this.database.read(
      `SELECT ${reports.columns} FROM reports WHERE number > ? AND number <= ? ORDER BY number LIMIT ?`,
      [number, last, limit],
    );
    return rows.map(reports.fromRow);
  }

  /** The report that cancelled an order, if there is one. */
  async cancellationOf(clientOrderId: string): Promise<OrderReport | undefined> {
    const [row] = await this.database.read(
      `SELECT ${reports.columns} FROM reports WHERE client_order_id = ? AND kind = ? ORDER BY number LIMIT 1`,
      [clientOrderId, ReportKind.CANCELLED],
    );
    return row && reports.fromRow(row);
  }

  /** The last report about an order, if there is one. */
  async lastReportOf(clientOrderId: string): Promise<OrderReport | undefined> {
    const [row] = await this.database.read(
      `SELECT ${reports.columns} FROM reports WHERE client_order_id = ? ORDER BY number DESC LIMIT 1`,
      [clientOrderId],
    );
    return row && reports.fromRow(row);
  }

  /** The account of an order; empty for an unknown order. */
  async accountOf(clientOrderId: string): Promise<string> {
    const [row] = await this.database.read('SELECT account FROM orders WHERE client_order_id = ?', [clientOrderId]);
    return (row?.account as string | undefined) ?? '';
  }

  /** The received messages, oldest first. */
  async messages(afterNumber: number, clientOrderId: string) {
    const rows = await this.database.read(
      `SELECT ${messages.columns} FROM received_messages
       WHERE number > ? ${clientOrderId === '' ? '' : 'AND client_order_id = ?'} ORDER BY number LIMIT ?`,
      [afterNumber, ...(clientOrderId === '' ? [] : [clientOrderId]), maxPage + 1],
    );
    const { records, hasMore } = page(rows.map(messages.fromRow));
    const shown = records.map(({ number, receivedAtMs, traceParent, ...message }) => ({
      ...message,
      number: BigInt(number),
      receivedAt: timestampFromMs(receivedAtMs),
      traceparent: traceParent,
    }));
    return { messages: shown, hasMore };
  }

  /** The submissions above a number, with their notes. */
  async submissions(afterNumber: number, limit: number) {
    const rows = await this.database.read<SubmissionRow>(
      'SELECT number, client_id, note FROM submissions WHERE number > ? ORDER BY number LIMIT ?',
      [afterNumber, limit],
    );
    return rows.map((row) => ({ number: BigInt(row.number), clientId: row.client_id, note: row.note }));
  }

  /** The exchange's orders, in the order in which they came. */
  async orders(after: number, id: string) {
    const page = await listPage(this.database, orders, { key: 'client_order_id', call: Call.SUBMIT_ORDER, after, id });
    const shown = page.found.map(([order, timesReceived]) => ({
      sequence: BigInt(order.sequence),
      clientOrderId: order.clientOrderId,
      exchangeOrderId: order.exchangeOrderId,
      account: order.account,
      symbol: order.symbol,
      quantity: BigInt(order.quantity),
      filledQuantity: BigInt(order.filled),
      endedBy: order.endedBy,
      timesReceived,
    }));
    return { orders: shown, hasMore: page.hasMore };
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
