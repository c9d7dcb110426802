import { createHash } from 'node:crypto';
import type { BreakKind } from '../../../gen/marina/admin/v1/reconciliation_pb.ts';
import { daysBefore, lagosDay, nextLagosMidnight } from '../../../kit/clock.ts';
import type { EnumName } from '../../../kit/enums.ts';
import { groupBy } from '../../../kit/group.ts';

export type BreakKindName = EnumName<typeof BreakKind>;

/** A difference that a comparison found. */
export interface Difference {
  readonly kind: BreakKindName;
  /** Empty when it is not known. */
  readonly partnerId: string;
  readonly objectId: string;
  readonly account: string;
  readonly symbol: string;
  readonly ours: string;
  readonly brokers: string;
  readonly isUnsettled: boolean;
  /** What tells it apart from others of its kind, object, account and symbol. */
  readonly subject: string;
}

/** A trade on either side. */
export interface TradeFacts {
  /** Ours: the number of its report. The broker's: account and id. */
  readonly key: string;
  readonly quantity: bigint;
  readonly priceKobo: bigint;
  readonly at: number;
  /** Ours: the step of the history with it. */
  readonly step?: number;
}

/** The trades of one order. Beyond `maxTrades` only their sums are known. */
export interface Trades {
  readonly listed: readonly TradeFacts[];
  readonly count: number;
  readonly quantity: bigint;
  readonly valueKobo: bigint;
}

/** The terms of an order, as both sides have them. */
interface OrderTerms {
  readonly account: string;
  readonly symbol: string;
  readonly side: string;
  readonly quantity: bigint;
  /** Null: it never had one, or it is not known. */
  readonly exchangeOrderId: string | null;
  /** At the end of the period. */
  readonly filledQuantity: bigint;
}

/** An order of the gateway at the end of the period. */
export interface OurOrder extends OrderTerms {
  readonly partnerId: string;
  readonly state: string;
  readonly isUnsettled: boolean;
  /** Other states that it can have had then, because the broker does not know when it left them or entered them. */
  readonly possibleStates?: readonly string[];
  /** The broker reported something about it in the period. */
  readonly isReported: boolean;
  /** Those of the period. */
  readonly trades: Trades;
}

/** An order of the statement. */
export interface StatedOrder extends OrderTerms {
  readonly state: string;
}

/** How many trades of an order are compared one by one. */
export const maxTrades = 5_000;

export const noTrades: Trades = { listed: [], count: 0, quantity: 0n, valueKobo: 0n };

/** The trades with one more. */
export function withTrade({ listed, count, quantity, valueKobo }: Trades, trade: TradeFacts): Trades {
  return {
    listed: count < maxTrades ? [...listed, trade] : listed,
    count: count + 1,
    quantity: quantity + trade.quantity,
    valueKobo: valueKobo + trade.quantity * trade.priceKobo,
  };
}

/** What an operator's settlement made of an earlier trade. */
interface ChangedTrade extends Pick<TradeFacts, 'quantity' | 'priceKobo'> {
  /** The step with the trade. */
  readonly step: number;
  readonly filledChange: bigint;
  readonly valueChangeKobo: bigint;
}

/** The trades after one of them was changed. One of an earlier period is not among them, and changes nothing here. */
export function withChangedTrade(trades: Trades, changed: ChangedTrade): Trades {
  const { step, quantity, priceKobo } = changed;
  const before = trades.listed.find((trade) => trade.step === step);
  // Of trades beyond the listed ones only the sums are known.
  if (before === undefined && trades.count <= maxTrades) return trades;
  const difference =
    before === undefined
      ? { quantity: changed.filledChange, valueKobo: changed.valueChangeKobo }
      : { quantity: quantity - before.quantity, valueKobo: quantity * priceKobo - before.quantity * before.priceKobo };
  return {
    listed: trades.listed.flatMap((trade) =>
      trade !== before ? [trade] : quantity === 0n ? [] : [{ ...trade, quantity, priceKobo }],
    ),
    count: quantity === 0n ? trades.count - 1 : trades.count,
    quantity: trades.quantity + difference.quantity,
    valueKobo: trades.valueKobo + difference.valueKobo,
  };
}

/** A side that has no such record. */
export const nothing = 'nothing';

