import { type ExportPartnerFiguresRequest, ReportPeriod } from '../../../../gen/marina/admin/v1/reports_pb.ts';
import type { Database } from '../../../store/database.ts';
import type { WalletSums } from '../../../trading/wallet/rules.ts';
import type { AdminCall } from '../call.ts';
import { invalidField } from '../errors.ts';
import { askedDays, type Days, eachOf, maxDays } from './days.ts';
import { firstEntryAt, readHead, sumsAt } from './ledger-part.ts';
import { partnersOf } from './partners.ts';
import type { ReportForm, ReportsUnderWay } from './parts.ts';
import {
  addCarriedTrades,
  addTo,
  addTrades,
  noTrades,
  plus,
  type Sums,
  sumEntries,
  sumObjects,
  type TradeDays,
  type TradeSum,
} from './sums.ts';

interface WalletAt extends WalletSums {
  readonly lastSequence: bigint;
}

interface WalletFigures {
  readonly opening: WalletAt;
  readonly entries: Sums;
  readonly closing: WalletAt;
}

/** The figures of a partner in a period. */
interface PartnerFigures {
  readonly partnerId: string;
  readonly firstDay: string;
  readonly lastDay: string;
  readonly orders: Sums;
  readonly trades: TradeSum;
  readonly allocations: Sums;
  readonly withdrawals: Sums;
  readonly wallet: WalletFigures | undefined;
}

/** The most days of a report by month. */
const maxDaysByMonth = 366;

const form: ReportForm<PartnerFigures, object> = {
  columns: ['partner_id', 'first_day', 'last_day', 'subject', 'name', 'count', 'quantity', 'kobo'],
  toLines: toCsv,
  toMessage: (lines) => ({ figures: lines.map(toMessage) }),
};

/** The operators' call that exports what each partner did in each day or month. */
export function figureReports(database: Database, underWay: ReportsUnderWay) {
  async function* pages(request: ExportPartnerFiguresRequest, signal: AbortSignal): AsyncGenerator<PartnerFigures[]> {
    if (!(request.period in ReportPeriod)) throw invalidField('period', 'is not known.');
    const isByMonth = request.period === ReportPeriod.MONTH;
    const days = askedDays(request, isByMonth ? maxDaysByMonth : maxDays);
    for await (const partnerId of partnersOf(database, request.partnerId, signal)) {
      let sum: PartnerFigures | undefined;
      for await (const figures of figuresOf(database, partnerId, days, signal)) {
        const isSame = isByMonth && sum?.firstDay.slice(0, 7) === figures.firstDay.slice(0, 7);
        if (!isSame && sum !== undefined) yield [sum].filter(isOfUse);
        sum = isSame && sum !== undefined ? added(sum, figures) : figures;
      }
      if (sum !== undefined) yield [sum].filter(isOfUse);
    }
  }

  return {
    exportPartnerFigures: (request: ExportPartnerFiguresRequest, call: AdminCall, signal: AbortSignal) =>
      underWay.messages(call, request.format, form, signal, (ending) => pages(request, ending)),
  };
}

/** A partner's figures of each day. The trades of a day are complete when the orders of that day have been read. */
async function* figuresOf(
  database: Database,
  partnerId: string,
  days: Days,
  signal: AbortSignal,
): AsyncGenerator<PartnerFigures> {
  const trades: TradeDays = new Map();
  await addCarriedTrades(database, partnerId, days, trades, signal);
  if (signal.aborted) return;
  const head = await readHead(database, partnerId);
  const last = head?.lastSequence ?? 0n;
  let first = await firstEntryAt(database, partnerId, days.from, { from: 1n, last });
  let opening = await walletAt(database, partnerId, first - 1n);
  for (const day of eachOf(days)) {
    if (signal.aborted) return;
    await addTrades(database, partnerId, day, days, trades);
    const end = await firstEntryAt(database, partnerId, day.until, { from: first, last });
    const closing = end === first ? opening : await walletAt(database, partnerId, end - 1n);
    yield {
      ...{ partnerId, firstDay: day.first, lastDay: day.first },
      orders: await sumObjects(database, partnerId, 'ord', day),
      trades: trades.get(day.first) ?? noTrades,
      allocations: await sumObjects(database, partnerId, 'alc', day),
      withdrawals: await sumObjects(database, partnerId, 'wdr', day),
      wallet:
        end === 1n ? undefined : { opening, closing, entries: await sumEntries(database, partnerId, { first, end }) },
    };
    trades.delete(day.first);
    [first, opening] = [end, closing];
  }
}

