import type { RowDataPacket } from 'mysql2/promise';
import type { GetMarketResponse } from '../gen/marina/broker/v1/accounts_pb.ts';
import { AccountStatus, InstrumentKind } from '../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../kit/clock.ts';
import { cash } from './back-office/tables.ts';
import { WithdrawalState } from './back-office/withdrawal-state.ts';
import { type StateOfAccount, stateOf } from './clearing/account-states.ts';
import { DirectSales } from './clearing/direct-sales.ts';
import { AccountFunds, type FundsSettings } from './clearing/funds.ts';
import { loadFunds } from './clearing/load-funds.ts';
import { accountStates, type SetState } from './clearing/tables.ts';
import { TransactionChains } from './clearing/transactions.ts';
import { SimulatorClock } from './clock.ts';
import { magicReferenceKobo, magicSymbols } from './magic.ts';
import { MarketCalendar } from './market/calendar.ts';
import { type Listing, listingOf, listings } from './market/instruments.ts';
import { MatchingEngine } from './market/matching-engine.ts';
import { dailyBand } from './market/prices.ts';
import { type Price, Venue } from './market/venue.ts';
import type { InstrumentState, Order } from './model.ts';
import type { WriterConnection } from './store/database.ts';
import { accounts, instruments, orders, settings } from './store/tables.ts';

/** The most accounts and instruments: far more than a sandbox needs, so that memory is bounded. */
export const maxAccounts = 100_000;
export const maxInstruments = 10_000;

/** Magic symbols come last in lists, after those that a control adds. */
const magicPosition = 1_000_000;

/** The capabilities that the broker states. */
export interface Capabilities {
  honoursNotAfter: boolean;
  accountTransactions: boolean;
  accountStatus: boolean;
}

/** Each capability with the name of its setting in the database. */
export const capabilityNames: readonly (readonly [keyof Capabilities, string])[] = [
  ['honoursNotAfter', 'honours_not_after'],
  ['accountTransactions', 'account_transactions'],
  ['accountStatus', 'account_status'],
];

const allCapabilities: Capabilities = { honoursNotAfter: true, accountTransactions: true, accountStatus: true };

/**
 * The exchange's state in memory besides orders. Only the writer changes it, together with the tables. After a write with
 * an unknown outcome it is read again.
 */
export class World {
  readonly clock = new SimulatorClock();
  readonly accounts = new Map<string, AccountStatus>();
  /** As recorded. The price of a listed stock moves: use `instrument`. */
  readonly instruments = new Map<string, InstrumentState>();
  readonly venue: Venue;
  /** The books of the orders that trade with the market. */
  readonly engine: MatchingEngine;
  readonly capabilities = { ...allCapabilities };
  lastMessage = 0;
  lastReport = 0;
  lastSequence = 0;
  lastSubmission = 0;
  /** Each account's cash in kobo. An account without money may be missing. */
  readonly cash = new Map<string, number>();
  /** The states that controls have set. */
  readonly states = new Map<string, SetState>();
  readonly transactions = new TransactionChains();
  /** The money and shares that accounts can spend and sell. */
  readonly funds: AccountFunds;
  lastApplication = 0;
  lastApplicationReport = 0;
  lastAllocation = 0;
  readonly withdrawals = new WithdrawalState();
  readonly directSales = new DirectSales();
  lastCashEntry = 0;
  lastDeal = 0;
  /** The session that a control makes the exchange report, whatever it really is. */
  reportedMarket: GetMarketResponse | undefined;

  constructor(
    readonly seed: number,
    readonly calendar = new MarketCalendar(),
    funds?: FundsSettings,
  ) {
    this.funds = new AccountFunds(funds, (account) => this.cash.get(account) ?? 0);
    this.venue = new Venue(seed, calendar);
    this.engine = new MatchingEngine({
      seed,
      session: (nowMs) => this.venue.session(nowMs),
      instrument: (symbol, nowMs) => this.instrument(symbol, nowMs),
      instrumentAtClose: (symbol, day, nowMs) =>
        this.#living(symbol, (each) => this.venue.closingPrice(each, day, nowMs)),
    });
  }

  /** A stock as it trades now. */
  instrument(symbol: string, nowMs = this.clock.now()): InstrumentState | undefined {
    return this.#living(symbol, (listing) => this.venue.price(listing, nowMs));
  }

  /** Whether an account can trade now. One that owes money for settled trades cannot. */
  accountStatus(account: string): AccountStatus {
    const status = this.accounts.get(account) ?? AccountStatus.NOT_AT_BROKER;
    const owes = status === AccountStatus.ACTIVE && this.funds.isInDebt(account, lagosDay(this.clock.now()));
    return owes ? AccountStatus.SETTLEMENT_LOCKOUT : status;
  }

  /** Returns what an account may do now. One that owes money for settled trades cannot trade. */
  stateOf(account: string): StateOfAccount {
    const isLocked = this.accountStatus(account) === AccountStatus.SETTLEMENT_LOCKOUT;
    return stateOf(this.states.get(account), isLocked);
  }

  /** Follows an order that came to wait, traded, or waits no more: what it may cost or sell is promised meanwhile. */
  followFunds(order: Order): void {
    if (this.funds.settings === undefined) return;
    const highestKobo = this.instrument(order.symbol)?.upperKobo ?? 0;
    this.funds.follow(order, highestKobo, lagosDay(this.clock.now()));
  }

