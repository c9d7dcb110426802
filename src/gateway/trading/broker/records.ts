import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type ContractNote,
  type GetBalanceResponse,
  type GetMarketResponse,
  type ListContractNotesResponse,
  type ListPositionsResponse,
  type ListTradesResponse,
  MarketSession,
  type Position,
  type Trade,
} from '../../../gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../../gen/marina/broker/v1/orders_pb.ts';
import { isDate, lagosDay } from '../../../kit/clock.ts';
import { isKoboDecimal } from '../../../kit/money.ts';
import type { Origin } from '../../edge/origin.ts';
import { forms } from './rules.ts';

/** The context of a read: its longest time, and its origin. */
export interface ReadTime {
  readonly timeoutMs: number;
  readonly origin: Origin;
}

/** An account's records between two Lagos days, both YYYY-MM-DD, from a position on. */
export interface RecordRange<Place> {
  readonly account: string;
  readonly from: string;
  readonly to: string;
  /** Only the records after it; undefined: from the newest. */
  readonly after: Place | undefined;
  /** The largest page, 1 to 100. */
  readonly limit: number;
}

export interface TradePlace {
  readonly executedAtMs: number;
  readonly id: string;
}

export interface ContractNotePlace {
  readonly tradeDate: string;
  readonly ticket: string;
}

/** The positions after a symbol, at most `limit`. */
export interface PositionsRange {
  readonly afterSymbol: string;
  readonly limit: number;
}

/** The members of a page besides its records. */
interface Page {
  readonly account: string;
  readonly hasMore: boolean;
}

const areaCode = /^[A-Z0-9-]+$/;
const maxAreas = 1_000;
/** The last instant of the year 9999. */
const lastMs = 253_402_300_799_999;

/** Whether an answer is the balance of the requested account. */
export function isBalance(balance: GetBalanceResponse, account: string): boolean {
  return balance.account === account && balance.pendingDebitsKobo >= 0n;
}

/** Whether an answer is the requested page of positions. */
export function isPositionsPage(
  page: ListPositionsResponse,
  account: string,
  { afterSymbol, limit }: PositionsRange,
): boolean {
  const { positions } = page;
  const isInOrder = positions.every(({ symbol }, at) => symbol > (positions[at - 1]?.symbol ?? afterSymbol));
  return isPage(page, account, positions.length, limit) && isInOrder && positions.every(isPosition);
}

/** Whether an answer is the requested page of trades. */
export function isTradesPage(page: ListTradesResponse, range: RecordRange<TradePlace>): boolean {
  const { trades } = page;
  if (!isPage(page, range.account, trades.length, range.limit) || page.inRange < trades.length) return false;
  return trades.every((trade, at) => {
    const [place, earlier] = [placeOfTrade(trade), trades[at - 1]];
    const before = earlier === undefined ? range.after : placeOfTrade(earlier);
    const isInOrder = before === undefined || isOlder(place.executedAtMs, before.executedAtMs, place.id, before.id);
    return isInOrder && isTrade(trade) && isWithin(range, tradeDate(trade));
  });
}

/** Whether an answer is the requested page of contract notes. */
export function isNotesPage(page: ListContractNotesResponse, range: RecordRange<ContractNotePlace>): boolean {
  const { notes } = page;
  if (!isPage(page, range.account, notes.length, range.limit) || page.inRange < notes.length) return false;
  return notes.every((note, at) => {
    const before = notes[at - 1] ?? range.after;
    const isInOrder = before === undefined || isOlder(note.tradeDate, before.tradeDate, note.ticket, before.ticket);
    return isInOrder && isNote(note) && isWithin(range, note.tradeDate);
  });
}

/** Whether an answer states the exchange's session. A later version of the broker may have more sessions. */
export function isMarket({ session, nextOpenAt, nextCloseAt }: GetMarketResponse): boolean {
  return (
    session !== MarketSession.UNSPECIFIED &&
    [nextOpenAt, nextCloseAt].every((at) => at === undefined || isInstant(timestampMs(at)))
  );
}

/** Whether an answer is a list of areas, each with its own code and a name. */
export function isAreaList(
  areas: readonly { readonly code: string; readonly name: string }[],
  maxCodeLength: number,
): boolean {
  return (
    areas.length > 0 &&
    areas.length <= maxAreas &&
    new Set(areas.map(({ code }) => code)).size === areas.length &&
    areas.every((area) => area.code.length <= maxCodeLength && areaCode.test(area.code) && forms.name.test(area.name))
  );
}

/** A trade's position in the list of trades. */
export function placeOfTrade({ id, executedAt }: Trade): TradePlace {
  return { id, executedAtMs: executedAt === undefined ? 0 : timestampMs(executedAt) };
}

/** The Lagos day of a trade. */
export function tradeDate(trade: Trade): string {
  return lagosDay(placeOfTrade(trade).executedAtMs);
}

function isPage({ account, hasMore }: Page, expected: string, length: number, limit: number): boolean {
  // A page that is not full but promises more would make readers ask for ever.
  return account === expected && length <= limit && (!hasMore || length === limit);
}

function isWithin({ from, to }: RecordRange<unknown>, day: string): boolean {
  return day >= from && day <= to;
}

function isOlder<T extends number | string>(one: T, before: T, id: string, beforeId: string): boolean {
  return one < before || (one === before && id < beforeId);
}

function isPosition(position: Position): boolean {
  const { quantity, priceKobo, averageCostKoboDecimal: cost } = position;
  return (
    forms.symbol.test(position.symbol) &&
    forms.name.test(position.name) &&
    quantity > 0n &&
    priceKobo > 0n &&
    position.marketValueKobo === quantity * priceKobo &&
    isKoboDecimal(cost) &&
    !cost.startsWith('-')
  );
}

function isTrade(trade: Trade): boolean {
  return (
    forms.recordId.test(trade.id) &&
    trade.executedAt !== undefined &&
    isInstant(placeOfTrade(trade).executedAtMs) &&
    isDeal(trade)
  );
}

function isNote(note: ContractNote): boolean {
  const charges = [note.commissionKobo, note.statutoryFeesKobo, note.otherFeesKobo];
  return (
    forms.recordId.test(note.ticket) &&
    forms.name.test(note.name) &&
    isDeal(note) &&
    charges.every((charge) => charge >= 0n) &&
    isDate(note.tradeDate) &&
    isDate(note.transactionDate) &&
    note.transactionDate >= note.tradeDate
  );
}

function isDeal({ symbol, side, quantity, priceKobo, amountKobo }: Deal): boolean {
  return (
    forms.symbol.test(symbol) &&
    // A later version of the broker may have more sides.
    side !== Side.UNSPECIFIED &&
    quantity > 0n &&
    priceKobo > 0n &&
    amountKobo === quantity * priceKobo
  );
}

function isInstant(ms: number): boolean {
  return ms >= 0 && ms <= lastMs;
}

interface Deal {
  readonly symbol: string;
  readonly side: Side;
  readonly quantity: bigint;
  readonly priceKobo: bigint;
  readonly amountKobo: bigint;
}
