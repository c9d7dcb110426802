import { isPrintableAscii } from '../../kit/printable.ts';
import { answersQuestion, type ExchangeMessage, execIdOf, namelessId, wholeOf } from '../orders/execution.ts';
import { orderIdOfName } from '../orders/names.ts';
import type { Field } from '../wire/message.ts';
import { messageTypes, tags } from '../wire/tags.ts';
import { readUtcTimestamp } from '../wire/times.ts';
import type { DropCopyTrade } from './table.ts';

/** A row of the drop copy as a message brings it. `reportRefId` is the TradeReportID of the trade that it changes; empty: none. */
export type ReadTrade = Omit<DropCopyTrade, 'id' | 'at' | 'compared'> & { readonly reportRefId: string };

type Kind = DropCopyTrade['kind'];

/** ExecType (150) of a trade, and of what takes one back or corrects it. 1 and 2 are those of FIX 4.2. */
const kindsOfExecType: Readonly<Record<string, Kind | undefined>> = {
  F: 'trade',
  '1': 'trade',
  '2': 'trade',
  H: 'cancelled',
  G: 'corrected',
};
/** TradeReportTransType (487). Reversals and cancels by the back office take a trade back too. */
const kindsOfTransType: Readonly<Record<string, Kind | undefined>> = {
  '0': 'trade',
  '1': 'cancelled',
  '2': 'corrected',
  '4': 'cancelled',
  '5': 'cancelled',
};
const newTrade = '0';
/** The longest id that the tables keep. */
const longestId = 64;
/** The longest Side (54) that the tables keep: it has one character. */
const longestSide = 8;
/** A time outside of these is a mistake. */
const [earliest, latest] = [Date.UTC(2000), Date.UTC(2200)];

/**
 * The trades that a message of the drop copy brings, takes back or corrects: one of an ExecutionReport, one for each side of a
 * TradeCaptureReport.
 */
export function tradesIn(message: ExchangeMessage, toKobo: (text: string) => bigint | undefined): readonly ReadTrade[] {
  const kind = kindOf(message);
  if (kind === undefined) return [];
  const isReport = message.type === messageTypes.ExecutionReport;
  const isBust = kind === 'cancelled';
  const idOf = (tag: number) => kept(message.get(tag) ?? '');
  const terms = {
    kind,
    execId: execIdOf(message) ?? namelessId(message),
    execRefId: kind === 'trade' ? '' : idOf(tags.ExecRefID),
    reportId: isReport ? '' : idOf(tags.TradeReportID),
    reportRefId: isReport || kind === 'trade' ? '' : idOf(tags.TradeReportRefID),
    quantity: isBust ? 0n : (wholeOf(message.get(tags.LastQty)) ?? 0n),
    priceKobo: isBust ? 0n : (toKobo(message.get(tags.LastPx) ?? '') ?? 0n),
    symbol: within(longestId, message.get(tags.Symbol)),
    tradedAt: tradedAt(kind, message) ?? null,
  };
  if (isReport) return [{ ...terms, ...orderOf((tag) => message.get(tag)) }];
  return sidesOf(message).map((side) => ({ ...terms, ...orderOf((tag) => side.find(([each]) => each === tag)?.[1]) }));
}

/** When a trade happened. The times of what takes it back or corrects it are later; only TradeDate is then the trade's. */
function tradedAt(kind: Kind, message: ExchangeMessage): number | undefined {
  const times = [tags.TransactTime, tags.OrigSendingTime, tags.SendingTime].map((tag) =>
    readUtcTimestamp(message.get(tag)),
  );
  const known = kind === 'trade' ? [times[0], dayOf(message), ...times] : [dayOf(message)];
  return known.find((at) => at !== undefined && at >= earliest && at < latest);
}

/** The noon in Lagos of TradeDate (75). */
function dayOf(message: ExchangeMessage): number | undefined {
  const date = message.get(tags.TradeDate);
  return date === undefined ? undefined : readUtcTimestamp(`${date}-11:00:00`);
}

function kindOf(message: ExchangeMessage): Kind | undefined {
  if (message.type === messageTypes.TradeCaptureReport) {
    return kindsOfTransType[message.get(tags.TradeReportTransType) ?? newTrade];
  }
  if (message.type !== messageTypes.ExecutionReport || answersQuestion(message)) return undefined;
  return kindsOfExecType[message.get(tags.ExecType) ?? ''];
}

/** The fields of each side, which Side begins. Where there is no group of sides, the message is one. */
function sidesOf({ fields = [] }: ExchangeMessage): readonly (readonly Field[])[] {
  const group = fields.findIndex(([tag]) => tag === tags.NoSides);
  if (group < 0) return [fields];
  const starts = fields.flatMap(([tag], at) => (tag === tags.Side && at > group ? [at] : []));
  return starts.map((start, nth) => fields.slice(start, starts[nth + 1]));
}

function orderOf(get: (tag: number) => string | undefined) {
  const name = get(tags.ClOrdID) ?? get(tags.OrigClOrdID);
  return {
    named: kept(name === undefined ? '' : orderIdOfName(name)),
    exchangeOrderId: kept(get(tags.OrderID) ?? ''),
    side: within(longestSide, get(tags.Side)),
  };
}

/** A longer id is none of ours, and neither is one that is not printable. */
function kept(id: string): string {
  return isPrintableAscii(id, longestId) ? id : '';
}

/** A symbol or a side, empty if it is not stated. One that is longer, or not printable, is that of no order of ours. */
function within(maxLength: number, text = ''): string {
  return isPrintableAscii(text, maxLength) ? text : '?';
}
