import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { RowDataPacket } from 'mysql2/promise';
import type {
  GetBalanceResponseSchema,
  ListContractNotesResponseSchema,
  ListPositionsResponseSchema,
  ListTradesResponseSchema,
} from '../../gen/marina/broker/v1/accounts_pb.ts';
import { Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import { lagosDay, nextLagosMidnight } from '../../kit/clock.ts';
import { divideToKoboDecimal } from '../../kit/money.ts';
import type { SimulatorDatabase } from '../store/database.ts';
import type { World } from '../world.ts';
import type { Deal } from './deals.ts';
import { deals } from './tables.ts';

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
    const now = this.world.clock.now();
    const today = lagosDay(now);
    const [row] = await this.database.read<BalanceRow>(
      `SELECT
         CAST((SELECT COALESCE(SUM(amount_kobo), 0) FROM cash_entries WHERE account = ? AND at_ms < ?) AS CHAR) AS earlier,
         CAST((SELECT COALESCE(SUM(amount_kobo), 0) FROM cash_entries WHERE account = ? AND at_ms >= ?) AS CHAR) AS later,
         CAST((SELECT COALESCE(SUM(IF(side = ?, -consideration_kobo, consideration_kobo)), 0) FROM deals
           WHERE account = ? AND settlement_date <= ?) AS CHAR) AS settled,
         CAST((SELECT COALESCE(SUM(consideration_kobo), 0) FROM deals
           WHERE account = ? AND settlement_date > ? AND side = ?) AS CHAR) AS pending`,
      [
        ...[account, nextLagosMidnight(now) - dayMs],
        ...[account, nextLagosMidnight(now) - dayMs],
        ...[Side.BUY, account, today],
        ...[account, today, Side.BUY],
      ],
    );
    if (row === undefined) throw new Error('The database did not say what an account has');
    const { funds } = this.world;
    const openingKobo = funds.startCashKobo + BigInt(row.earlier) + BigInt(row.settled);
    const pendingDebitsKobo = BigInt(row.pending) + funds.promisedKobo(account);
    const availableKobo = openingKobo + BigInt(row.later) - pendingDebitsKobo;
    return { account, openingKobo, pendingDebitsKobo, availableKobo };
  }

  /** The stocks an account holds, by symbol. */
  async positions(
    account: string,
    afterSymbol: string,
    limit: number,
  ): Promise<MessageInitShape<typeof ListPositionsResponseSchema>> {
    const rows = await this.database.read<HoldingRow>(
      `SELECT h.symbol, i.name, CAST(h.quantity AS CHAR) AS quantity, CAST(h.cost_kobo AS CHAR) AS cost
       FROM holdings h JOIN instruments i ON i.symbol = h.symbol
       WHERE h.account = ? AND h.symbol > ? AND h.quantity > 0 ORDER BY h.symbol LIMIT ?`,
      [account, afterSymbol, limit + 1],
    );
    const positions = rows.slice(0, limit).map((row) => {
      const quantity = BigInt(row.quantity);
      const priceKobo = BigInt(this.world.instrument(row.symbol)?.lastKobo ?? 0);
      return {
        symbol: row.symbol,
        name: row.name,
        quantity,
        averageCostKoboDecimal: divideToKoboDecimal(BigInt(row.cost), quantity),
        priceKobo,
        marketValueKobo: quantity * priceKobo,
      };
    });
    return { account, positions, hasMore: rows.length > limit };
  }

  /** An account's trades between two days, newest first. */
  async trades(
    range: DealRange<{ executedAtMs: number; number: number }>,
  ): Promise<MessageInitShape<typeof ListTradesResponseSchema>> {
    const { after } = range;
    const place = after === undefined ? [] : [after.executedAtMs, after.executedAtMs, after.number];
    const page = await this.#page(range, {
      condition: after === undefined ? '' : 'AND (executed_at_ms < ? OR (executed_at_ms = ? AND number < ?))',
      values: place,
      order: 'executed_at_ms DESC, number DESC',
    });
    const trades = page.deals.map((deal) => ({
      ...pickCommon(deal),
      id: `TRD${padded(deal.number)}`,
      clientOrderId: deal.clientOrderId,
      executedAt: timestampFromMs(deal.executedAtMs),
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
      ticket: `CN${padded(deal.number)}`,
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

function padded(number: number): string {
  return String(number).padStart(12, '0');
}

interface BalanceRow extends RowDataPacket {
  earlier: string;
  later: string;
  settled: string;
  pending: string;
}

interface HoldingRow extends RowDataPacket {
  symbol: string;
  name: string;
  quantity: string;
  cost: string;
}
