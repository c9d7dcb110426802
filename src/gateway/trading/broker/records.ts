import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  Accounts,
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
import {
  type Lga,
  type ListedInstrument,
  type MarketDay,
  Reference,
  type State,
} from '../../../gen/marina/broker/v1/reference_pb.ts';
import { isDate, lagosDay } from '../../../kit/clock.ts';
import { isKoboDecimal } from '../../../kit/money.ts';
import type { Origin } from '../../edge/origin.ts';
import { BrokerConnection, type BrokerOptions } from './connection.ts';
import { isDaysOf, isInstrumentList } from './market.ts';

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
interface PositionsRange {
  readonly afterSymbol: string;
  readonly limit: number;
}

/**
 * Reads the broker's records, over connections of its own. Each read throws `exchange_unavailable`, or `exchange_error`
 * if the answer makes no sense; reads of an account also throw `account_not_at_broker`.
 */
export class RecordsBroker {
  readonly #accounts: BrokerConnection<typeof Accounts>;
  readonly #reference: BrokerConnection<typeof Reference>;

  constructor(options: BrokerOptions) {
    this.#accounts = new BrokerConnection(Accounts, 'broker', options);
    this.#reference = new BrokerConnection(Reference, 'broker', options);
  }

  balance(account: string, time: ReadTime): Promise<GetBalanceResponse> {
    return this.#accounts.read('getBalance', { account }, time, 'account_not_at_broker', (answer) =>
      isBalance(answer, account),
    );
  }

  positions(account: string, range: PositionsRange, time: ReadTime): Promise<ListPositionsResponse> {
    return this.#accounts.read('listPositions', { account, ...range }, time, 'account_not_at_broker', (answer) =>
      isPositionsPage(answer, account, range),
    );
  }

  trades(range: RecordRange<TradePlace>, time: ReadTime): Promise<ListTradesResponse> {
    const { account, from: fromDate, to: toDate, limit } = range;
    const after = range.after && { executedAt: timestampFromMs(range.after.executedAtMs), id: range.after.id };
    const request = { account, fromDate, toDate, limit, after };
    return this.#accounts.read('listTrades', request, time, 'account_not_at_broker', (answer) =>
      isTradesPage(answer, range),
    );
  }

  contractNotes(range: RecordRange<ContractNotePlace>, time: ReadTime): Promise<ListContractNotesResponse> {
    const { account, from: fromDate, to: toDate, limit, after } = range;
    const request = { account, fromDate, toDate, limit, after };
    return this.#accounts.read('listContractNotes', request, time, 'account_not_at_broker', (answer) =>
      isNotesPage(answer, range),
    );
  }

  market(time: ReadTime): Promise<GetMarketResponse> {
    return this.#accounts.read('getMarket', {}, time, 'exchange_error', isMarket);
  }

  async states(time: ReadTime): Promise<readonly State[]> {
    const isList = ({ states }: { readonly states: readonly State[] }) => isAreaList(states, 32);
    return (await this.#reference.read('listStates', {}, time, 'exchange_error', isList)).states;
  }

  /** Throws `not_found` for an unknown state. */
  async lgas(state: string, time: ReadTime): Promise<readonly Lga[]> {
    const isList = ({ lgas }: { readonly lgas: readonly Lga[] }) => isAreaList(lgas, 64);
    return (await this.#reference.read('listLgas', { state }, time, 'not_found', isList)).lgas;
  }

  /** Everything that the exchange lists, by symbol. */
  async instruments(time: ReadTime): Promise<readonly ListedInstrument[]> {
    const isList = ({ instruments }: { readonly instruments: readonly ListedInstrument[] }) =>
      isInstrumentList(instruments);
    return (await this.#reference.read('listInstruments', {}, time, 'exchange_error', isList)).instruments;
  }

  /** The days of the calendar from one to another, at most `maxMarketDays`; fewer if the calendar ends before. */
  async marketDays(from: string, to: string, time: ReadTime): Promise<readonly MarketDay[]> {
    const isList = ({ days }: { readonly days: readonly MarketDay[] }) => isDaysOf(days, from, to);
    const asked = { fromDate: from, toDate: to };
    return (await this.#reference.read('listMarketDays', asked, time, 'exchange_error', isList)).days;
  }

  close(): void {
    this.#accounts.close();
    this.#reference.close();
  }
}

/** The members of a page besides its records. */
interface Page {
  readonly account: string;
  readonly hasMore: boolean;
}

const name = /^\P{C}{1,200}$/u;
const recordId = /^[A-Za-z0-9-]{1,64}$/;
const symbolCode = /^[A-Z0-9.-]{1,20}$/;
const areaCode = /^[A-Z0-9-]+$/;
const maxAreas = 1_000;
/** The last instant of the year 9999. */
const lastMs = 253_402_300_799_999;

/** Whether an answer is the balance of the requested account. */
function isBalance(balance: GetBalanceResponse, account: string): boolean {
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
function isMarket({ session, nextOpenAt, nextCloseAt }: GetMarketResponse): boolean {
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
    areas.every((area) => area.code.length <= maxCodeLength && areaCode.test(area.code) && name.test(area.name))
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
    symbolCode.test(position.symbol) &&
    name.test(position.name) &&
    quantity > 0n &&
    priceKobo > 0n &&
    position.marketValueKobo === quantity * priceKobo &&
    isKoboDecimal(cost) &&
    !cost.startsWith('-')
  );
}

function isTrade(trade: Trade): boolean {
  return (
    recordId.test(trade.id) &&
    trade.executedAt !== undefined &&
    isInstant(placeOfTrade(trade).executedAtMs) &&
    isDeal(trade)
  );
}

function isNote(note: ContractNote): boolean {
  const charges = [note.commissionKobo, note.statutoryFeesKobo, note.otherFeesKobo];
  return (
    recordId.test(note.ticket) &&
    name.test(note.name) &&
    isDeal(note) &&
    charges.every((charge) => charge >= 0n) &&
    isDate(note.tradeDate) &&
    isDate(note.transactionDate) &&
    note.transactionDate >= note.tradeDate
  );
}

function isDeal({ symbol, side, quantity, priceKobo, amountKobo }: Deal): boolean {
  return (
    symbolCode.test(symbol) &&
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