/** Compares what the two sides have of one order. `account` is that of the statement's records, for an unknown order. */
export function compareOrder(
  objectId: string,
  ours: OurOrder | undefined,
  stated: StatedOrder | undefined,
  trades: Trades,
  account: { readonly account: string; readonly symbol: string },
): Difference[] {
  const about = (from: OrderTerms | undefined) => ({
    partnerId: ours?.partnerId ?? '',
    objectId,
    account: from?.account ?? account.account,
    symbol: from?.symbol ?? account.symbol,
    isUnsettled: ours?.isUnsettled ?? false,
    subject: '',
  });
  const found: Difference[] = [];
  const base = about(ours ?? stated);
  const add = (kind: BreakKindName, our: string, brokers: string) => {
    found.push({ ...base, kind, ours: our, brokers });
  };
  if (ours === undefined) {
    if (stated !== undefined) add('order_extra', nothing, shownOrder(stated));
    return [...found, ...compareTrades(base, noTrades, trades)];
  }
  if (ours.isUnsettled) {
    if (stated === undefined && trades.count === 0) return [];
    const brokers = stated === undefined ? `${trades.count} trades` : shownOrder(stated);
    return [{ ...base, kind: 'order_state', ours: ours.state, brokers }];
  }
  if (stated === undefined) {
    if (ours.isReported) add('order_missing', shownOrder(ours), nothing);
  } else {
    if (!states(ours).includes(stated.state)) add('order_state', ours.state, stated.state);
    if (ours.filledQuantity !== stated.filledQuantity) {
      add('order_filled', `${ours.filledQuantity}`, `${stated.filledQuantity}`);
    }
    if (termsOf(ours, stated) !== termsOf(stated, ours))
      add('order_terms', termsOf(ours, stated), termsOf(stated, ours));
  }
  return [...found, ...compareTrades(base, ours.trades, trades)];
}

/** Compares the two sides' trades of one order. Trades that differ are paired, so that each makes one break. */
function compareTrades(
  base: Omit<Difference, 'kind' | 'ours' | 'brokers'>,
  ours: Trades,
  stated: Trades,
): Difference[] {
  if (ours.count > maxTrades || stated.count > maxTrades) {
    if (ours.quantity === stated.quantity && ours.valueKobo === stated.valueKobo) return [];
    return [{ ...base, kind: 'trade_terms', ours: shownSums(ours), brokers: shownSums(stated), subject: 'sums' }];
  }
  const { pairs, onlyOurs, onlyStated } = pairTrades(ours.listed, stated.listed);
  const differs = (kind: BreakKindName, our: TradeFacts | undefined, theirs: TradeFacts | undefined): Difference => ({
    ...{ ...base, kind, subject: (theirs ?? our)?.key ?? '' },
    ...{ ours: our ? shownTrade(our) : nothing, brokers: theirs ? shownTrade(theirs) : nothing },
  });
  return [
    ...pairs.map(([our, theirs]) => differs('trade_terms', our, theirs)),
    ...onlyOurs.map((our) => differs('trade_missing', our, undefined)),
    ...onlyStated.map((theirs) => differs('trade_extra', undefined, theirs)),
  ];
}

interface Paired {
  /** Trades that are the same trade, with other terms. */
  readonly pairs: readonly (readonly [ours: TradeFacts, stated: TradeFacts])[];
  readonly onlyOurs: readonly TradeFacts[];
  readonly onlyStated: readonly TradeFacts[];
}

/**
 * Finds the trades that only one side has. Trades have no common id. So those that agree in everything are taken for the same
 * first, then those that agree in quantity and price. Of the rest, those of one instant are the same trade with other terms.
 */
export function pairTrades(ours: readonly TradeFacts[], stated: readonly TradeFacts[]): Paired {
  const exact = match(ours, stated, ({ at, quantity, priceKobo }) => `${at} ${quantity} ${priceKobo}`);
  const same = match(exact.onlyOurs, exact.onlyStated, ({ quantity, priceKobo }) => `${quantity} ${priceKobo}`);
  const priced = match(same.onlyOurs, same.onlyStated, ({ at, quantity }) => `${at} ${quantity}`);
  const sized = match(priced.onlyOurs, priced.onlyStated, ({ at, priceKobo }) => `${at} ${priceKobo}`);
  const timed = match(sized.onlyOurs, sized.onlyStated, ({ at }) => `${at}`);
  return {
    pairs: [...priced.pairs, ...sized.pairs, ...timed.pairs],
    onlyOurs: timed.onlyOurs,
    onlyStated: timed.onlyStated,
  };
}

