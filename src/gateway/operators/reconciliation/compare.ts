import { type ChangedSince, type Compared, clockMarginMs, OurObjects } from './ours.ts';
import type { RunProgress } from './progress.ts';
import {
  compareAllocation,
  compareOrder,
  type Difference,
  Holdings,
  noTrades,
  type Trades,
  withTrade,
} from './rules.ts';
import { beforeAccounts, beforeObjects, itemsByAccount, itemsByObject, partnerAfter, statedAmong } from './store.ts';
import { reconciliationItems, type StoredItem } from './table.ts';

const itemsTogether = 500;
const objectsTogether = 100;
const saveEveryMs = 500;
/** After every text that a record can have: the end of an object's or an account's records. */
const end = '\x7f';

/** One object's records of the statement. */
interface Stated {
  readonly objectId: string;
  /** Its first record's. */
  readonly account: string;
  readonly symbol: string;
  order: StoredItem | undefined;
  allocation: StoredItem | undefined;
  trades: Trades;
}

/** Compares every order and allocation of the statement with the gateway's. True when all are compared. */
export async function compareStatement(progress: RunProgress, compared: Compared): Promise<boolean> {
  const { database } = compared;
  const { position } = progress.run;
  const ours = new OurObjects(compared);
  let after = position === '' ? beforeObjects : [position, end, ''];
  let open: Stated | undefined;
  while (!progress.isInterrupted) {
    const rows = await database.read(itemsByObject(progress.run, after, itemsTogether));
    const ended: Stated[] = [];
    for (const item of rows.map(reconciliationItems.all.read)) {
      if (open !== undefined && open.objectId !== item.objectId) ended.push(open);
      if (open?.objectId !== item.objectId) open = newStated(item);
      addTo(open, item);
      after = [item.objectId, item.section, item.itemId];
    }
    const isLast = rows.length < itemsTogether;
    if (isLast && open !== undefined) ended.push(open);
    const found = await compareObjects(ours, ended, compared.isShared);
    const done = ended.at(-1)?.objectId;
    await progress.saveFound(done === undefined ? {} : { position: done }, found);
    if (isLast) return true;
  }
  return false;
}

async function compareObjects(ours: OurObjects, stated: readonly Stated[], isShared: boolean): Promise<Difference[]> {
  const isOrder = ({ order, trades }: Stated) => order !== undefined || trades.count > 0;
  const orders = await ours.ordersById(stated.filter(isOrder).map(({ objectId }) => objectId));
  const booked = stated.filter(({ allocation }) => allocation !== undefined);
  const allocations = await ours.allocationsById(booked.map(({ objectId }) => objectId));
  return stated.flatMap(({ objectId, order, trades, allocation, account, symbol }) => {
    const found: Difference[] = [];
    const [ourOrder, ourAllocation] = [orders.get(objectId), allocations.get(objectId)];
    if ((order !== undefined || trades.count > 0) && !(isShared && ourOrder === undefined)) {
      found.push(...compareOrder(objectId, ourOrder, order && toOrder(order), trades, { account, symbol }));
    }
    if (allocation !== undefined && !(isShared && ourAllocation === undefined)) {
      found.push(...compareAllocation(objectId, ourAllocation, toAllocation(allocation)));
    }
    return found;
  });
}

/** How far the gateway's objects are compared: partner by partner, first the orders. */
interface ObjectsPosition extends ChangedSince {
  readonly of: 'orders' | 'allocations';
}

/**
 * Finds the gateway's orders and allocations that the broker reported in the period and that its statement does not have.
 * True when all are compared.
 */
