import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { RowDataPacket } from 'mysql2/promise';
import { AllocationOutcome } from '../../gen/marina/broker/v1/allocations_pb.ts';
import { ReportKind, Side } from '../../gen/marina/broker/v1/orders_pb.ts';
import {
  type StatementAllocationSchema,
  type StatementCashSchema,
  type StatementOrderSchema,
  StatementOrderState,
  type StatementPositionSchema,
  type StatementTradeSchema,
  type StatementWithdrawalSchema,
  StatementWithdrawalState,
} from '../../gen/marina/broker/v1/statements_pb.ts';
import { WithdrawalDestination, WithdrawalReportKind } from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { StatementLie } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { allocations } from '../back-office/tables.ts';
import type { WithdrawalEvent } from '../back-office/withdrawal-model.ts';
import { withdrawalReports, withdrawals } from '../back-office/withdrawal-tables.ts';
import type { Deal } from '../clearing/deals.ts';
import { deals } from '../clearing/tables.ts';
import type { Order, OrderReport } from '../model.ts';
import type { SimulatorDatabase } from '../store/database.ts';
import { orders, reports } from '../store/tables.ts';
import type { Lie, Lies } from './lies.ts';

/** A Lagos day. */
export interface Day {
  readonly day: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Some records, and whether more follow. The key of each sorts as the records do. */
export interface Page<Record> {
  readonly records: readonly (readonly [key: string, record: Record])[];
  readonly hasMore: boolean;
}

type StatedOrder = MessageInitShape<typeof StatementOrderSchema>;
type StatedTrade = MessageInitShape<typeof StatementTradeSchema>;
type StatedAllocation = MessageInitShape<typeof StatementAllocationSchema>;
type StatedPosition = MessageInitShape<typeof StatementPositionSchema>;
type StatedWithdrawal = MessageInitShape<typeof StatementWithdrawalSchema>;
type StatedCash = MessageInitShape<typeof StatementCashSchema>;

const tradeLies = [
  StatementLie.TRADE_MISSING,
  StatementLie.TRADE_EXTRA,
  StatementLie.TRADE_PRICE,
  StatementLie.TRADE_QUANTITY,
] as const;
const allocationLies = [
  StatementLie.ALLOCATION_MISSING,
  StatementLie.ALLOCATION_EXTRA,
  StatementLie.ALLOCATION_AMOUNT,
] as const;
/** An id that no gateway makes. */
const nobodys = 'nobodysent2222222222';
const extraKobo = 100n;

/** Reads statements from the simulator's own records, with their lies. */
export class StatementRecords {
  constructor(
    private readonly database: SimulatorDatabase,
    private readonly lies: Lies,
  ) {}