function match(
  ours: readonly TradeFacts[],
  stated: readonly TradeFacts[],
  keyOf: (trade: TradeFacts) => string,
): Paired {
  const waiting = groupBy(stated, keyOf);
  const taken = new Set<TradeFacts>();
  const pairs: (readonly [TradeFacts, TradeFacts])[] = [];
  const onlyOurs: TradeFacts[] = [];
  for (const our of ours) {
    const theirs = waiting.get(keyOf(our))?.shift();
    if (theirs === undefined) onlyOurs.push(our);
    else {
      pairs.push([our, theirs]);
      taken.add(theirs);
    }
  }
  return { pairs, onlyOurs, onlyStated: stated.filter((one) => !taken.has(one)) };
}

/** A record of the statement that changes or states what an account holds. */
export interface HoldingRecord {
  /** Of the statement, or of that of the day before. */
  readonly section:
    | 'order'
    | 'trade'
    | 'allocation'
    | 'position'
    | 'position_before'
    | 'cash'
    | 'cash_before'
    | 'withdrawal'
    | 'note';
  readonly account: string;
  readonly symbol: string;
  readonly side: string;
  readonly state: string;
  readonly quantity: bigint;
  readonly amountKobo: bigint | null;
  readonly otherKobo: bigint | null;
}

interface AccountSums {
  readonly account: string;
  symbol: string;
  before: bigint;
  after: bigint;
  traded: bigint;
  cashBefore: bigint;
  cashAfter: bigint;
  cashChange: bigint;
  /** All changes of the money are stated. */
  isCashStated: boolean;
}

/** Follows an account's records, which come by symbol, and finds what does not follow from the day before. */
export class Holdings {
  #sums: AccountSums | undefined;

  /** The account whose records are being added; undefined: none. */
  get account(): string | undefined {
    return this.#sums?.account;
  }

  /** Adds a record. Answers what is wrong with the positions and accounts that end before it. */
  add(record: HoldingRecord): Difference[] {
    const found = this.#sums?.account === record.account ? [] : this.end();
    this.#sums ??= { ...emptySums, account: record.account };
    const sums = this.#sums;
    if (record.symbol !== sums.symbol) {
      found.push(...positionOf(sums));
      Object.assign(sums, { symbol: record.symbol, before: 0n, after: 0n, traded: 0n });
    }
    this.#addTo(sums, record);
    return found;
  }

  /** Ends the last account. */
  end(): Difference[] {
    const sums = this.#sums;
    this.#sums = undefined;
    return sums === undefined ? [] : [...positionOf(sums), ...cashOf(sums)];
  }

  #addTo(sums: AccountSums, { section, side, state, quantity, amountKobo, otherKobo }: HoldingRecord): void {
    const change = (kobo: bigint | null) => {
      sums.cashChange += kobo ?? 0n;
      sums.isCashStated &&= kobo !== null;
    };
    if (section === 'position_before') sums.before += quantity;
    if (section === 'position') sums.after += quantity;
    if (section === 'trade') {
      sums.traded += side === 'buy' ? quantity : -quantity;
      change(amountKobo);
    }
    if (section === 'allocation' && state === 'booked') change(amountKobo);
    if (section === 'cash_before') sums.cashBefore += amountKobo ?? 0n;
    if (section === 'cash') {
      sums.cashAfter += amountKobo ?? 0n;
      change(otherKobo);
    }
  }
}

const emptySums = {
  ...{ symbol: '', before: 0n, after: 0n, traded: 0n, cashBefore: 0n, cashAfter: 0n, cashChange: 0n },
  isCashStated: true,
};

function positionOf({ account, symbol, before, after, traded }: AccountSums): Difference[] {
  if (symbol === '' || before + traded === after) return [];
  const ours = `${before + traded} shares: ${before} the day before, and ${traded} by trades`;
  return [{ ...ofAccount(account), kind: 'position', symbol, ours, brokers: `${after} shares` }];
}

function cashOf({ account, cashBefore, cashAfter, cashChange, isCashStated }: AccountSums): Difference[] {
  if (!isCashStated || cashBefore + cashChange === cashAfter) return [];
  const ours = `${cashBefore + cashChange} kobo: ${cashBefore} the day before, and ${cashChange} by the day's changes`;
  return [{ ...ofAccount(account), kind: 'cash', ours, brokers: `${cashAfter} kobo` }];
}

function ofAccount(account: string) {
  return { partnerId: '', objectId: '', account, symbol: '', isUnsettled: false, subject: '' };
}

