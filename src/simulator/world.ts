import mysql, { type RowDataPacket } from 'mysql2/promise';
import type { GetMarketResponse } from '../gen/marina/broker/v1/accounts_pb.ts';
import { type AccountStatus, InstrumentKind } from '../gen/marina/broker/v1/orders_pb.ts';
import { SimulatorClock } from './clock.ts';
import type { WriterConnection } from './database.ts';
import { type Listing, listingOf, listings } from './instruments.ts';
import { magicReferenceKobo, magicSymbols } from './magic.ts';
import { Calendar } from './market/calendar.ts';
import { Floor } from './market/floor.ts';
import { type Price, Venue } from './market/venue.ts';
import type { InstrumentState } from './model.ts';
import { dailyBand } from './prices.ts';
import { type ColumnValue, type OrderRow, orderColumns, orderFromRow } from './rows.ts';

/** How many accounts and instruments are held: far above what a sandbox needs, so that memory stays bounded. */
export const maxAccounts = 100_000;
export const maxInstruments = 10_000;

/** Magic symbols come last in lists, behind any that a control adds. */
const magicPosition = 1_000_000;

/**
 * What the exchange keeps in memory beside its orders: accounts, instruments, settings and the numbers to go on from.
 * Only the writer changes it, together with the tables; after a write of unknown outcome it is read again.
 */
export class World {
  readonly clock = new SimulatorClock();
  readonly accounts = new Map<string, AccountStatus>();
  /** As they are on record. The price of a listed stock lives: ask for the `instrument`. */
  readonly instruments = new Map<string, InstrumentState>();
  readonly venue: Venue;
  /** Where orders wait that trade as the market goes. */
  readonly floor: Floor;
  honoursNotAfter = true;
  lastMessage = 0;
  lastReport = 0;
  lastSequence = 0;
  lastSubmission = 0;
  /** What each account has in kobo; an account without money may be missing. */
  readonly cash = new Map<string, number>();
  lastApplication = 0;
  lastApplicationReport = 0;
  lastAllocation = 0;
  lastCashEntry = 0;
  lastDeal = 0;
  /** What the exchange was told to say its session is, whatever it does. */
  saidMarket: GetMarketResponse | undefined;

  constructor(
    readonly seed: number,
    readonly calendar = new Calendar(),
  ) {
    this.venue = new Venue(seed, calendar);
    this.floor = new Floor({
      seed,
      session: (nowMs) => this.venue.session(nowMs),
      instrument: (symbol, nowMs) => this.instrument(symbol, nowMs),
      instrumentAtClose: (symbol, day, nowMs) =>
        this.#living(symbol, (each) => this.venue.closingPrice(each, day, nowMs)),
    });
  }

  /** A stock as the exchange trades it now. */
  instrument(symbol: string, nowMs = this.clock.now()): InstrumentState | undefined {
    return this.#living(symbol, (listing) => this.venue.price(listing, nowMs));
  }

  #living(symbol: string, priceOf: (listing: Listing) => Price): InstrumentState | undefined {
    const instrument = this.instruments.get(symbol);
    const listing = instrument === undefined || instrument.pinned ? undefined : listingOf(symbol);
    if (instrument === undefined || listing === undefined) return instrument;
    const price = priceOf(listing);
    return { ...instrument, ...price, lastKobo: price.quoteKobo };
  }

  /** Reads everything anew from the tables. */
  async load(connection: WriterConnection): Promise<void> {
    await connection.commit([this.#listingsStatement()]);
    const accounts = await connection.read<AccountRow>('SELECT account, status FROM accounts LIMIT ?', [maxAccounts]);
    const instruments = await connection.read<InstrumentRow>('SELECT * FROM instruments ORDER BY position, symbol');
    const settings = await connection.read<SettingRow>('SELECT name, value FROM settings');
    const cash = await connection.read<CashRow>('SELECT account, balance_kobo FROM cash LIMIT ?', [maxAccounts]);
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
    for (const row of cash) this.cash.set(row.account, row.balance_kobo);
    this.accounts.clear();
    for (const row of accounts) this.accounts.set(row.account, row.status);
    this.instruments.clear();
    for (const row of instruments) this.instruments.set(row.symbol, instrumentFromRow(row));
    this.honoursNotAfter = true;
    this.floor.clear();
    for (const row of settings) {
      if (row.name === 'clock_offset_ms') this.clock.moveTo(row.value);
      if (row.name === 'honours_not_after') this.honoursNotAfter = row.value === 1;
    }
    const waiting = await connection.read<OrderRow>(
      `SELECT ${orderColumns} FROM orders WHERE in_book = 1 ORDER BY sequence`,
    );
    for (const row of waiting) this.floor.restore(orderFromRow(row), this.clock.now());
  }

  #listingsStatement(): string {
    const real = listings.map((listing, position) => [
      listing.symbol,
      listing.name,
      listing.kind,
      dailyBand(listing.previousCloseKobo).lowerKobo,
      dailyBand(listing.previousCloseKobo).upperKobo,
      listing.previousCloseKobo,
      listing.previousCloseKobo,
      0,
      position,
      0,
    ]);
    const band = dailyBand(magicReferenceKobo);
    const magic = magicSymbols.map(({ symbol, does }, index) => [
      symbol,
      `Magic: ${does}`,
      symbol === 'SIM-ETFONLY' ? InstrumentKind.ETF : InstrumentKind.EQUITY,
      band.lowerKobo,
      band.upperKobo,
      magicReferenceKobo,
      magicReferenceKobo,
      0,
      magicPosition + index,
      0,
    ]);
    return mysql.format(`INSERT IGNORE INTO instruments (${instrumentColumns}) VALUES ?`, [[...real, ...magic]]);
  }
}

export const instrumentColumns =
  'symbol, name, kind, lower_kobo, upper_kobo, quote_kobo, last_kobo, halted, position, pinned';

/** An instrument's values in the order of `instrumentColumns`. */
export function instrumentValues(instrument: InstrumentState): ColumnValue[] {
  return [
    instrument.symbol,
    instrument.name,
    instrument.kind,
    instrument.lowerKobo,
    instrument.upperKobo,
    instrument.quoteKobo,
    instrument.lastKobo,
    instrument.halted ? 1 : 0,
    instrument.position,
    instrument.pinned ? 1 : 0,
  ];
}

interface AccountRow extends RowDataPacket {
  account: string;
  status: number;
}

interface CashRow extends RowDataPacket {
  account: string;
  balance_kobo: number;
}

interface SettingRow extends RowDataPacket {
  name: string;
  value: number;
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

interface InstrumentRow extends RowDataPacket {
  symbol: string;
  name: string;
  kind: number;
  lower_kobo: number;
  upper_kobo: number;
  quote_kobo: number;
  last_kobo: number;
  halted: number;
  position: number;
  pinned: number;
}

function instrumentFromRow(row: InstrumentRow): InstrumentState {
  return {
    symbol: row.symbol,
    name: row.name,
    kind: row.kind,
    lowerKobo: row.lower_kobo,
    upperKobo: row.upper_kobo,
    quoteKobo: row.quote_kobo,
    lastKobo: row.last_kobo,
    halted: row.halted === 1,
    position: row.position,
    pinned: row.pinned === 1,
  };
}