  async orders({ day, fromMs, toMs }: Day, after: string, limit: number): Promise<Page<StatedOrder>> {
    const found = await this.database.read<RowDataPacket & { client_order_id: string }>(
      `SELECT DISTINCT client_order_id FROM reports WHERE at_ms >= ? AND at_ms < ? AND client_order_id > ?
        ORDER BY client_order_id LIMIT ?`,
      [fromMs, toMs, after, limit + 1],
    );
    const ids = found.slice(0, limit).map((row) => row.client_order_id);
    const rows = ids.length === 0 ? [] : await this.#ordersOf(ids);
    const told = ids.length === 0 ? [] : await this.#reportsOf(ids, toMs);
    const stated = rows
      .filter(({ clientOrderId }) => !this.lies.has(day, StatementLie.ORDER_MISSING, clientOrderId))
      .map((order) => {
        const own = told.filter(({ clientOrderId }) => clientOrderId === order.clientOrderId);
        return [order.clientOrderId, this.#lied(day, toOrder(order, own))] as const;
      });
    const extra = this.lies
      .of(day, StatementLie.ORDER_EXTRA)
      .map((lie) => [`ord_${nobodys}`, extraOrder(lie)] as const);
    return pageOf(stated, extra, after, found.length > limit ? ids.at(-1) : undefined);
  }

  async trades({ day }: Day, after: string, limit: number): Promise<Page<StatedTrade>> {
    const [account = '', number = '0'] = after
      .replace(/ TRD0*/, ' ')
      .replace(/X$/, '')
      .split(' ');
    const rows = await this.database.read(
      `SELECT ${deals.columns} FROM deals WHERE trade_date = ? AND (account > ? OR (account = ? AND number > ?))
        ORDER BY account, number LIMIT ?`,
      [day, account, account, Number(number), limit + 1],
    );
    const targets = await this.#targets(this.lies.of(day, ...tradeLies));
    const shown = rows.slice(0, limit).map(deals.fromRow);
    const stated = shown.flatMap((deal) => liedTrades(deal, targets.get(deal.number) ?? []));
    const records = stated.map((trade) => [`${trade.account} ${trade.id}`, trade] as const);
    return { records, hasMore: rows.length > limit };
  }

  async allocations({ day, fromMs, toMs }: Day, after: string, limit: number): Promise<Page<StatedAllocation>> {
    const rows = await this.database.read(
      `SELECT ${allocations.columns} FROM allocations WHERE at_ms >= ? AND at_ms < ? AND client_allocation_id > ?
        ORDER BY client_allocation_id LIMIT ?`,
      [fromMs, toMs, after, limit + 1],
    );
    const shown = rows.slice(0, limit).map(allocations.fromRow);
    const stated = shown
      .filter(({ clientAllocationId: id }) => !this.lies.has(day, StatementLie.ALLOCATION_MISSING, id))
      .map(({ clientAllocationId: id, account, amountKobo, outcome, brokerReference, atMs }) => {
        const more = this.lies.has(day, StatementLie.ALLOCATION_AMOUNT, id) ? 1n : 0n;
        const terms = { account, amountKobo: BigInt(amountKobo) + more, outcome, brokerReference };
        return [id, { clientAllocationId: id, ...terms, at: timestampFromMs(atMs) }] as const;
      });
    const extra = this.lies.of(day, StatementLie.ALLOCATION_EXTRA).map(({ account }) => {
      const id = `alc_${nobodys}`;
      const terms = { account, amountKobo: extraKobo, outcome: AllocationOutcome.BOOKED, brokerReference: 'ALCNOBODY' };
      return [id, { clientAllocationId: id, ...terms, at: timestampFromMs(toMs - 1) }] as const;
    });
    return pageOf(stated, extra, after, rows.length > limit ? shown.at(-1)?.clientAllocationId : undefined);
  }

  /** The withdrawals with a report of the day, in their state at its end. */
  async withdrawals({ day, fromMs, toMs }: Day, after: string, limit: number): Promise<Page<StatedWithdrawal>> {
    const found = await this.database.read<RowDataPacket & { client_withdrawal_id: string }>(
      `SELECT DISTINCT client_withdrawal_id FROM withdrawal_reports
        WHERE at_ms >= ? AND at_ms < ? AND client_withdrawal_id > ? ORDER BY client_withdrawal_id LIMIT ?`,
      [fromMs, toMs, after, limit + 1],
    );
    const ids = found.slice(0, limit).map((row) => row.client_withdrawal_id);
    const rows =
      ids.length === 0 ? [] : await this.database.read(byClientId(withdrawals, 'client_withdrawal_id'), [ids]);
    const last = await this.#lastReportsOf(ids, toMs);
    const stated = rows.map(withdrawals.fromRow).flatMap((withdrawal) => {
      const { clientWithdrawalId: id, account, amountKobo, destination, brokerReference } = withdrawal;
      const report = last.get(id);
      if (report === undefined || this.lies.has(day, StatementLie.WITHDRAWAL_MISSING, id)) return [];
      const more = this.lies.has(day, StatementLie.WITHDRAWAL_AMOUNT, id) ? 1n : 0n;
      const terms = { account, amountKobo: BigInt(amountKobo) + more, destination, brokerReference };
      const right = withdrawalStates[report.kind];
      const state = this.lies.has(day, StatementLie.WITHDRAWAL_STATE, id) ? otherStateThan(right) : right;
      return [[id, { clientWithdrawalId: id, ...terms, state, at: timestampFromMs(report.atMs) }] as const];
    });
    const extra = this.lies.of(day, StatementLie.WITHDRAWAL_EXTRA).map(({ account }) => {
      const id = `wdr_${nobodys}`;
      const terms = { account, amountKobo: extraKobo, destination: WithdrawalDestination.WALLET };
      const end = { state: StatementWithdrawalState.PAID, brokerReference: 'WDLNOBODY', at: timestampFromMs(toMs - 1) };
      return [id, { clientWithdrawalId: id, ...terms, ...end }] as const;
    });
    return pageOf(stated, extra, after, found.length > limit ? ids.at(-1) : undefined);
  }

  /** Returns the last report before an instant of each withdrawal. */
  async #lastReportsOf(ids: readonly string[], beforeMs: number): Promise<ReadonlyMap<string, WithdrawalEvent>> {
    if (ids.length === 0) return new Map();
    const rows = await this.database.read(
      `${byClientId(withdrawalReports, 'client_withdrawal_id')} AND at_ms < ? ORDER BY number`,
      [ids, beforeMs],
    );
    return new Map(rows.map(withdrawalReports.fromRow).map((report) => [report.clientWithdrawalId, report]));
  }

