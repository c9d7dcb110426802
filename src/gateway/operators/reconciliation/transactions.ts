import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Transaction } from '../../../gen/marina/broker/v1/accounts_pb.ts';
import { daysAfter, daysBefore, lagosDay } from '../../../kit/clock.ts';
import { groupBy } from '../../../kit/group.ts';
import { ApiError } from '../../edge/errors.ts';
import type { Broker } from '../../trading/broker/broker.ts';
import type { ReadQueue } from '../../trading/broker/read-queue.ts';
import { placeOfTransaction, type RecordRange, type TransactionPlace } from '../../trading/broker/records.ts';
import { AccountDay } from './account-day.ts';
import { type Compared, OurObjects } from './ours.ts';
import type { RunProgress } from './progress.ts';
import type { Difference } from './rules.ts';
import { beforeAccounts, itemsByAccount, note, notesOf, ownersOf } from './store.ts';
import { reconciliationItems } from './table.ts';
import {
  bookingMarginMs,
  compareTransactions,
  type Named,
  namedBy,
  type OwnAccount,
  unreadable,
  wrongOpening,
  wrongSums,
} from './transaction-rules.ts';

/** The reads of transactions. */
export interface TransactionReads {
  readonly broker: Pick<Broker, 'records'> & { readonly orders: Pick<Broker['orders'], 'capabilities'> };
  readonly reads: Pick<ReadQueue, 'readFor'>;
  readonly now: () => number;
}

/** The name in the queue of reads. It reads one page at a time, so all but one of the slots are the partners'. */
const reader = 'reconciliation';
const itemsTogether = 500;
const objectsTogether = 100;
/** After every account. */
const end = '\x7f';
/** The largest page of the broker. */
const pageSize = 100;
/** More than a person books in a day. An account with more is a break, so that no account holds up the others for long. */
const maxPages = 200;
/** How far back the neighbour of the first transaction of the day may be. */
const maxDaysBack = 366;
/** How many days after the period are read at most, for what is booked late. */
const daysLater = 2;
/** How often a balance is read again that does not fit, because something may be booked between two reads. */
const maxTries = 3;
const dayMs = 86_400_000;

/**
 * Reads the transactions of each account that moved, and finds those that do not add up or do not agree with the gateway.
 * Leaves them out if the broker does not offer them. True when all are compared.
 */
export async function compareAccounts(
  progress: RunProgress,
  compared: Compared,
  { hasDayBefore, ...parts }: TransactionReads & { readonly hasDayBefore: boolean },
): Promise<boolean> {
  const { database } = compared;
  const notes = await notesOf(database, progress.run);
  const { position } = progress.run;
  if (!notes.has('transactions_read') && position === '') {
    const capabilities = await parts.reads.readFor(reader, (time) => parts.broker.orders.capabilities(time));
    if (!capabilities.accountTransactions) {
      if (!notes.has('transactions_not_offered'))
        await progress.save({}, [note(progress.run, 'transactions_not_offered')]);
      return true;
    }
  }
  const accounts = new AccountsOfDay(progress, compared, parts, hasDayBefore);
  let after = position === '' ? beforeAccounts : [position, end, '', '', ''];
  let open: AccountDay | undefined;
  while (!progress.isInterrupted) {
    const rows = await database.read(itemsByAccount(progress.run, after, itemsTogether));
    const ended: AccountDay[] = [];
    for (const item of rows.map(reconciliationItems.all.read)) {
      if (open !== undefined && open.account !== item.account) ended.push(open);
      if (open?.account !== item.account) open = new AccountDay(item.account);
      open.add(item);
      after = [item.account, item.symbol, item.objectId, item.section, item.itemId];
    }
    const isLast = rows.length < itemsTogether;
    if (isLast && open !== undefined) ended.push(open);
    if (!(await accounts.compare(ended))) return false;
    if (!isLast) continue;
    if (!notes.has('transactions_read')) await progress.save({}, [note(progress.run, 'transactions_read')]);
    return true;
  }
  return false;
}

/** Compares accounts one after the other. */
class AccountsOfDay {
  readonly #ours: OurObjects;

  constructor(
    private readonly progress: RunProgress,
    private readonly compared: Compared,
    private readonly parts: TransactionReads,
    private readonly hasDayBefore: boolean,
  ) {
    this.#ours = new OurObjects(compared);
  }

  /** Compares those of the accounts that moved and that a partner has. False if it is interrupted. */
  async compare(accounts: readonly AccountDay[]): Promise<boolean> {
    const moved = accounts.filter((one) => one.hasMoved(this.hasDayBefore));
    const [rows = []] =
      moved.length === 0 ? [] : await this.compared.database.readAll([ownersOf(moved.map(({ account }) => account))]);
    const owners = new Map(rows.map(({ account, partner_id: id }) => [String(account), String(id)]));
    for (const one of moved) {
      const partnerId = owners.get(one.account);
      if (partnerId === undefined) continue;
      if (this.progress.isInterrupted) return false;
      const found = await this.#account({ account: one.account, partnerId }, one.objects);
      // Its transactions may not have been read to the end.
      if (this.progress.isInterrupted) return false;
      await this.progress.saveFound({ position: one.account }, found);
    }
    const last = accounts.at(-1)?.account;
    if (last !== undefined && last !== this.progress.run.position) await this.progress.save({ position: last });
    return true;
  }