  /** Whether a submission's `not_after` has passed. */
  isTooLate(notAfterMs: number | undefined): boolean {
    return this.capabilities.honoursNotAfter && notAfterMs !== undefined && this.clock.shownRealNow() > notAfterMs;
  }

  #living(symbol: string, priceOf: (listing: Listing) => Price): InstrumentState | undefined {
    const instrument = this.instruments.get(symbol);
    const listing = instrument === undefined || instrument.pinned ? undefined : listingOf(symbol);
    if (instrument === undefined || listing === undefined) return instrument;
    const price = priceOf(listing);
    return { ...instrument, ...price, lastKobo: price.quoteKobo };
  }

  /** Reads everything again from the tables. */
  async load(connection: WriterConnection): Promise<void> {
    await connection.commit(instruments.saveNew(this.#listed()));
    const accountRows = await connection.read('SELECT account, status FROM accounts LIMIT ?', [maxAccounts]);
    const instrumentRows = await connection.read('SELECT * FROM instruments ORDER BY position, symbol');
    const settingRows = await connection.read('SELECT name, value FROM settings');
    const cashRows = await connection.read('SELECT account, balance_kobo FROM cash LIMIT ?', [maxAccounts]);
    const [last] = await connection.read<LastRow>(
      `SELECT (SELECT COALESCE(MAX(number), 0) FROM received_messages) AS message,
              (SELECT COALESCE(MAX(number), 0) FROM reports) AS report,
              (SELECT COALESCE(MAX(sequence), 0) FROM orders) AS sequence,
              (SELECT COALESCE(MAX(number), 0) FROM submissions) AS submission,
              (SELECT COALESCE(MAX(sequence), 0) FROM applications) AS application,
              (SELECT COALESCE(MAX(number), 0) FROM application_reports) AS application_report,
              (SELECT COALESCE(MAX(sequence), 0) FROM allocations) AS allocation,
              (SELECT COALESCE(MAX(number), 0) FROM cash_entries) AS cash_entry,
              (SELECT COALESCE(MAX(number), 0) FROM deals) AS deal`,
    );
    if (last === undefined) throw new Error('The database did not say which numbers come next');
    this.lastMessage = last.message;
    this.lastReport = last.report;
    this.lastSequence = last.sequence;
    this.lastSubmission = last.submission;
    this.lastApplication = last.application;
    this.lastApplicationReport = last.application_report;
    this.lastAllocation = last.allocation;
    this.lastCashEntry = last.cash_entry;
    this.lastDeal = last.deal;
    this.cash.clear();
    for (const { account, balanceKobo } of cashRows.map(cash.fromRow)) this.cash.set(account, balanceKobo);
    this.accounts.clear();
    for (const { account, status } of accountRows.map(accounts.fromRow)) this.accounts.set(account, status);
    this.instruments.clear();
    for (const instrument of instrumentRows.map(instruments.fromRow))
      this.instruments.set(instrument.symbol, instrument);
    Object.assign(this.capabilities, allCapabilities);
    this.engine.clear();
    for (const { name, value } of settingRows.map(settings.fromRow)) {
      if (name === 'clock_offset_ms') this.clock.moveTo(value);
      const capability = capabilityNames.find(([, settingName]) => settingName === name)?.[0];
      if (capability !== undefined) this.capabilities[capability] = value === 1;
    }
    const waiting = await connection.read(`SELECT ${orders.columns} FROM orders WHERE in_book = 1 ORDER BY sequence`);
    await this.transactions.load(connection);
    const stateRows = await connection.read('SELECT * FROM account_states LIMIT ?', [maxAccounts]);
    this.states.clear();
    for (const state of stateRows.map(accountStates.fromRow)) this.states.set(state.account, state);
    await loadFunds(connection, this.funds, lagosDay(this.clock.now()));
    await this.withdrawals.load(connection, this.funds);
    await this.directSales.load(connection);
    for (const order of waiting.map(orders.fromRow)) {
      this.engine.restore(order, this.clock.now());
      this.followFunds(order);
    }
  }

  /** The initially listed stocks, and the magic symbols. */
  #listed(): InstrumentState[] {
    const at = (priceKobo: number) => {
      const { lowerKobo, upperKobo } = dailyBand(priceKobo);
      return { lowerKobo, upperKobo, quoteKobo: priceKobo, lastKobo: priceKobo, halted: false, pinned: false };
    };
    const real = listings.map(({ symbol, name, kind, previousCloseKobo }, position) => {
      return { symbol, name, kind, position, ...at(previousCloseKobo) };
    });
    const magic = magicSymbols.map(({ symbol, does }, index) => ({
      symbol,
      name: `Magic: ${does}`,
      kind: symbol === 'SIM-ETFONLY' ? InstrumentKind.ETF : InstrumentKind.EQUITY,
      position: magicPosition + index,
      ...at(magicReferenceKobo),
    }));
    return [...real, ...magic];
  }
}

interface LastRow extends RowDataPacket {
  message: number;
  report: number;
  sequence: number;
  submission: number;
  application: number;
  application_report: number;
  allocation: number;
  cash_entry: number;
  deal: number;
}
