import type { Database } from '../../db/database.ts';
import { isDuplicate, isGuardFalse } from '../../db/errors.ts';
import { fenced, type Lease } from '../../db/lease.ts';
import { guard, type SqlRow, type Statement, sql, statement } from '../../db/statement.ts';
import {
  type Finding,
  type FixCancel,
  type FixNumbers,
  type FixOrder,
  type FixReport,
  fixCancels,
  fixFindings,
  fixNumbers,
  fixOrders,
  fixReports,
  fixSubmissions,
} from './table.ts';

/** What a message that is sent puts into the record. `startedAt` and `number` are filled in with its number. */
export type Kept =
  | { readonly kind: 'order'; readonly row: FixOrder }
  | { readonly kind: 'cancel'; readonly row: FixCancel }
  | { readonly kind: 'nothing' };

/** What some messages of the exchange change. */
export interface Changes {
  readonly orders: readonly { readonly before: FixOrder; readonly after: FixOrder }[];
  readonly cancels: readonly { readonly before: FixCancel; readonly after: FixCancel }[];
  readonly reports: readonly Omit<FixReport, 'number'>[];
  readonly findings: readonly Finding[];
}

/** Which rows some messages are about. */
export interface Subjects {
  readonly orderIds: readonly string[];
  /** The numbers of our messages that were rejected. */
  readonly numbers: readonly bigint[];
}

/** The rows that some messages are about. */
export interface Known {
  readonly startedAt: number;
  readonly orders: readonly FixOrder[];
  readonly cancels: readonly FixCancel[];
  /** The ExecIDs that were applied, by order. */
  readonly execIds: ReadonlyMap<string, ReadonlySet<string>>;
}

/** One thing that was taken. */
export interface ListedSubmission {
  readonly number: bigint;
  readonly clientId: string;
  readonly note: Buffer;
}

/** The lease of the process that has the session. */
export const leaseName = 'fix-session';

const longestPage = 1_000;

/** Orders that live, with the ExecIDs of their reports. Those that are not among them are read. */
const mostRemembered = 5_000;
/** How often numbers that were wrong are read again for one write. */
const mostTries = 3;

/** All that the record has of an order, from the time when this process stored it. */
interface Remembered {
  readonly order: FixOrder;
  readonly cancels: readonly FixCancel[];
  readonly execIds: ReadonlySet<string>;
}

/**
 * The record of one session: its numbers, the orders that were given one, and the reports about them. Each write is one round
 * trip. It fails unless the row of numbers is as this process knows it and no later holder of the lease has written. So of
 * two processes only one can write, whatever they believe.
 */
export class FixStore {
  /** Undefined: they must be read. */
  #numbers: FixNumbers | undefined;
  readonly #remembered = new Map<string, Remembered>();
  /** Writes go one after the other, because each knows the numbers that the one before it left. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly database: Database,
    private readonly lease: Pick<Lease, 'name' | 'fence'>,
  ) {}

  /** Makes this process the one that writes. Throws if a later holder of the lease has done so. */
  async take(): Promise<void> {
    const locked = fixNumbers.find({ id: 1n }, fixNumbers.all, statement('FOR UPDATE'));
    await this.database.transaction([fenced(this.lease), locked], ([leases, rows]) => {
      const numbers = numbersOf(rows ?? []);
      if (leases?.[0] === undefined || numbers.fence > this.lease.fence) throw new LeaseLost();
      const after = { ...numbers, fence: this.lease.fence, version: numbers.version + 1n };
      return { writes: fixNumbers.update(numbers, after), result: undefined };
    });
  }

  async numbers(): Promise<FixNumbers> {
    return numbersOf(await this.database.read(fixNumbers.find({ id: 1n })));
  }