  async positions({ day }: Day, after: string, limit: number): Promise<Page<StatedPosition>> {
    const [account = '', symbol = ''] = after.split(' ');
    const rows = await this.database.read<PositionRow>(
      `SELECT account, symbol, CAST(SUM(IF(side = ?, quantity, -quantity)) AS CHAR) AS quantity FROM deals
        WHERE trade_date <= ? AND (account > ? OR (account = ? AND symbol > ?))
        GROUP BY account, symbol ORDER BY account, symbol LIMIT ?`,
      [Side.BUY, day, account, account, symbol, limit + 1],
    );
    const targets = [...(await this.#targets(this.lies.until(day, ...tradeLies))).values()].flat();
    const records = rows.slice(0, limit).map((row) => {
      const isHeld = (one: { account: string; symbol: string }) =>
        one.account === row.account && one.symbol === row.symbol;
      const wrong = this.lies.of(day, StatementLie.POSITION).filter(isHeld).length;
      const traded = targets
        .filter(({ deal }) => isHeld(deal))
        .reduce((sum, lied) => sum + changeOf(lied).quantity, 0n);
      const quantity = BigInt(row.quantity) + traded + BigInt(wrong);
      return [`${row.account} ${row.symbol}`, { account: row.account, symbol: row.symbol, quantity }] as const;
    });
    return { records, hasMore: rows.length > limit };
  }

  async cash({ day, fromMs, toMs }: Day, after: string, limit: number): Promise<Page<StatedCash>> {
    const rows = await this.database.read<CashRow>(
      `SELECT account, CAST(SUM(balance) AS CHAR) AS balance, CAST(SUM(other) AS CHAR) AS other FROM (
          SELECT account, amount_kobo AS balance,
            IF(at_ms >= ? AND client_allocation_id = '', amount_kobo, 0) AS other
          FROM cash_entries WHERE at_ms < ? AND account > ?
        UNION ALL
          SELECT account, IF(side = ?, -consideration_kobo, consideration_kobo), 0 FROM deals
          WHERE trade_date <= ? AND account > ?) AS changes
        GROUP BY account ORDER BY account LIMIT ?`,
      [fromMs, toMs, after, Side.BUY, day, after, limit + 1],
    );
    const changes = await this.#cashChanges(day);
    const records = rows.slice(0, limit).map(({ account, balance, other }) => {
      const wrong = this.lies.of(day, StatementLie.CASH).filter((one) => one.account === account).length;
      const lied = changes.filter((one) => one.account === account).reduce((sum, { kobo }) => sum + kobo, 0n);
      const balanceKobo = BigInt(balance) + lied + BigInt(wrong);
      return [account, { account, balanceKobo, otherChangesKobo: BigInt(other) }] as const;
    });
    return { records, hasMore: rows.length > limit };
  }

  /** Returns the changes of money by the lies about trades and allocations until a day. */
  async #cashChanges(day: string): Promise<{ readonly account: string; readonly kobo: bigint }[]> {
    const targets = [...(await this.#targets(this.lies.until(day, ...tradeLies))).values()].flat();
    const traded = targets.map((lied) => ({ account: lied.deal.account, kobo: changeOf(lied).kobo }));
    const lies = this.lies.until(day, ...allocationLies);
    const ids = lies.map(({ clientId }) => clientId);
    const rows =
      lies.length === 0 ? [] : await this.database.read(byClientId(allocations, 'client_allocation_id'), [ids]);
    const booked = new Map(
      rows.map(allocations.fromRow).flatMap((one) => {
        return one.outcome === AllocationOutcome.BOOKED ? [[one.clientAllocationId, one] as const] : [];
      }),
    );
    const allocated = lies.flatMap(({ lie, clientId, account }) => {
      if (lie === StatementLie.ALLOCATION_EXTRA) return [{ account, kobo: extraKobo }];
      const one = booked.get(clientId);
      if (one === undefined) return [];
      const kobo = lie === StatementLie.ALLOCATION_MISSING ? -BigInt(one.amountKobo) : 1n;
      return [{ account: one.account, kobo }];
    });
    return [...traded, ...allocated];
  }

  /** The trades that lies are about, by their numbers: the first trade of each order on the day of the lie. */
  async #targets(lies: readonly Lie[]): Promise<ReadonlyMap<number, readonly LiedDeal[]>> {
    const targets = new Map<number, LiedDeal[]>();
    for (const { lie, day, clientId } of lies) {
      const [order] = await this.#ordersOf([clientId]);
      const rows = await this.database.read(
        `SELECT ${deals.columns} FROM deals WHERE account = ? AND trade_date = ? AND client_order_id = ?
          ORDER BY number LIMIT 1`,
        [order?.account ?? '', day, clientId],
      );
      for (const deal of rows.map(deals.fromRow)) {
        targets.set(deal.number, [...(targets.get(deal.number) ?? []), { lie, deal }]);
      }
    }
    return targets;
  }

  async #ordersOf(ids: readonly string[]): Promise<Order[]> {
    const rows = await this.database.read(`${byClientId(orders, 'client_order_id')} ORDER BY client_order_id`, [ids]);
    return rows.map(orders.fromRow);
  }

  async #reportsOf(ids: readonly string[], beforeMs: number): Promise<OrderReport[]> {
    const rows = await this.database.read(
      `${byClientId(reports, 'client_order_id')} AND at_ms < ? ORDER BY client_order_id, number`,
      [ids, beforeMs],
    );
    return rows.map(reports.fromRow);
  }