  async #account(of: OwnAccount, stated: readonly Named[]): Promise<Difference[]> {
    const { period } = this.compared;
    try {
      const until = Math.min(this.parts.now(), period.to + daysLater * dayMs);
      const transactions = await this.#transactions(of.account, period.from - bookingMarginMs);
      if (transactions === undefined) return [unreadable(of, `more than ${maxPages * pageSize} transactions`)];
      return [
        ...wrongSums(of, transactions, period),
        ...(await this.#opening(of, transactions)),
        ...(await this.#objects(of, stated, transactions, until)),
      ];
    } catch (error) {
      const code = error instanceof ApiError ? error.code : undefined;
      if (code === 'account_not_at_broker') return [unreadable(of, 'no such account')];
      if (code === 'exchange_error') return [unreadable(of, 'an answer that makes no sense')];
      throw error;
    }
  }

  /** The last day that is read: a broker whose clock is ahead may have begun the next one. */
  #lastDay(): string {
    const latest = daysAfter(lagosDay(this.compared.period.to), daysLater);
    const tomorrow = daysAfter(lagosDay(this.parts.now()), 1);
    return tomorrow < latest ? tomorrow : latest;
  }

  /** Transactions from the newest back to the first that is older than an instant; undefined: they are too many. */
  async #transactions(account: string, since: number): Promise<Transaction[] | undefined> {
    const found: Transaction[] = [];
    let after: TransactionPlace | undefined;
    for (let page = 0; page < maxPages; page += 1) {
      const { transactions, hasMore } = await this.#page(account, after, pageSize);
      for (const one of transactions) {
        found.push(one);
        after = placeOfTransaction(one);
        if (after.bookedAtMs < since) return found;
      }
      if (!hasMore || this.progress.isInterrupted) return found;
    }
    return undefined;
  }

  #page(account: string, after: TransactionPlace | undefined, limit: number) {
    const to = this.#lastDay();
    const from = daysBefore(lagosDay(this.compared.period.from), maxDaysBack);
    const range: RecordRange<TransactionPlace> = { account, from, to, after, limit };
    return this.parts.reads.readFor(reader, (time) => this.parts.broker.records.uncheckedTransactions(range, time));
  }

  /** Compares today's opening balance. Of a day that is long over, nobody has today's transactions. */
  async #opening(of: OwnAccount, transactions: readonly Transaction[]): Promise<Difference[]> {
    const { now, reads, broker } = this.parts;
    if (this.#lastDay() <= lagosDay(now())) return [];
    let known = transactions;
    for (let tries = 0; tries < maxTries; tries += 1) {
      const { openingKobo, asOf } = await reads.readFor(reader, (time) => broker.records.balance(of.account, time));
      const at = now();
      const about = asOf === undefined ? [at, at - bookingMarginMs, at + bookingMarginMs] : [timestampMs(asOf)];
      const found = wrongOpening(of, known, { openingKobo, days: about.map(lagosDay) });
      if (found.length === 0) return [];
      const { transactions: again } = await this.#page(of.account, undefined, 1);
      if (again[0]?.id === known[0]?.id) return found;
      known = (await this.#transactions(of.account, at - bookingMarginMs - dayMs)) ?? [];
    }
    return [];
  }

  /** Compares the objects that the statement or a transaction names. One that neither names is missing in the statement. */
  async #objects(of: OwnAccount, stated: readonly Named[], transactions: readonly Transaction[], until: number) {
    const { period, isShared } = this.compared;
    const keyOf = ({ kind, id }: Named) => `${kind} ${id}`;
    const named = transactions.filter((one) => namedBy(one) !== undefined);
    const byObject = groupBy(named, (one) => keyOf(namedBy(one) as Named));
    const objects = new Map([...stated, ...named.map((one) => namedBy(one) as Named)].map((one) => [keyOf(one), one]));
    const all = [...objects.values()];
    const found: Difference[] = [];
    for (let at = 0; at < all.length; at += objectsTogether) {
      const some = all.slice(at, at + objectsTogether);
      const idsOf = (kind: Named['kind']) => some.filter((one) => one.kind === kind).map(({ id }) => id);
      const ours = {
        allocation: await this.#ours.moneyById('allocation', idsOf('allocation')),
        withdrawal: await this.#ours.moneyById('withdrawal', idsOf('withdrawal')),
      };
      for (const one of some) {
        const our = ours[one.kind].get(one.id);
        if (our === undefined && isShared) continue;
        const booked = byObject.get(keyOf(one)) ?? [];
        found.push(...compareTransactions(of, one, our, booked, { period, until }));
      }
    }
    return found;
  }
}