/** The id of a break: the same whenever the day is compared. */
export function breakId(
  { day }: { readonly day: string },
  { kind, objectId, account, symbol, subject }: Difference,
): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([day, kind, objectId, account, symbol, subject]))
    .digest();
  let id = '';
  for (const byte of digest.subarray(0, 20)) id += 'abcdefghijklmnopqrstuvwxyz234567'[byte & 31];
  return `brk_${id}`;
}

/** The members of a break that later runs change. */
interface BreakFacts {
  readonly ours: string;
  readonly brokers: string;
  readonly isOpen: boolean;
  readonly run: number;
  readonly lastSeenAt: number;
  readonly goneAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedReason: string | null;
}

const notAcknowledged = { acknowledgedBy: null, acknowledgedAt: null, acknowledgedReason: null };

/** A break that a run found again. An acknowledgement holds only for the values that were acknowledged. */
export function seenAgain<Row extends BreakFacts>(
  row: Row,
  found: Pick<BreakFacts, 'ours' | 'brokers'>,
  run: number,
  now: number,
): Row {
  const isSame = row.ours === found.ours && row.brokers === found.brokers;
  const acknowledgement = isSame ? {} : notAcknowledged;
  const seen = { ...row, ...found, ...acknowledgement, run, lastSeenAt: now, goneAt: null };
  return { ...seen, isOpen: seen.acknowledgedAt === null };
}

/** A break that a complete run of its day did not find. */
export function goneNow<Row extends BreakFacts>(row: Row, now: number): Row {
  return row.goneAt === null ? { ...row, goneAt: now, isOpen: false } : row;
}

/** Whether a kind of break is found only with the statement of the day before. */
export function needsDayBefore(kind: BreakKindName): boolean {
  return kind === 'position' || kind === 'cash';
}

/** Whether a kind of break is found only in the statement's withdrawals. */
export function isOfWithdrawal(kind: BreakKindName): boolean {
  return kind.startsWith('withdrawal_');
}

/** Whether a kind of break is found only in the transactions of accounts. */
export function isOfTransaction(kind: BreakKindName): boolean {
  return kind.startsWith('transaction');
}

/** How far the worker goes back for days that were missed. */
export const maxDaysBack = 7;

/** The last day whose evening has come. `at` is the minute of the Lagos day. */
export function lastDueDay(now: number, minute: number): string {
  const startOfDay = nextLagosMidnight(now) - dayMs;
  return lagosDay(now >= startOfDay + minute * 60_000 ? now : now - dayMs);
}

/** The days that the worker must compare, oldest first: those whose evening has come, not before `firstDay`. */
export function dueDays(now: number, minute: number, firstDay: string): string[] {
  const last = lastDueDay(now, minute);
  const days = Array.from({ length: maxDaysBack }, (_, back) => daysBefore(last, back));
  return days.filter((day) => day >= firstDay).reverse();
}

/** When a day is compared. `minute`: of the Lagos day. */
export function eveningOf(day: string, minute: number): number {
  return nextLagosMidnight(Date.parse(`${day}T00:00:00Z`)) - dayMs + minute * 60_000;
}

const dayMs = 86_400_000;

/** The states that our order can have in a statement. */
function states({ state, possibleStates = [] }: OurOrder): string[] {
  return [state, ...possibleStates].map(statedState);
}

/** Our state by the statement's names. An unsettled or refused order has none of them. */
function statedState(state: string): string {
  return state === 'pending' || state === 'partially_filled' ? 'open' : state;
}

function shownOrder(order: OrderTerms & { readonly state: string }): string {
  const { state, side, quantity, symbol, account, filledQuantity } = order;
  return `${state}, ${side} ${quantity} ${symbol} for ${account}, ${filledQuantity} filled`;
}

function termsOf({ account, symbol, side, quantity, exchangeOrderId }: OrderTerms, other: OrderTerms): string {
  const isCompared = exchangeOrderId !== null && other.exchangeOrderId !== null;
  return `${side} ${quantity} ${symbol} for ${account}${isCompared ? `, exchange's id ${exchangeOrderId}` : ''}`;
}

function shownTrade({ quantity, priceKobo, at }: TradeFacts): string {
  return `${quantity} shares at ${priceKobo} kobo, ${new Date(at).toISOString()}`;
}

function shownSums({ count, quantity, valueKobo }: Trades): string {
  return `${count} trades of ${quantity} shares and ${valueKobo} kobo`;
}
