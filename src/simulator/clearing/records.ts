import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { RowDataPacket } from 'mysql2/promise';
import {
  type GetBalanceResponseSchema,
  type ListContractNotesResponseSchema,
  type ListPositionsResponseSchema,
  type ListTradesResponseSchema,
  type ListTransactionsResponseSchema,
  type TransactionSchema,
  TransactionType,
} from '../../gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../kit/clock.ts';
import { divideToKoboDecimal } from '../../kit/money.ts';
import type { SimulatorDatabase } from '../store/database.ts';
import type { World } from '../world.ts';
import type { Deal } from './deals.ts';
import { deals, transactions } from './tables.ts';

const dayMs = 86_400_000;
/** One more than a range may have: a count stops there. */
const maxCounted = 1_001;

export interface DealRange<Place> {
  readonly account: string;
  readonly from: string;
  readonly to: string;
  readonly after: Place | undefined;
  readonly limit: number;
}

/** Reads clearing's tables about an account. */
export class ClearingRecords {
  constructor(
    private readonly database: SimulatorDatabase,
    private readonly world: World,
  ) {}

  /**
   * The account's money. Settlements count from the start of their day, other movements at once. What waiting orders may cost is
   * a pending debit, if it is counted.
   */
  async balance(account: string): Promise<MessageInitShape<typeof GetBalanceResponseSchema>> {
    const { clock, funds, directSales } = this.world;
    const now = clock.now();
    const today = lagosDay(now);
    const [row] = await this.database.read<BalanceRow>(
      `SELECT
         CAST(COALESCE((SELECT balance_kobo FROM account_transactions WHERE account = ? AND booked_at_ms < ?
           ORDER BY booked_at_ms DESC, number DESC LIMIT 1), 0) AS CHAR) AS opening,
         CAST((SELECT COALESCE(SUM(amount_kobo), 0) FROM cash_entries WHERE account = ?) AS CHAR) AS cash,
         CAST(SUM(IF(settlement_date <= ?, IF(side = ?, -consideration_kobo, consideration_kobo), 0)) AS CHAR) AS settled,
         CAST(SUM(IF(settlement_date > ? AND side = ?, consideration_kobo, 0)) AS CHAR) AS buying,
         CAST(SUM(IF(settlement_date > ? AND side = ?, consideration_kobo, 0)) AS CHAR) AS selling
       FROM deals WHERE account = ?`,
      [
        ...[account, dayStartMs(today)],
        ...[account],
        ...[today, Side.BUY],
        ...[today, Side.BUY],
        ...[today, Side.SELL],
        account,
      ],
    );
    if (row === undefined) throw new Error('The database did not say what an account has');
    const [settled, buying, selling] = [row.settled, row.buying, row.selling].map((sum) => BigInt(sum ?? 0)) as [
      bigint,
      bigint,
      bigint,
    ];
    const settledKobo = funds.startCashKobo + BigInt(row.cash) + settled;
    const pendingDebitsKobo = buying + funds.promisedKobo(account);
    const availableKobo = settledKobo - pendingDebitsKobo;
    // Proceeds that go to the customer's bank cannot be withdrawn.
    const withdrawableKobo = availableKobo - directSales.settledKobo(account, today);
    return {
      account,
      openingKobo: funds.startCashKobo + BigInt(row.opening),
      pendingDebitsKobo,
      availableKobo,
      settledKobo,
      unsettledKobo: selling - buying,
      withdrawableKobo: atLeastNone(withdrawableKobo),
      asOf: timestampFromMs(clock.shownNow()),
    };
  }

