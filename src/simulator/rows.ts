import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { RowDataPacket } from 'mysql2/promise';
import { type Instrument, InstrumentSchema, type Report, ReportSchema } from '../gen/marina/broker/v1/orders_pb.ts';
import type { InstrumentState, Order, OrderReport, PlannedStep } from './model.ts';

/** A value of a column. */
export type ColumnValue = string | number | null;

export const orderColumns =
  'sequence, client_order_id, exchange_order_id, account, symbol, side, type, time_in_force, quantity, price_kobo, ' +
  'filled, ended_by, expires_at_ms, plan, plan_at_ms, in_book, traded_on, traded_kobo';

export const reportColumns =
  'number, client_order_id, exchange_order_id, kind, at_ms, quantity, price_kobo, reject_reason';

export interface OrderRow extends RowDataPacket {
  sequence: number;
  client_order_id: string;
  exchange_order_id: string;
  account: string;
  symbol: string;
  side: number;
  type: number;
  time_in_force: number;
  quantity: number;
  price_kobo: number | null;
  filled: number;
  ended_by: number;
  expires_at_ms: number | null;
  plan: string | null;
  plan_at_ms: number | null;
  /** Null where it does not wait in a book, so that the index of those that do stays small. */
  in_book: 1 | null;
  traded_on: string | null;
  /** Beyond 2^53 the driver gives text. */
  traded_kobo: number | string;
}

export interface ReportRow extends RowDataPacket {
  number: number;
  client_order_id: string;
  exchange_order_id: string;
  kind: number;
  at_ms: number;
  quantity: number;
  price_kobo: number;
  reject_reason: number;
}

/** An order from its row. */
export function orderFromRow(row: OrderRow): Order {
  return {
    sequence: row.sequence,
    clientOrderId: row.client_order_id,
    exchangeOrderId: row.exchange_order_id,
    account: row.account,
    symbol: row.symbol,
    side: row.side,
    type: row.type,
    timeInForce: row.time_in_force,
    quantity: row.quantity,
    priceKobo: row.price_kobo,
    filled: row.filled,
    endedBy: row.ended_by,
    expiresAtMs: row.expires_at_ms,
    plan: row.plan === null ? [] : (JSON.parse(row.plan) as PlannedStep[]),
    planAtMs: row.plan_at_ms,
    inBook: row.in_book === 1,
    tradedOn: row.traded_on,
    tradedKobo: BigInt(row.traded_kobo),
  };
}

/** An order's values in the order of `orderColumns`. */
export function orderValues(order: Order): ColumnValue[] {
  return [
    order.sequence,
    order.clientOrderId,
    order.exchangeOrderId,
    order.account,
    order.symbol,
    order.side,
    order.type,
    order.timeInForce,
    order.quantity,
    order.priceKobo,
    order.filled,
    order.endedBy,
    order.expiresAtMs,
    order.plan.length === 0 ? null : JSON.stringify(order.plan),
    order.planAtMs,
    order.inBook ? 1 : null,
    order.tradedOn,
    order.tradedKobo.toString(),
  ];
}

/** A report from its row. */
export function reportFromRow(row: ReportRow): OrderReport {
  return {
    number: row.number,
    clientOrderId: row.client_order_id,
    exchangeOrderId: row.exchange_order_id,
    kind: row.kind,
    atMs: row.at_ms,
    quantity: row.quantity,
    priceKobo: row.price_kobo,
    rejectReason: row.reject_reason,
  };
}

/** A report's values in the order of `reportColumns`. */
export function reportValues(report: OrderReport): ColumnValue[] {
  return [
    report.number,
    report.clientOrderId,
    report.exchangeOrderId,
    report.kind,
    report.atMs,
    report.quantity,
    report.priceKobo,
    report.rejectReason,
  ];
}

/** A report as it goes over the wire. */
export function reportMessage(report: OrderReport): Report {
  return create(ReportSchema, {
    number: BigInt(report.number),
    clientOrderId: report.clientOrderId,
    exchangeOrderId: report.exchangeOrderId,
    kind: report.kind,
    at: timestampFromMs(report.atMs),
    quantity: BigInt(report.quantity),
    priceKobo: BigInt(report.priceKobo),
    rejectReason: report.rejectReason,
  });
}

/** An instrument as it goes over the wire. */
export function instrumentMessage(instrument: InstrumentState): Instrument {
  return create(InstrumentSchema, {
    symbol: instrument.symbol,
    name: instrument.name,
    kind: instrument.kind,
    lowerPriceKobo: BigInt(instrument.lowerKobo),
    upperPriceKobo: BigInt(instrument.upperKobo),
    lastPriceKobo: BigInt(instrument.lastKobo),
  });
}
