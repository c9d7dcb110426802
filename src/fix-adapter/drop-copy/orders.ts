import { type SqlRow, type Statement, statement } from '../../gateway/store/statement.ts';
import type { Schedule } from '../session/schedule.ts';
import { fixOrders, fixReports, fixTradeChanges } from '../store/table.ts';
import { type Copied, type KnownOrder, orderOf } from './identity.ts';

/** The exchange's symbols and hours. */
export interface ExchangeNames {
  /** The exchange's name of a symbol. */
  readonly symbolOf: (symbol: string) => string;
  readonly schedule: Schedule;
}

type Read = (reads: readonly Statement[]) => Promise<SqlRow[][]>;

const shown = fixOrders.only(
  ...(['id', 'exchangeOrderId', 'symbol', 'side', 'timeInForce', 'receivedAt', 'state'] as const),
);

/** Reads the orders that rows of the drop copy may be of. The result says which one a row is of; undefined: none of ours. */
export async function readOrders<Row extends Copied>(
  read: Read,
  copies: readonly Row[],
  { symbolOf, schedule }: ExchangeNames,
): Promise<(copied: Row) => string | undefined> {
  const names = unique(copies.map(({ named }) => named));
  const exchangeIds = unique(copies.map(({ exchangeOrderId }) => exchangeOrderId));
  const rows = await read([
    ...(names.length === 0 ? [] : [fixOrders.find({ id: names }, shown)]),
    ...(exchangeIds.length === 0 ? [] : [fixOrders.find({ exchangeOrderId: exchangeIds }, shown)]),
  ]);
  const orders = [...new Map(rows.flat().map((row) => [String(row.id), shown.read(row)] as const)).values()];
  const ended = orders.filter(({ state, timeInForce }) => state === 'final' && timeInForce === 'gtc');
  const endedAt = await readEnds(
    read,
    ended.map(({ id }) => id),
  );
  const execIdsOf = await readExecIds(read, orders, copies);
  const known = orders.map(
    ({ state: _, symbol, ...order }): KnownOrder => ({
      ...order,
      symbol: symbolOf(symbol),
      endedAt: endedAt.get(order.id),
      execIds: execIdsOf(order.id),
    }),
  );
  return (copied) => orderOf(copied, known, schedule);
}

/** When the exchange last reported orders, as far as it said so. */
async function readEnds(read: Read, ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const last = statement(
    'SELECT order_id, MAX(at) AS at FROM fix_reports WHERE order_id IN (?) GROUP BY order_id',
    ids,
  );
  const [rows = []] = await read([last]);
  return new Map(
    rows.flatMap((row) => (row.at instanceof Date ? [[String(row.order_id), row.at.getTime()] as const] : [])),
  );
}

/** Which of the ExecIDs that changes refer to are of trades, or of their changes, that the order session brought for an order. */
async function readExecIds(read: Read, orders: readonly { readonly id: string }[], copies: readonly Copied[]) {
  const execId = unique(copies.map(({ kind, execRefId }) => (kind === 'trade' ? '' : execRefId)));
  const orderId = orders.map(({ id }) => id);
  if (execId.length === 0 || orderId.length === 0) return () => new Set<string>();
  const [trades = [], changes = []] = await read([
    fixReports.find({ orderId, execId, kind: 'trade' }),
    fixTradeChanges.find({ orderId, execId }),
  ]);
  const all = [
    ...trades.map((row) => fixReports.all.read(row)),
    ...changes.map((row) => fixTradeChanges.all.read(row)),
  ];
  return (id: string) => new Set(all.flatMap((each) => (each.orderId === id ? (each.execId ?? []) : [])));
}

/** Each id once, without empty ones. */
export function unique(ids: readonly string[]): string[] {
  return [...new Set(ids)].filter((id) => id !== '');
}