  /** The stocks an account holds, by symbol. */
  async positions(
    account: string,
    afterSymbol: string,
    limit: number,
  ): Promise<MessageInitShape<typeof ListPositionsResponseSchema>> {
    const rows = await this.database.read<HoldingRow>(
      `SELECT h.symbol, i.name, CAST(h.quantity AS CHAR) AS quantity, CAST(h.cost_kobo AS CHAR) AS cost,
         COALESCE(d.bought, '0') AS bought, COALESCE(d.sold, '0') AS sold
       FROM holdings h JOIN instruments i ON i.symbol = h.symbol
       LEFT JOIN (
         SELECT symbol, CAST(SUM(IF(side = ?, quantity, 0)) AS CHAR) AS bought,
           CAST(SUM(IF(side = ?, quantity, 0)) AS CHAR) AS sold
         FROM deals WHERE account = ? AND settlement_date > ? GROUP BY symbol
       ) AS d ON d.symbol = h.symbol
       WHERE h.account = ? AND h.symbol > ? AND h.quantity > 0 ORDER BY h.symbol LIMIT ?`,
      [Side.BUY, Side.SELL, account, lagosDay(this.world.clock.now()), account, afterSymbol, limit + 1],
    );
    const positions = rows.slice(0, limit).map((row) => {
      const quantity = BigInt(row.quantity);
      const arriving = BigInt(row.bought);
      const promised = this.world.funds.promisedShares(account, row.symbol);
      const priceKobo = BigInt(this.world.instrument(row.symbol)?.lastKobo ?? 0);
      return {
        symbol: row.symbol,
        name: row.name,
        quantity,
        averageCostKoboDecimal: divideToKoboDecimal(BigInt(row.cost), quantity),
        priceKobo,
        marketValueKobo: quantity * priceKobo,
        // Shares that an account has elsewhere can be sold, so that these can be fewer than what was sold.
        settledQuantity: atLeastNone(quantity - arriving + BigInt(row.sold)),
        availableQuantity: atLeastNone(quantity - arriving - promised),
      };
    });
    return { account, positions, hasMore: rows.length > limit };
  }

  /** An account's trades between two days, newest first. */
  async trades(range: DealRange<NumberedPlace>): Promise<MessageInitShape<typeof ListTradesResponseSchema>> {
    const { after } = range;
    const today = lagosDay(this.world.clock.now());
    const place = after === undefined ? [] : [after.atMs, after.atMs, after.number];
    const page = await this.#page(range, {
      condition: after === undefined ? '' : 'AND (executed_at_ms < ? OR (executed_at_ms = ? AND number < ?))',
      values: place,
      order: 'executed_at_ms DESC, number DESC',
    });
    const trades = page.deals.map((deal) => ({
      ...pickCommon(deal),
      id: tradeId(deal.number),
      clientOrderId: deal.clientOrderId,
      executedAt: timestampFromMs(deal.executedAtMs),
      settlementDate: deal.settlementDate,
      settled: deal.settlementDate <= today,
    }));
    return { account: range.account, trades, hasMore: page.hasMore, inRange: page.inRange };
  }

  /** The contract notes of an account's settled trades between two days, newest first. */
  async contractNotes(
    range: DealRange<{ tradeDate: string; number: number }>,
  ): Promise<MessageInitShape<typeof ListContractNotesResponseSchema>> {
    const { after } = range;
    const today = lagosDay(this.world.clock.now());
    const page = await this.#page(range, {
      settledBy: today,
      condition: after === undefined ? '' : 'AND (trade_date < ? OR (trade_date = ? AND number < ?))',
      values: after === undefined ? [] : [after.tradeDate, after.tradeDate, after.number],
      order: 'trade_date DESC, number DESC',
    });
    const notes = page.deals.map((deal) => ({
      ...pickCommon(deal),
      ticket: ticketOf(deal.number),
      name: deal.name,
      commissionKobo: deal.commissionKobo,
      statutoryFeesKobo: deal.statutoryKobo,
      otherFeesKobo: deal.otherKobo,
      considerationKobo: deal.considerationKobo,
      tradeDate: deal.tradeDate,
      transactionDate: deal.settlementDate,
    }));
    return { account: range.account, notes, hasMore: page.hasMore, inRange: page.inRange };
  }

  /** Returns what changed an account's money between two days, newest first. A trade's settlement date can change until it is settled. */
  async transactions(
    range: DealRange<NumberedPlace> & { readonly type: TransactionType },
  ): Promise<MessageInitShape<typeof ListTransactionsResponseSchema>> {
    const { account, from, to, after, limit, type } = range;
    const today = lagosDay(this.world.clock.now());
    const ofType = type === TransactionType.UNSPECIFIED ? '' : 'AND t.type = ?';
    const where = `t.account = ? AND t.booked_at_ms >= ? AND t.booked_at_ms < ? ${ofType}`;
    const within = [account, dayStartMs(from), dayStartMs(to) + dayMs, ...(ofType === '' ? [] : [type])];
    const [counted] = await this.database.read<RowDataPacket & { count: number }>(
      `SELECT COUNT(*) AS count FROM (
         SELECT 1 FROM account_transactions t WHERE ${where} LIMIT ${maxCounted}) AS counted`,
      within,
    );
    const isAfter = after === undefined ? '' : 'AND (t.booked_at_ms < ? OR (t.booked_at_ms = ? AND t.number < ?))';
    const place = after === undefined ? [] : [after.atMs, after.atMs, after.number];
    const rows = await this.database.read<TransactionRow>(
      `SELECT t.*, d.symbol, d.side, d.quantity, d.client_order_id, d.settlement_date
       FROM account_transactions t LEFT JOIN deals d ON d.number = t.deal
       WHERE ${where} ${isAfter} ORDER BY t.booked_at_ms DESC, t.number DESC LIMIT ?`,
      [...within, ...place, limit + 1],
    );
    const shown = rows.slice(0, limit).map((row) => this.#transaction(row, today));
    const inRange = Math.max(counted?.count ?? 0, shown.length);
    return { account, transactions: shown, hasMore: rows.length > limit, inRange };
  }

  #transaction(row: TransactionRow, today: string): MessageInitShape<typeof TransactionSchema> {
    const { number, type, deal, reverses, bookedAtMs, ...booked } = transactions.fromRow(row);
    const { clientAllocationId, clientWithdrawalId } = booked;
    const { symbol, side, quantity, client_order_id: clientOrderId, settlement_date: settlementDate } = row;
    const moved = type === TransactionType.CHARGE || side === null ? undefined : BigInt(quantity ?? 0);
    return {
      ...{ type, amountKobo: booked.amountKobo, clientAllocationId, clientWithdrawalId },
      id: transactionId(number),
      balanceKobo: this.world.funds.startCashKobo + booked.balanceKobo,
      symbol: symbol ?? '',
      quantity: moved === undefined || side === Side.BUY ? moved : -moved,
      clientOrderId: clientOrderId ?? '',
      trade: deal === 0 ? '' : tradeId(deal),
      contractNote: settlementDate !== null && settlementDate <= today ? ticketOf(deal) : '',
      reverses: reverses === 0 ? '' : transactionId(reverses),
      settlementDate: settlementDate ?? lagosDay(bookedAtMs),
      bookedAt: timestampFromMs(bookedAtMs),
    };
  }

  async #page(
    { account, from, to, limit }: DealRange<unknown>,
    part: { settledBy?: string; condition: string; values: readonly (string | number)[]; order: string },
  ) {
    const settled = part.settledBy === undefined ? '' : 'AND settlement_date <= ?';
    const within = [account, from, to, ...(part.settledBy === undefined ? [] : [part.settledBy])];
    const where = `account = ? AND trade_date >= ? AND trade_date <= ? ${settled}`;
    const [counted] = await this.database.read<RowDataPacket & { count: number }>(
      `SELECT COUNT(*) AS count FROM (SELECT 1 FROM deals WHERE ${where} LIMIT ${maxCounted}) AS counted`,
      within,
    );
    const rows = await this.database.read(
      `SELECT ${deals.columns} FROM deals WHERE ${where} ${part.condition} ORDER BY ${part.order} LIMIT ?`,
      [...within, ...part.values, limit + 1],
    );
    // There may be more rows since the first read.
    const shown = rows.slice(0, limit).map(deals.fromRow);
    const inRange = Math.max(counted?.count ?? 0, shown.length);
    return { deals: shown, hasMore: rows.length > limit, inRange };
  }
}

