import type { Database } from '../../../store/database.ts';
import { type SqlRow, type Statement, statement } from '../../../store/statement.ts';
import type { ShownBy } from '../../../store/table.ts';
import { orders } from '../table.ts';
import type { BulkCancel } from './table.ts';

/** The states of open orders, in the order in which an order goes through them. */
const openStates = ['sending', 'uncertain', 'pending', 'partially_filled'] as const;
const isOpen: ReadonlySet<string> = new Set(openStates);

/** How many orders are read in one statement, and how many ids of partners. */
const page = 1_000;
const partnersAtOnce = 500;

const openOrder = orders.only(
  ...(['partnerId', 'id', 'state', 'account', 'symbol', 'side', 'keyId', 'cancelUntil', 'createdAt'] as const),
);
/** Reads a page of orders after an id. */
type Scan = (afterId: string) => Statement;

export type OpenOrder = ShownBy<typeof openOrder>;

/** The orders that are wanted; null: each value. One of partner, account and symbol is given. */
export type OrderFilter = Pick<BulkCancel, 'partnerId' | 'account' | 'symbol' | 'side' | 'keyId'>;

/**
 * Reads the open orders that match, which were created until an instant of business time. It stops when there are more than
 * `most` of them. Each statement names one partner and reads one page, so all others are found while an order of them changes.
 */
export async function findOpenOrders(
  database: Database,
  filter: OrderFilter,
  createdUntil: number,
  most: number,
): Promise<OpenOrder[]> {
  const found = new Map<string, OpenOrder>();
  const keep = (rows: readonly SqlRow[]) => {
    for (const row of rows) {
      const order = openOrder.read(row);
      if (order.createdAt <= createdUntil && matches(order, filter)) found.set(order.id, order);
    }
  };
  let after: string | undefined = '';
  while (after !== undefined && found.size <= most) {
    const partners: string[] = filter.partnerId === null ? await partnersAfter(database, after) : [filter.partnerId];
    after = partners.length === partnersAtOnce ? partners.at(-1) : undefined;
    for (const partnerId of partners)
      await readPartner(database, scansOf(filter, partnerId), keep, () => found.size <= most);
  }
  return [...found.values()];
}

/** Reads the orders of one partner. The states are read in the order in which an order goes through them, so none is missed. */
async function readPartner(
  database: Database,
  scans: readonly Scan[],
  keep: (rows: readonly SqlRow[]) => void,
  goesOn: () => boolean,
): Promise<void> {
  const first = await readUpToDate(
    database,
    scans.map((scan) => scan('')),
  );
  for (const rows of first) keep(rows);
  if (first.every((rows) => rows.length < page)) return;
  // An order may have gone on to a state whose first page was read before, so all states are read again, one after the other.
  for (const scan of scans) {
    let afterId: string | undefined = '';
    while (afterId !== undefined && goesOn()) {
      const [rows = []]: SqlRow[][] = await readUpToDate(database, [scan(afterId)]);
      keep(rows);
      afterId = rows.length === page ? String(rows.at(-1)?.id) : undefined;
    }
  }
}

function matches(order: OpenOrder, { account, symbol, side, keyId }: OrderFilter): boolean {
  const wanted = { account, symbol, side, keyId };
  const isWanted = (field: keyof typeof wanted) => wanted[field] === null || wanted[field] === order[field];
  return isOpen.has(order.state) && (Object.keys(wanted) as (keyof typeof wanted)[]).every(isWanted);
}

/** The reads of a partner's orders after an id. An account has few orders, so all of them are read. */
function scansOf({ account, symbol }: OrderFilter, partnerId: string): readonly ((afterId: string) => Statement)[] {
  const read = (where: Parameters<typeof orders.find>[0], index: string) => (afterId: string) =>
    orders.find(where, openOrder, statement(`AND id > ? ORDER BY id LIMIT ${page}`, afterId), index);
  if (account !== null) return [read({ partnerId, account }, 'orders_account')];
  return openStates.map((state) =>
    symbol === null
      ? read({ partnerId, state }, 'orders_state')
      : read({ partnerId, symbol, state }, 'orders_symbol_state'),
  );
}

async function partnersAfter(database: Database, after: string): Promise<string[]> {
  const [rows = []] = await readUpToDate(database, [
    statement(`SELECT id FROM partners FORCE INDEX (PRIMARY) WHERE id > ? ORDER BY id LIMIT ${partnersAtOnce}`, after),
  ]);
  return rows.map(({ id }) => String(id));
}

/** Reads in a transaction, because a read can come from a replica that lags. */
function readUpToDate(database: Database, reads: readonly Statement[]): Promise<SqlRow[][]> {
  return database.transaction(reads, (rows) => ({ writes: [], result: rows }));
}