  #lied(day: string, order: StatedOrder & { clientOrderId: string }): StatedOrder {
    const { EXPIRED, OPEN } = StatementOrderState;
    const { clientOrderId, filledQuantity = 0n, quantity = 0n } = order;
    const isOtherState = this.lies.has(day, StatementLie.ORDER_STATE, clientOrderId);
    const isOtherFill = this.lies.has(day, StatementLie.ORDER_FILLED, clientOrderId);
    return {
      ...order,
      ...(isOtherState ? { state: order.state === EXPIRED ? OPEN : EXPIRED } : {}),
      ...(isOtherFill ? { filledQuantity: filledQuantity + (filledQuantity < quantity ? 1n : -1n) } : {}),
    };
  }
}

const withdrawalStates: Readonly<Record<WithdrawalReportKind, StatementWithdrawalState>> = {
  [WithdrawalReportKind.UNSPECIFIED]: StatementWithdrawalState.UNSPECIFIED,
  [WithdrawalReportKind.ACCEPTED]: StatementWithdrawalState.ACCEPTED,
  [WithdrawalReportKind.PAID]: StatementWithdrawalState.PAID,
  [WithdrawalReportKind.REJECTED]: StatementWithdrawalState.REJECTED,
  [WithdrawalReportKind.RETURNED]: StatementWithdrawalState.RETURNED,
};

function otherStateThan(state: StatementWithdrawalState): StatementWithdrawalState {
  const { PAID, REJECTED } = StatementWithdrawalState;
  return state === REJECTED ? PAID : REJECTED;
}

/** A trade that a lie is about. */
interface LiedDeal {
  readonly lie: StatementLie;
  readonly deal: Deal;
}

/** Returns a lie's change of the position and the money. */
function changeOf({ lie, deal }: LiedDeal): { readonly quantity: bigint; readonly kobo: bigint } {
  const sign = deal.side === Side.BUY ? 1n : -1n;
  const [quantity, price] = [BigInt(deal.quantity) * sign, BigInt(deal.priceKobo)];
  const kobo = -sign * deal.considerationKobo;
  if (lie === StatementLie.TRADE_MISSING) return { quantity: -quantity, kobo: -kobo };
  if (lie === StatementLie.TRADE_EXTRA) return { quantity, kobo };
  if (lie === StatementLie.TRADE_QUANTITY) return { quantity: sign, kobo: -sign * price };
  return { quantity: 0n, kobo: -quantity };
}