function pickCommon({ symbol, side, quantity, priceKobo, amountKobo }: Deal) {
  return { symbol, side, quantity: BigInt(quantity), priceKobo: BigInt(priceKobo), amountKobo };
}

function tradeId(number: number): string {
  return `TRD${padded(number)}`;
}

function ticketOf(number: number): string {
  return `CN${padded(number)}`;
}

function transactionId(number: number): string {
  return `TXN${padded(number)}`;
}

/** The instant at which a Lagos day begins. */
function dayStartMs(day: string): number {
  return Date.parse(`${day}T00:00:00+01:00`);
}

function atLeastNone(count: bigint): bigint {
  return count > 0n ? count : 0n;
}

function padded(number: number): string {
  return String(number).padStart(12, '0');
}

/** A place in a list by time and number. */
interface NumberedPlace {
  readonly atMs: number;
  readonly number: number;
}

/** Sums over no deals are null. */
interface BalanceRow extends RowDataPacket {
  opening: string;
  cash: string;
  settled: string | null;
  buying: string | null;
  selling: string | null;
}

/** A transaction with its deal, if it has one. */
interface TransactionRow extends RowDataPacket {
  symbol: string | null;
  side: Side | null;
  quantity: number | null;
  client_order_id: string | null;
  settlement_date: string | null;
}

interface HoldingRow extends RowDataPacket {
  symbol: string;
  name: string;
  quantity: string;
  cost: string;
  /** The shares of trades that are not settled. */
  bought: string;
  sold: string;
}