  /** Begins a numbering: both sides count from 1. */
  startDay(startedAt: number): Promise<FixNumbers> {
    return this.#write((numbers) => {
      const after = { ...numbers, startedAt, nextOut: 1n, nextIn: 1n };
      return { after, writes: [], result: after };
    });
  }

  /**
   * Commits that messages have their numbers, before a byte of them is written. Returns the ids of orders that the record had
   * before: they are not stored again, and must not be written.
   */
  async sending(
    messages: readonly { readonly number: number; readonly kept: Kept }[],
    nextOut: number,
  ): Promise<ReadonlySet<string>> {
    try {
      await this.#store(messages, nextOut);
      return new Set();
    } catch (error) {
      const ids = messages.flatMap(({ kept }) => (kept.kind === 'order' ? [kept.row.id] : []));
      if (!isDuplicate(error) || ids.length === 0) throw error;
      const [rows = []] = await this.database.readAll([fixOrders.find({ id: ids }, fixOrders.only('id'))]);
      const known = new Set(rows.map((row) => fixOrders.only('id').read(row).id));
      const others = messages.filter(({ kept }) => kept.kind !== 'order' || !known.has(kept.row.id));
      await this.#store(others, nextOut);
      return known;
    }
  }

  async #store(messages: readonly { readonly number: number; readonly kept: Kept }[], nextOut: number): Promise<void> {
    const { orders, cancels } = await this.#write((numbers) => {
      const { startedAt } = numbers;
      const rows = messages.map(({ number, kept }) => ({ kept, numbered: { startedAt, number: BigInt(number) } }));
      const orders = rows.flatMap(({ kept, numbered }) =>
        kept.kind === 'order' ? [{ ...kept.row, ...numbered }] : [],
      );
      const cancels = rows.flatMap(({ kept, numbered }) =>
        kept.kind === 'cancel' ? [{ ...kept.row, ...numbered }] : [],
      );
      const writes = [
        ...(orders.length === 0 ? [] : [fixOrders.insert(...orders)]),
        ...(cancels.length === 0 ? [] : [fixCancels.insert(...cancels)]),
      ];
      return { after: { ...numbers, nextOut: BigInt(nextOut) }, writes, result: { orders, cancels } };
    });
    for (const order of orders) this.#remember({ order, cancels: [], execIds: new Set() });
    for (const cancel of cancels) {
      const found = this.#remembered.get(cancel.orderId);
      if (found !== undefined) this.#remember({ ...found, cancels: [...found.cancels, cancel] });
    }
  }

  /**
   * Stores an order that was never written and never will be, so that its id is known for ever. False: the record had the id
   * before.
   */
  async refuse(order: FixOrder): Promise<boolean> {
    const writes = [fixOrders.insert({ ...order, state: 'unsent' })];
    try {
      await this.#write((numbers) => ({ after: numbers, writes, result: undefined }));
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  /** Notes that these were never written and never will be, or that the exchange has proven not to have them. */
  async unsent(orderIds: readonly string[], cancelIds: readonly string[]): Promise<void> {
    if (orderIds.length + cancelIds.length === 0) return;
    const writes = [
      ...(orderIds.length === 0 ? [] : [fixOrders.set({ id: orderIds, state: 'sending' }, { state: 'unsent' })]),
      ...(cancelIds.length === 0 ? [] : [fixCancels.set({ id: cancelIds, state: 'sending' }, { state: 'unsent' })]),
    ];
    await this.#write((numbers) => ({ after: numbers, writes, result: undefined }));
    for (const id of orderIds) this.#remembered.delete(id);
    for (const { order, cancels } of this.#remembered.values()) {
      if (cancels.some(({ id }) => cancelIds.includes(id))) this.#remembered.delete(order.id);
    }
  }

  /**
   * Commits what messages of the exchange change, with the number of the next one that is expected. `decide` is given the rows
   * that they are about. Returns the reports with their numbers.
   */
  async received<T>(
    nextIn: number,
    subjects: Subjects,
    decide: (known: Known) => { readonly changes: Changes; readonly result: T },
  ): Promise<{ readonly reports: readonly FixReport[]; readonly result: T }> {
    const { changes, reports, result } = await this.#write(async (numbers) => {
      const known = {
        startedAt: numbers.startedAt,
        ...(this.#recall(subjects) ?? (await this.#read(subjects, numbers))),
      };
      const { changes, result } = decide(known);
      const reports = changes.reports.map((report, at) => ({ ...report, number: numbers.lastReport + BigInt(at + 1) }));
      const taken = changes.orders
        .filter(({ before, after }) => isTaken(after) && !isTaken(before))
        .map(({ after }, at) => ({ number: numbers.lastSubmission + BigInt(at + 1), clientId: after.id, note: null }));
      const after = {
        ...numbers,
        nextIn: BigInt(nextIn),
        lastReport: numbers.lastReport + BigInt(reports.length),
        lastSubmission: numbers.lastSubmission + BigInt(taken.length),
      };
      const findings = changes.findings.map((finding) => ({ ...finding, id: 0n }));
      const writes = [
        ...changes.orders.flatMap(({ before, after }) => fixOrders.update(before, after)),
        ...changes.cancels.flatMap(({ before, after }) => fixCancels.update(before, after)),
        ...(reports.length === 0 ? [] : [fixReports.insert(...reports)]),
        ...(taken.length === 0 ? [] : [fixSubmissions.insert(...taken)]),
        ...(findings.length === 0 ? [] : [fixFindings.insert(...findings)]),
      ];
      return { after, writes, result: { changes, reports, result } };
    });
    this.#learn(changes);
    return { reports, result };
  }

  /** The rows that messages are about, if this process knows all of them. */
  #recall({ orderIds, numbers }: Subjects): Omit<Known, 'startedAt'> | undefined {
    const found = orderIds.map((id) => this.#remembered.get(id));
    if (numbers.length > 0 || found.includes(undefined)) return undefined;
    const all = found as readonly Remembered[];
    return {
      orders: all.map(({ order }) => order),
      cancels: all.flatMap(({ cancels }) => cancels),
      execIds: new Map(all.map(({ order, execIds }) => [order.id, execIds])),
    };
  }

  /** Nobody else changes these rows, so they need no lock. */
  async #read({ orderIds, numbers }: Subjects, { startedAt }: FixNumbers): Promise<Omit<Known, 'startedAt'>> {
    const ofOrders =
      orderIds.length === 0
        ? []
        : [
            fixOrders.find({ id: orderIds }),
            fixCancels.find({ orderId: orderIds }),
            sql`SELECT order_id, exec_id FROM fix_reports WHERE order_id IN (${orderIds.map((id) => Buffer.from(id))}) AND exec_id IS NOT NULL`,
          ];
    const ofNumbers =
      numbers.length === 0
        ? []
        : [fixOrders.find({ startedAt, number: numbers }), fixCancels.find({ startedAt, number: numbers })];
    const some = await this.database.readAll([nothing, ...ofOrders, ...ofNumbers]);
    const [orders = [], cancels = [], execs = []] = ofOrders.length === 0 ? [] : some.slice(1);
    const [moreOrders = [], moreCancels = []] = ofNumbers.length === 0 ? [] : some.slice(-ofNumbers.length);
    return {
      orders: unique([...orders, ...moreOrders].map((row) => fixOrders.all.read(row))),
      cancels: unique([...cancels, ...moreCancels].map((row) => fixCancels.all.read(row))),
      execIds: byOrder(execs),
    };
  }

  #learn({ orders, cancels, reports }: Changes): void {
    for (const { after } of orders) {
      const found = this.#remembered.get(after.id);
      if (after.state === 'final') this.#remembered.delete(after.id);
      else if (found !== undefined) this.#remember({ ...found, order: after });
    }
    for (const { after } of cancels) {
      const found = this.#remembered.get(after.orderId);
      if (found === undefined) continue;
      this.#remember({ ...found, cancels: found.cancels.map((each) => (each.id === after.id ? after : each)) });
    }
    for (const { orderId, execId } of reports) {
      const found = this.#remembered.get(orderId);
      if (found !== undefined && execId !== null) {
        this.#remember({ ...found, execIds: new Set([...found.execIds, execId]) });
      }
    }
  }

  #remember(one: Remembered): void {
    this.#remembered.delete(one.order.id);
    this.#remembered.set(one.order.id, one);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > mostRemembered && oldest !== undefined) this.#remembered.delete(oldest);
  }

  /** Takes what the back office was given into the list of submissions. */
  async takeSubmissions(afterNumber: bigint, theirs: readonly ListedSubmission[]): Promise<void> {
    await this.#write((numbers) => {
      const last = theirs.at(-1);
      // Another call was first.
      if (last === undefined || numbers.backOfficeSubmission !== afterNumber) {
        return { after: numbers, writes: [], result: undefined };
      }
      const rows = theirs.map(({ clientId, note }, at) => ({
        number: numbers.lastSubmission + BigInt(at + 1),
        clientId,
        note,
      }));
      const after = {
        ...numbers,
        lastSubmission: numbers.lastSubmission + BigInt(rows.length),
        backOfficeSubmission: last.number,
      };
      return { after, writes: [fixSubmissions.insert(...rows)], result: undefined };
    });
  }

  async order(id: string): Promise<FixOrder | undefined> {
    const [row] = await this.database.read(fixOrders.find({ id }));
    return row === undefined ? undefined : fixOrders.all.read(row);
  }

  async cancelsOf(orderId: string): Promise<FixCancel[]> {
    return (await this.database.read(fixCancels.find({ orderId }))).map((row) => fixCancels.all.read(row));
  }

  /** Orders of which nothing is known, oldest first. */
  async inDoubt(limit: number): Promise<FixOrder[]> {
    const tail = statement(`ORDER BY received_at LIMIT ${limit}`);
    return (await this.database.read(fixOrders.find({ state: 'sending' }, fixOrders.all, tail))).map((row) =>
      fixOrders.all.read(row),
    );
  }

  /**
   * Orders of an earlier session day that were good for it, and that have not ended, oldest first; without those that were
   * noted so in this one.
   */
  async notEnded(limit: number): Promise<FixOrder[]> {
    const rows = await this.database.read(
      statement(
        `SELECT ${fixOrders.all.list} FROM fix_orders WHERE state = 'open' AND time_in_force = 'day'
          AND received_at < (SELECT started_at FROM fix_numbers WHERE id = 1)
          AND id NOT IN (SELECT order_id FROM fix_findings WHERE what = 'not_ended'
            AND at >= (SELECT started_at FROM fix_numbers WHERE id = 1))
          ORDER BY received_at LIMIT ${limit}`,
      ),
    );
    return rows.map((row) => fixOrders.all.read(row));
  }

  /** Writes down what an operator must look at. */
  async note(finding: Finding): Promise<void> {
    await this.#write((numbers) => ({
      after: numbers,
      writes: [fixFindings.insert({ ...finding, id: 0n })],
      result: undefined,
    }));
  }

  /** The reports about an order above a number, oldest first, one more than asked for if there are more. */
  async reportsOf(orderId: string, afterNumber: bigint): Promise<{ reports: FixReport[]; hasMore: boolean }> {
    const tail = statement(`AND number > ? ORDER BY number LIMIT ${longestPage + 1}`, afterNumber);
    const rows = await this.database.read(fixReports.find({ orderId }, fixReports.all, tail));
    const reports = rows.slice(0, longestPage).map((row) => fixReports.all.read(row));
    return { reports, hasMore: rows.length > longestPage };
  }

  /** Reports above a number, and the number of the last one there is. */
  async reportsAfter(number: bigint, limit: number): Promise<{ reports: FixReport[]; last: bigint }> {
    // In this order: a report that comes between the two reads must not make the last one look sent.
    const [[numbers], rows = []] = (await this.database.readAll([
      statement('SELECT last_report FROM fix_numbers WHERE id = 1'),
      statement(
        `SELECT ${fixReports.all.list} FROM fix_reports WHERE number > ? ORDER BY number LIMIT ${limit}`,
        number,
      ),
    ])) as [SqlRow[], SqlRow[]];
    const reports = rows.map((row) => fixReports.all.read(row));
    return { reports, last: BigInt(String(numbers?.last_report ?? 0)) };
  }

  /** A page of what was taken. */
  async submissions(afterNumber: bigint, limit: number): Promise<ListedSubmission[]> {
    const rows = await this.database.read(
      statement(
        `SELECT s.number, s.client_id, COALESCE(s.note, o.note) AS note
         FROM fix_submissions s LEFT JOIN fix_orders o ON o.id = s.client_id
         WHERE s.number > ? ORDER BY s.number LIMIT ${limit}`,
        afterNumber,
      ),
    );
    return rows.map(({ number, client_id, note }) => ({
      number: BigInt(String(number)),
      clientId: String(client_id),
      note: note as Buffer,
    }));
  }

  /** How many orders are in each state that an operator watches, and the age of the oldest one in doubt. */
  async counts(): Promise<{ inDoubt: number; oldestInDoubtAt: number | undefined; open: number }> {
    const rows = await this.database.read(
      statement(
        `SELECT state, COUNT(*) AS orders, MIN(received_at) AS oldest FROM fix_orders
         WHERE state IN ('sending', 'open') GROUP BY state`,
      ),
    );
    const of = (state: string) => rows.find((row) => row.state === state);
    const oldest = of('sending')?.oldest;
    return {
      inDoubt: Number(of('sending')?.orders ?? 0),
      oldestInDoubtAt: oldest instanceof Date ? oldest.getTime() : undefined,
      open: Number(of('open')?.orders ?? 0),
    };
  }

  /** Writes after all writes before it. If the numbers were not as this process knew them, it decides again. */
  #write<T>(decide: (numbers: FixNumbers) => Decided<T> | Promise<Decided<T>>): Promise<T> {
    const writing = this.#last.then(async () => {
      for (let tries = 1; ; tries += 1) {
        try {
          return await this.#writeNow(decide);
        } catch (error) {
          // What was written before may have been committed without an answer, or another process has the session.
          this.#numbers = undefined;
          this.#remembered.clear();
          if (!isGuardFalse(error) || tries >= mostTries) throw error;
        }
      }
    });
    this.#last = writing.catch(() => {});
    return writing;
  }

  async #writeNow<T>(decide: (numbers: FixNumbers) => Decided<T> | Promise<Decided<T>>): Promise<T> {
    this.#numbers ??= await this.numbers();
    const numbers = this.#numbers;
    if (numbers.fence !== this.lease.fence) throw new LeaseLost();
    const { after, writes, result } = await decide(numbers);
    if (writes.length === 0 && isSame(numbers, after)) return result;
    const { fence, version } = numbers;
    const next = { ...after, version: version + 1n };
    const update = fixNumbers.set({ id: 1n, fence, version }, changed(numbers, next));
    await this.database.writeAll([update, guard([statement('ROW_COUNT() = 1')]), ...writes]);
    this.#numbers = next;
    return result;
  }
}

/** What a write makes of the numbers, and what else it writes. */
interface Decided<T> {
  readonly after: FixNumbers;
  readonly writes: readonly Statement[];
  readonly result: T;
}

function isSame(one: FixNumbers, other: FixNumbers): boolean {
  return fixNumbers.fields.every((field) => one[field] === other[field]);
}

/** The fields that differ. */
function changed(before: FixNumbers, after: FixNumbers): Partial<FixNumbers> {
  return Object.fromEntries(
    fixNumbers.fields.filter((field) => before[field] !== after[field]).map((field) => [field, after[field]]),
  );
}

/** Another process has the session. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

const nothing = statement('SELECT 1 FROM fix_numbers WHERE id = 0');

function isTaken({ state }: FixOrder): boolean {
  return state === 'open' || state === 'final';
}

function numbersOf([row]: readonly SqlRow[]): FixNumbers {
  if (row === undefined) throw new Error('the database has no numbers of a session: migrate it first');
  return fixNumbers.all.read(row);
}

function unique<Row extends { readonly id: string }>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}

function byOrder(rows: readonly SqlRow[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const row of rows) {
    const id = String(row.order_id);
    const known = found.get(id) ?? new Set();
    found.set(id, known.add(String(row.exec_id)));
  }
  return found;
}