async function walletAt(database: Database, partnerId: string, sequence: bigint): Promise<WalletAt> {
  return { lastSequence: sequence, ...(await sumsAt(database, partnerId, sequence)) };
}

/** The figures of a period and of the one after it. */
function added(one: PartnerFigures, next: PartnerFigures): PartnerFigures {
  return {
    ...one,
    lastDay: next.lastDay,
    orders: merged(one.orders, next.orders),
    trades: plus(one.trades, next.trades),
    allocations: merged(one.allocations, next.allocations),
    withdrawals: merged(one.withdrawals, next.withdrawals),
    wallet:
      one.wallet === undefined || next.wallet === undefined
        ? next.wallet
        : {
            opening: one.wallet.opening,
            entries: merged(one.wallet.entries, next.wallet.entries),
            closing: next.wallet.closing,
          },
  };
}

function merged(one: Sums, other: Sums): Sums {
  const sums: Sums = new Map(one);
  for (const [name, sum] of other) addTo(sums, name, sum);
  return sums;
}

/** Whether anything happened, or there is money. */
function isOfUse({ orders, trades, allocations, withdrawals, wallet }: PartnerFigures): boolean {
  const { closing, entries } = wallet ?? {};
  const hasMoney = closing !== undefined && closing.availableKobo + closing.reservedKobo + closing.postedKobo > 0n;
  const isQuiet = [orders, allocations, withdrawals, entries].every((sums) => (sums?.size ?? 0) === 0);
  return hasMoney || !isQuiet || trades.count > 0n || trades.quantity !== 0n || trades.kobo !== 0n;
}

function toMessage({ partnerId, firstDay, lastDay, trades, wallet, ...sums }: PartnerFigures) {
  const states = (of: Sums) =>
    sorted(of).map(([state, { count, kobo }]) => ({ state, count, valueKoboDecimal: kobo.toString() }));
  return {
    ...{ partnerId, firstDay, lastDay },
    orders: states(sums.orders),
    trades: {
      count: trades.count,
      quantityDecimal: trades.quantity.toString(),
      valueKoboDecimal: trades.kobo.toString(),
    },
    allocations: states(sums.allocations),
    withdrawals: states(sums.withdrawals),
    wallet: wallet && {
      opening: { partnerId, ...wallet.opening },
      entries: sorted(wallet.entries).map(([type, { count, kobo }]) => ({
        ...{ type, count },
        amountKoboDecimal: kobo.toString(),
      })),
      closing: { partnerId, ...wallet.closing },
    },
  };
}

/** A line for each figure, so that states and types of any version have their line. */
function toCsv({ partnerId, firstDay, lastDay, trades, wallet, ...sums }: PartnerFigures): string[][] {
  const line = (subject: string, name: string, count: bigint | '', quantity: bigint | '', kobo: bigint) => [
    ...[partnerId, firstDay, lastDay, subject, name],
    ...[count, quantity, kobo].map(String),
  ];
  const states = (subject: string, of: Sums) =>
    sorted(of).map(([name, { count, kobo }]) => line(subject, name, count, '', kobo));
  const walletLines = (subject: string, at: WalletSums) => [
    line(subject, 'available', '', '', at.availableKobo),
    line(subject, 'reserved', '', '', at.reservedKobo),
    line(subject, 'posted', '', '', at.postedKobo),
  ];
  return [
    ...states('orders', sums.orders),
    line('trades', 'traded', trades.count, trades.quantity, trades.kobo),
    ...states('allocations', sums.allocations),
    ...states('withdrawals', sums.withdrawals),
    ...(wallet === undefined
      ? []
      : [
          ...walletLines('opening', wallet.opening),
          ...states('entries', wallet.entries),
          ...walletLines('closing', wallet.closing),
        ]),
  ];
}

function sorted(sums: Sums) {
  return [...sums].toSorted(([one], [other]) => (one < other ? -1 : 1));
}
