import { toJsonString } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { wrongText } from '../../gateway/trading/broker/rules.ts';
import { type Report, ReportKind, ReportSchema } from '../../gen/marina/broker/v1/orders_pb.ts';

const longestId = 64;
const highestPriceKobo = 10_000_000_000n;

/** Whether two reports say the same. */
export function isSameReport(one: Report, other: Report): boolean {
  return toJsonString(ReportSchema, one) === toJsonString(ReportSchema, other);
}

/** Returns the error in a report by itself, money apart. The gateway takes such a report for none. */
export function reportProblem(report: Report): string | undefined {
  const { number, clientOrderId, kind, at, exchangeOrderId } = report;
  if (number < 1n) return `its number is ${number}`;
  if (clientOrderId === '') return 'it names no order';
  if (kind === ReportKind.UNSPECIFIED) return 'it has no kind';
  if (at === undefined && kind === ReportKind.TRADE) return 'it is a trade and has no time';
  if (at !== undefined && !Number.isFinite(timestampMs(at))) return 'its time is none';
  if (exchangeOrderId.length > longestId) return `its exchange_order_id is longer than ${longestId}`;
  const field = wrongText(ReportSchema, report);
  return field === undefined ? undefined : `its ${field} is not printable`;
}

/** Returns the error in the numbers of a trade. */
export function tradeProblem({ kind, quantity, priceKobo }: Report): string | undefined {
  if (kind !== ReportKind.TRADE) {
    return quantity === 0n && priceKobo === 0n ? undefined : 'it is no trade, and has a quantity or a price';
  }
  if (quantity < 1n) return `${quantity} shares traded`;
  return priceKobo < 1n || priceKobo > highestPriceKobo ? `the price is ${priceKobo} kobo` : undefined;
}

/** Returns the error in the order of one order's reports. */
export function lifeProblem(reports: readonly Report[]): string | undefined {
  const [first, ...later] = reports;
  if (first === undefined) return undefined;
  if (first.kind !== ReportKind.ACCEPTED && first.kind !== ReportKind.REJECTED) {
    return `its first report is ${ReportKind[first.kind]}`;
  }
  if (later.some(({ kind }) => kind === ReportKind.ACCEPTED)) return 'it was accepted twice';
  const ends = reports.filter(({ kind }) =>
    [ReportKind.REJECTED, ReportKind.CANCELLED, ReportKind.EXPIRED].includes(kind),
  );
  if (ends.length > 1) return `it ended ${ends.length} times`;
  return first.kind === ReportKind.REJECTED && later.length > 0 ? 'it was rejected, and more came' : undefined;
}

/** How many shares of an order traded. */
export function tradedShares(reports: readonly Report[]): bigint {
  return reports.reduce((sum, { kind, quantity }) => (kind === ReportKind.TRADE ? sum + quantity : sum), 0n);
}
