import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  AccountRestrictionCode,
  AccountState,
  type ContractNote,
  type GetAccountStatusResponse,
  type GetBalanceResponse,
  type GetMarketResponse,
  type ListContractNotesResponse,
  type ListPositionsResponse,
  type ListTradesResponse,
  type ListTransactionsResponse,
  MarketSession,
  type Position,
  type Trade,
  type Transaction,
  TransactionType,
} from '../../../gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../../gen/marina/broker/v1/orders_pb.ts';
import { isDate, lagosDay } from '../../../kit/clock.ts';
import { isKoboDecimal } from '../../../kit/money.ts';
import type { Origin } from '../../edge/origin.ts';
import { forms } from './rules.ts';

/** The context of a read: its longest time, and its origin. */
export interface ReadTime {
  readonly timeoutMs: number;
  /** Undefined: it is the gateway's own. */
  readonly origin?: Origin | undefined;
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

export interface TransactionPlace {
  readonly bookedAtMs: number;
  readonly id: string;
}

/** An account's transactions between two days, of one type; unspecified: of all. */
export interface TransactionRange extends RecordRange<TransactionPlace> {
  readonly type: TransactionType;
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
const maxRestrictions = 100;
/** JSON numbers above it are not exact in every language. */
const largestKobo = BigInt(Number.MAX_SAFE_INTEGER);
const chnForm = /^[A-Za-z0-9-]{1,32}$/;
/** As in "A. O.". */
const initialsForm = /^\p{Lu}[\p{Lu}. ]{0,7}$/u;
/** The last instant of the year 9999. */
const lastMs = 253_402_300_799_999;

/** Whether an answer is the balance of the requested account. */
export function isBalance(balance: GetBalanceResponse, account: string): boolean {
  const { settledKobo, unsettledKobo, withdrawableKobo } = balance;
  const isSettlement = [settledKobo, unsettledKobo, withdrawableKobo].every(
    (kobo) => kobo === undefined || isKobo(kobo),
  );
  return (
    balance.account === account &&
    balance.pendingDebitsKobo >= 0n &&
    isSettlement &&
    isWithdrawable(withdrawableKobo, settledKobo) &&
    isInstantOrNone(balance.asOf)
  );
}

/** Whether an answer is the status of the requested account. A later version of the broker may have more states. */
export function isAccountStatus(answer: GetAccountStatusResponse, account: string): boolean {
  const { state, restrictions, chn } = answer;
  return (
    answer.account === account &&
    state !== AccountState.UNSPECIFIED &&
    restrictions.length <= maxRestrictions &&
    (state !== AccountState.ACTIVE || restrictions.length === 0) &&
    (state !== AccountState.RESTRICTED || restrictions.length > 0) &&
    restrictions.every(
      ({ code, forbids, since }) =>
        code !== AccountRestrictionCode.UNSPECIFIED &&
        forbids.length > 0 &&
        new Set(forbids).size === forbids.length &&
        !forbids.includes(0) &&
        isInstantOrNone(since),
    ) &&
    (chn === '' || chnForm.test(chn)) &&
    isInstantOrNone(answer.asOf)
  );
}

/** Whether a text can be the initials of a person, and is no name in full; empty: the broker does not give them. */
export function isInitialsOrNone(text: string): boolean {
  return text === '' || initialsForm.test(text);
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

/** Whether an answer is the requested page of transactions. Without a type they must add up. */
export function isTransactionsPage(page: ListTransactionsResponse, range: TransactionRange): boolean {
  const addUp = page.transactions.every((transaction, at) => {
    const newer = page.transactions[at - 1];
    return newer === undefined || newer.balanceKobo - newer.amountKobo === transaction.balanceKobo;
  });
  return isTransactionsList(page, range) && (addUp || range.type !== TransactionType.UNSPECIFIED);
}

/** Whether an answer is the requested page of transactions, whether they add up or not. */
export function isTransactionsList(page: ListTransactionsResponse, range: TransactionRange): boolean {
  const { transactions } = page;
  if (!isPage(page, range.account, transactions.length, range.limit) || page.inRange < transactions.length)
    return false;
  const isOfType = ({ type }: Transaction) => range.type === TransactionType.UNSPECIFIED || type === range.type;
  return transactions.every((transaction, at) => {
    const [place, newer] = [placeOfTransaction(transaction), transactions[at - 1]];
    const before = newer === undefined ? range.after : placeOfTransaction(newer);
    const isInOrder = before === undefined || isOlder(place.bookedAtMs, before.bookedAtMs, place.id, before.id);
    const isRight = isTransaction(transaction) && isOfType(transaction);
    return isInOrder && isRight && isWithin(range, transactionDate(transaction));
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

/** A transaction's position in the list of transactions. */
export function placeOfTransaction({ id, bookedAt }: Transaction): TransactionPlace {
  return { id, bookedAtMs: bookedAt === undefined ? 0 : timestampMs(bookedAt) };
}

/** The Lagos day on which a transaction was booked. */
export function transactionDate(transaction: Transaction): string {
  return lagosDay(placeOfTransaction(transaction).bookedAtMs);
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
  const { quantity, priceKobo, averageCostKoboDecimal: cost, settledQuantity = 0n, availableQuantity = 0n } = position;
  return (
    isCount(settledQuantity) &&
    isCount(availableQuantity) &&
    availableQuantity <= quantity &&
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
    (trade.settlementDate === '' || (isDate(trade.settlementDate) && trade.settlementDate >= tradeDate(trade))) &&
    isDeal(trade)
  );
}

function isTransaction(transaction: Transaction): boolean {
  const { id, type, amountKobo, balanceKobo, symbol, quantity, reverses, settlementDate, bookedAt } = transaction;
  return (
    forms.recordId.test(id) &&
    // A later version of the broker may have more types.
    type !== TransactionType.UNSPECIFIED &&
    amountKobo !== 0n &&
    [amountKobo, balanceKobo, quantity ?? 0n].every(isKobo) &&
    quantity !== 0n &&
    (symbol === '' || forms.symbol.test(symbol)) &&
    [transaction.trade, transaction.contractNote, reverses].every(
      (other) => other === '' || forms.recordId.test(other),
    ) &&
    reverses !== id &&
    (settlementDate === '' || isDate(settlementDate)) &&
    bookedAt !== undefined &&
    isInstantOrNone(bookedAt)
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

function isWithdrawable(kobo: bigint | undefined, settledKobo: bigint | undefined): boolean {
  if (kobo === undefined) return true;
  return kobo >= 0n && (settledKobo === undefined || kobo === 0n || kobo <= settledKobo);
}

/** Whether an amount, of either sign, is exact everywhere. */
function isKobo(kobo: bigint): boolean {
  return kobo >= -largestKobo && kobo <= largestKobo;
}

function isCount(count: bigint): boolean {
  return count >= 0n && count <= largestKobo;
}

function isInstantOrNone(at: Timestamp | undefined): boolean {
  return at === undefined || isInstant(timestampMs(at));
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