/** Returns the trades that a statement has in place of one. */
function liedTrades(deal: Deal, lies: readonly LiedDeal[]): StatedTrade[] {
  let trades: StatedTrade[] = [toTrade(deal)];
  for (const lied of lies) {
    const { kobo } = changeOf(lied);
    if (lied.lie === StatementLie.TRADE_MISSING) trades = [];
    if (lied.lie === StatementLie.TRADE_EXTRA) trades.push({ ...toTrade(deal), id: `${idOf(deal)}X` });
    const more = { [StatementLie.TRADE_PRICE]: 'priceKobo', [StatementLie.TRADE_QUANTITY]: 'quantity' } as const;
    const field = more[lied.lie as keyof typeof more];
    if (field === undefined) continue;
    trades = trades.map((trade) => ({
      ...trade,
      [field]: (trade[field] ?? 0n) + 1n,
      cashChangeKobo: (trade.cashChangeKobo ?? 0n) + kobo,
    }));
  }
  return trades;
}

function toTrade(deal: Deal): StatedTrade {
  const { clientOrderId, account, symbol, side, quantity, priceKobo, executedAtMs, considerationKobo } = deal;
  return {
    ...{ id: idOf(deal), clientOrderId, account, symbol, side },
    quantity: BigInt(quantity),
    priceKobo: BigInt(priceKobo),
    executedAt: timestampFromMs(executedAtMs),
    cashChangeKobo: side === Side.BUY ? -considerationKobo : considerationKobo,
  };
}

function idOf({ number }: Deal): string {
  return `TRD${String(number).padStart(12, '0')}`;
}

function extraOrder({ account, symbol }: Lie): StatedOrder {
  return {
    ...{
      clientOrderId: `ord_${nobodys}`,
      exchangeOrderId: 'NOBODYS',
      account: account || 'NOBODY',
      symbol: symbol || 'NONE',
    },
    ...{ side: Side.BUY, quantity: 100n, state: StatementOrderState.OPEN, filledQuantity: 0n },
  };
}

/** An order by the reports until the end of the day. A late fill does not change its state. */
function toOrder(order: Order, own: readonly OrderReport[]): StatedOrder & { clientOrderId: string } {
  let filled = 0;
  let state = StatementOrderState.OPEN;
  for (const { kind, quantity } of own) {
    if (kind === ReportKind.TRADE) filled += quantity;
    if (state !== StatementOrderState.OPEN) continue;
    if (filled === order.quantity) state = StatementOrderState.FILLED;
    else if (kind === ReportKind.CANCELLED) state = StatementOrderState.CANCELLED;
    else if (kind === ReportKind.EXPIRED) state = StatementOrderState.EXPIRED;
    else if (kind === ReportKind.REJECTED) {
      state = filled === 0 ? StatementOrderState.REJECTED : StatementOrderState.CANCELLED;
    }
  }
  const { clientOrderId, exchangeOrderId, account, symbol, side, quantity } = order;
  return {
    ...{ clientOrderId, exchangeOrderId, account, symbol, side, state },
    quantity: BigInt(quantity),
    filledQuantity: BigInt(filled),
  };
}

/** A page with records that the tables do not have, each in its place. `last`: the last key read, if more follow. */
function pageOf<Record>(
  stored: readonly (readonly [string, Record])[],
  extra: readonly (readonly [string, Record])[],
  after: string,
  last: string | undefined,
): Page<Record> {
  const here = extra.filter(([key]) => key > after && (last === undefined || key <= last));
  const records = [...stored, ...here].sort(([one], [other]) => (one < other ? -1 : 1));
  return { records, hasMore: last !== undefined };
}

function byClientId(table: { readonly name: string; readonly columns: string }, column: string): string {
  return `SELECT ${table.columns} FROM ${table.name} WHERE ${column} IN (?)`;
}

interface PositionRow extends RowDataPacket {
  account: string;
  symbol: string;
  quantity: string;
}

interface CashRow extends RowDataPacket {
  account: string;
  balance: string;
  other: string;
}
