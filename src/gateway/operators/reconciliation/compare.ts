import { compareMoney, type MoneyKind, type StatedMoney } from './money-rules.ts';
import { type ChangedSince, type Compared, clockMarginMs, OurObjects } from './ours.ts';
import type { RunProgress } from './progress.ts';
import { compareOrder, type Difference, Holdings, noTrades, type Trades, withTrade } from './rules.ts';
import {
  beforeAccounts,
  beforeObjects,
  itemsByAccount,
  itemsByObject,
  note,
  notesOf,
  partnerAfter,
  statedAmong,
} from './store.ts';
import { type RunNote, reconciliationItems, type StoredItem } from './table.ts';

const itemsTogether = 500;
const objectsTogether = 100;
const saveEveryMs = 500;
const moneyKinds = ['allocation', 'withdrawal'] as const satisfies readonly MoneyKind[];
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
  withdrawal: StoredItem | undefined;
  trades: Trades;
}

/** Compares every order, allocation and withdrawal of the statement with the gateway's. True when all are compared. */
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
  const idsWith = (kind: MoneyKind) => stated.filter((one) => one[kind] !== undefined).map(({ objectId }) => objectId);
  const money = {
    allocation: await ours.moneyById('allocation', idsWith('allocation')),
    withdrawal: await ours.moneyById('withdrawal', idsWith('withdrawal')),
  };
  return stated.flatMap((one) => {
    const { objectId, order, trades, account, symbol } = one;
    const found: Difference[] = [];
    const ourOrder = orders.get(objectId);
    if ((order !== undefined || trades.count > 0) && !(isShared && ourOrder === undefined)) {
      found.push(...compareOrder(objectId, ourOrder, order && toOrder(order), trades, { account, symbol }));
    }
    for (const kind of moneyKinds) {
      const [item, our] = [one[kind], money[kind].get(objectId)];
      if (item === undefined || (isShared && our === undefined)) continue;
      found.push(...compareMoney(kind, objectId, our, toMoney(item)));
    }
    return found;
  });
}

/** The kinds of a partner's objects, in the order in which they are compared. An earlier version has no withdrawals. */
const objectKinds = ['orders', 'allocations', 'withdrawals'] as const;

/** How far the gateway's objects are compared: partner by partner, first the orders. */
interface ObjectsPosition extends ChangedSince {
  readonly of: (typeof objectKinds)[number];
}

/**
 * Finds the gateway's objects that the broker reported in the period and that its statement does not have. Withdrawals only if
 * the statement's were read. True when all are compared.
 */
export async function compareOurs(progress: RunProgress, compared: Compared): Promise<boolean> {
  const { database } = compared;
  const { position } = progress.run;
  const start = { updatedAt: compared.period.from - clockMarginMs, id: '' };
  let at: ObjectsPosition | undefined = position === '' ? undefined : (JSON.parse(position) as ObjectsPosition);
  let objects = progress.run.objects;
  let savedAt = performance.now();
  const nextPartner = async (after: string): Promise<ObjectsPosition | undefined> => {
    const [row] = await database.read(partnerAfter(after));
    const id = row?.id ?? null;
    return id === null ? undefined : { of: 'orders', partnerId: String(id), ...start };
  };
  const missing = new MissingObjects(progress, compared, await notesOf(database, progress.run));
  at ??= await nextPartner('');
  while (at !== undefined && !progress.isInterrupted) {
    const page = await missing.page(at);
    objects += BigInt(page.count);
    const nextKind: ObjectsPosition['of'] | undefined = objectKinds[objectKinds.indexOf(at.of) + 1];
    if (page.next !== undefined) at = { ...page.next, of: at.of };
    else if (nextKind !== undefined) at = { of: nextKind, partnerId: at.partnerId, ...start };
    else at = await nextPartner(at.partnerId);
    const isSoon = performance.now() - savedAt < saveEveryMs;
    if (page.found.length === 0 && at !== undefined && isSoon && !progress.isInterrupted) continue;
    await progress.saveFound({ objects, ...(at === undefined ? {} : { position: JSON.stringify(at) }) }, page.found);
    savedAt = performance.now();
  }
  return at === undefined;
}

