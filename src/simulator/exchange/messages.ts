import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type Instrument, InstrumentSchema, type Report, ReportSchema } from '../../gen/marina/broker/v1/orders_pb.ts';
import type { InstrumentState, OrderReport } from '../model.ts';

/** Converts a report to its message. */
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

/** Converts an instrument to its message. */
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