export async function compareOurs(progress: RunProgress, compared: Compared): Promise<boolean> {
  const { database } = compared;
  const { position } = progress.run;
  const ours = new OurObjects(compared);
  const start = { updatedAt: compared.period.from - clockMarginMs, id: '' };
  let at: ObjectsPosition | undefined = position === '' ? undefined : (JSON.parse(position) as ObjectsPosition);
  let objects = progress.run.objects;
  let savedAt = performance.now();
  const nextPartner = async (after: string): Promise<ObjectsPosition | undefined> => {
    const [row] = await database.read(partnerAfter(after));
    const id = row?.id ?? null;
    return id === null ? undefined : { of: 'orders', partnerId: String(id), ...start };
  };
  at ??= await nextPartner('');
  while (at !== undefined && !progress.isInterrupted) {
    const page: Awaited<ReturnType<typeof missingOrders>> =
      at.of === 'orders' ? await missingOrders(at) : await missingAllocations(at);
    objects += BigInt(page.count);
    if (page.next !== undefined) at = { ...page.next, of: at.of };
    else if (at.of === 'orders') at = { of: 'allocations', partnerId: at.partnerId, ...start };
    else at = await nextPartner(at.partnerId);
    const isSoon = performance.now() - savedAt < saveEveryMs;
    if (page.found.length === 0 && at !== undefined && isSoon && !progress.isInterrupted) continue;
    await progress.saveFound({ objects, ...(at === undefined ? {} : { position: JSON.stringify(at) }) }, page.found);
    savedAt = performance.now();
  }
  return at === undefined;

  async function missingOrders(since: ChangedSince) {
    const { ours: objects, ...page } = await ours.changedOrders(since, objectsTogether);
    const missing = await withoutRecord(objects, ({ isReported }) => isReported);
    return { ...page, found: missing.flatMap(([id, one]) => compareOrder(id, one, undefined, noTrades, one)) };
  }

  async function missingAllocations(since: ChangedSince) {
    const { ours: objects, ...page } = await ours.changedAllocations(since, objectsTogether);
    const missing = await withoutRecord(objects, ({ isDecided }) => isDecided);
    return { ...page, found: missing.flatMap(([id, one]) => compareAllocation(id, one, undefined)) };
  }

  /** The objects that the statement should have and does not have. */
  async function withoutRecord<One>(objects: ReadonlyMap<string, One>, isExpected: (one: One) => boolean) {
    const expected = new Map([...objects].filter(([, one]) => isExpected(one)));
    if (expected.size === 0) return [];
    const [rows = []] = await database.readAll([statedAmong(progress.run, [...expected.keys()])]);
    for (const row of rows) expected.delete(String(row.object_id));
    return [...expected];
  }
}

/** Compares the positions and the money of each account with those of the day before. True when all are compared. */
export async function compareHoldings(progress: RunProgress, { database }: Compared): Promise<boolean> {
  const { position } = progress.run;
  const holdings = new Holdings();
  let after = position === '' ? beforeAccounts : [position, end, '', '', ''];
  while (!progress.isInterrupted) {
    const rows = await database.read(itemsByAccount(progress.run, after, itemsTogether));
    const found: Difference[] = [];
    let done: string | undefined;
    for (const item of rows.map(reconciliationItems.all.read)) {
      if (holdings.account !== undefined && holdings.account !== item.account) done = holdings.account;
      found.push(...holdings.add(item));
      after = [item.account, item.symbol, item.objectId, item.section, item.itemId];
    }
    const isLast = rows.length < itemsTogether;
    if (isLast) found.push(...holdings.end());
    await progress.saveFound(done === undefined ? {} : { position: done }, found);
    if (isLast) return true;
  }
  return false;
}

function newStated({ objectId, account, symbol }: StoredItem): Stated {
  return { objectId, account, symbol, order: undefined, allocation: undefined, trades: noTrades };
}

function addTo(stated: Stated, item: StoredItem): void {
  if (item.section === 'order') stated.order = item;
  if (item.section === 'allocation') stated.allocation = item;
  if (item.section !== 'trade') return;
  const { itemId: key, quantity, otherKobo, at } = item;
  stated.trades = withTrade(stated.trades, { key, quantity, priceKobo: otherKobo ?? 0n, at: at ?? 0 });
}

function toOrder({ account, symbol, side, state, quantity, otherKobo, reference }: StoredItem) {
  const exchangeOrderId = reference === '' ? null : reference;
  return { account, symbol, side, state, quantity, exchangeOrderId, filledQuantity: otherKobo ?? 0n };
}

function toAllocation({ account, state, amountKobo, reference }: StoredItem) {
  return { account, state, amountKobo: amountKobo ?? 0n, reference: reference === '' ? null : reference };
}