/** Finds objects of the gateway that the statement should have and does not have. */
class MissingObjects {
  readonly #ours: OurObjects;

  constructor(
    private readonly progress: RunProgress,
    private readonly compared: Compared,
    private readonly notes: Set<RunNote>,
  ) {
    this.#ours = new OurObjects(compared);
  }

  /** Reads a page of a partner's objects of one kind. */
  async page({ of, ...since }: ObjectsPosition): Promise<MissingPage> {
    const { progress, notes } = this;
    if (of === 'orders') return this.#orders(since);
    const page = await this.#money(of === 'allocations' ? 'allocation' : 'withdrawal', since);
    if (of !== 'withdrawals' || notes.has('withdrawals_read')) return page;
    // The broker takes none, or an earlier version read its statement.
    if (page.count > 0 && !notes.has('withdrawals_left_out')) {
      await progress.save({}, [note(progress.run, 'withdrawals_left_out')]);
      notes.add('withdrawals_left_out');
    }
    return { ...page, count: 0, found: [] };
  }

  async #orders(since: ChangedSince): Promise<MissingPage> {
    const { ours: objects, ...page } = await this.#ours.changedOrders(since, objectsTogether);
    const missing = await this.#withoutRecord(objects, ({ isReported }) => isReported);
    return { ...page, found: missing.flatMap(([id, one]) => compareOrder(id, one, undefined, noTrades, one)) };
  }

  async #money(kind: MoneyKind, since: ChangedSince): Promise<MissingPage> {
    const { ours: objects, ...page } = await this.#ours.changedMoney(kind, since, objectsTogether);
    const missing = await this.#withoutRecord(objects, ({ isReported }) => isReported);
    return { ...page, found: missing.flatMap(([id, one]) => compareMoney(kind, id, one, undefined)) };
  }

  /** The objects that the statement should have and does not have. */
  async #withoutRecord<One>(objects: ReadonlyMap<string, One>, isExpected: (one: One) => boolean) {
    const expected = new Map([...objects].filter(([, one]) => isExpected(one)));
    if (expected.size === 0) return [];
    const [rows = []] = await this.compared.database.readAll([statedAmong(this.progress.run, [...expected.keys()])]);
    for (const row of rows) expected.delete(String(row.object_id));
    return [...expected];
  }
}

/** A page of objects: how many were looked at, their differences, and where the next page begins. */
interface MissingPage {
  readonly count: number;
  readonly next: ChangedSince | undefined;
  readonly found: readonly Difference[];
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
  const none = { order: undefined, allocation: undefined, withdrawal: undefined };
  return { objectId, account, symbol, ...none, trades: noTrades };
}

function addTo(stated: Stated, item: StoredItem): void {
  if (item.section === 'order') stated.order = item;
  if (item.section === 'allocation' || item.section === 'withdrawal') stated[item.section] = item;
  if (item.section !== 'trade') return;
  const { itemId: key, quantity, otherKobo, at } = item;
  stated.trades = withTrade(stated.trades, { key, quantity, priceKobo: otherKobo ?? 0n, at: at ?? 0 });
}

function toOrder({ account, symbol, side, state, quantity, otherKobo, reference }: StoredItem) {
  const exchangeOrderId = reference === '' ? null : reference;
  return { account, symbol, side, state, quantity, exchangeOrderId, filledQuantity: otherKobo ?? 0n };
}

function toMoney({ account, state, amountKobo, itemId: destination, reference }: StoredItem): StatedMoney {
  return { account, state, destination, amountKobo: amountKobo ?? 0n, reference: reference === '' ? null : reference };
}
