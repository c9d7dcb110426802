import type { Database } from '../../gateway/store/database.ts';
import { isDuplicate, isGuardFalse } from '../../gateway/store/errors.ts';
import { fenced, type Lease } from '../../gateway/store/lease.ts';
import { guard, type SqlRow, type Statement, sql, statement } from '../../gateway/store/statement.ts';
import { markMisnamed, markPassedOver, markUnmatched, type Unmatched } from './marks.ts';
import { withNote } from './notes.ts';
import { FixReads, type ListedSubmission, numbersOf } from './reads.ts';
import {
  type Finding,
  type FixCancel,
  type FixNumbers,
  type FixOrder,
  type FixReport,
  type FixReportKind,
  type FixTradeChange,
  fixCancels,
  fixFindings,
  fixNumbers,
  fixOrders,
  fixReports,
  fixSubmissions,
  fixTradeChanges,
  fixUnsupported,
} from './table.ts';
import { type UnsupportedMessage, unsupportedWrites } from './unsupported.ts';

/** The rows that a sent message puts into the record. `startedAt` and `number` are filled in with its number. */
export type Kept =
  | { readonly kind: 'order'; readonly row: FixOrder }
  | { readonly kind: 'cancel'; readonly row: FixCancel }
  | { readonly kind: 'question'; readonly orderId: string }
  | { readonly kind: 'nothing' };

/** The changes that some messages of the exchange make. */
export interface Changes {
  readonly orders: readonly { readonly before: FixOrder; readonly after: FixOrder }[];
  readonly cancels: readonly { readonly before: FixCancel; readonly after: FixCancel }[];
  readonly reports: readonly Omit<FixReport, 'number'>[];
  readonly tradeChanges: readonly FixTradeChange[];
  readonly findings: readonly Finding[];
  /** Messages of types that are not supported, with the session day in which they came. */
  readonly unsupported?: readonly UnsupportedMessage[];
  /** A message was passed over that may have been about any order. */
  readonly passedOver: boolean;
  /** Reports that name no order of ours, and may be about orders in doubt. */
  readonly unmatched?: readonly Unmatched[];
  /** Reports that name an order of ours and are about another one: those that live must be asked about. */
  readonly misnamed?: readonly Unmatched[];
}

/** An event that was applied to an order by its ExecID: a report, or the exchange's change of a trade. */
export interface Executed {
  readonly kind: FixReportKind | 'trade_cancelled' | 'trade_corrected';
  readonly quantity: bigint | null;
  readonly priceKobo: bigint | null;
  /** The CumQty that came with it. */
  readonly counted: bigint | null;
  /** The trade that was changed. */
  readonly execRefId: string | null;
}

export type ExecutedOf = ReadonlyMap<string, ReadonlyMap<string, Executed>>;

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
  /** The applied events, by order and ExecID. */
  readonly executed: ExecutedOf;
}

/** The lease of the process that has the session. */
export const leaseName = 'fix-session';

/** Orders that live, with the ExecIDs of their reports. Those that are not among them are read. */
const maxRemembered = 5_000;
/** How often numbers that were wrong are read again for one write. */
const maxTries = 3;

/** All that the record has of an order, from the time when this process stored it. */
interface Remembered {
  readonly order: FixOrder;
  readonly cancels: readonly FixCancel[];
  readonly executed: Map<string, Executed>;
}

/**
 * The record of one session: its numbers, the orders that were given one, and the reports about them. Each write is one round
 * trip. It fails unless the row of numbers is as this process knows it and no later holder of the lease has written. So of
 * two processes only one can write, whatever they believe.
 */
export class FixStore extends FixReads {
  /** Undefined: they must be read. */
  #numbers: FixNumbers | undefined;
  readonly #remembered = new Map<string, Remembered>();
  /** Writes go one after the other, because each knows the numbers that the one before it left. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    database: Database,
    private readonly lease: Pick<Lease, 'name' | 'fence'>,
  ) {
    super(database);
  }

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

  /** Begins a numbering: both sides count from 1. */
  startDay(startedAt: number): Promise<FixNumbers> {
    return this.#write((numbers) => {
      const after = { ...numbers, startedAt, nextOut: 1n, nextIn: 1n };
      // The exchange will not repeat messages of the numbering before that did not get through.
      const learn = () => this.#remembered.clear();
      return { after, writes: markPassedOver, result: after, learn };
    });
  }

  /**
   * Commits that messages have their numbers, before a byte of them is written. Returns the ids of orders that the record had
   * before: they are not stored again, and must not be written. `nextIn`: all of the exchange before this number is stored.
   */
  async sending(
    messages: readonly { readonly number: number; readonly kept: Kept }[],
    nextOut: number,
    nextIn: number,
  ): Promise<ReadonlySet<string>> {
    try {
      await this.#store(messages, nextOut, nextIn);
      return new Set();
    } catch (error) {
      const ids = messages.flatMap(({ kept }) => (kept.kind === 'order' ? [kept.row.id] : []));
      if (!isDuplicate(error) || ids.length === 0) throw error;
      const [rows = []] = await this.database.readAll([fixOrders.find({ id: ids }, fixOrders.only('id'))]);
      const known = new Set(rows.map((row) => fixOrders.only('id').read(row).id));
      const others = messages.filter(({ kept }) => kept.kind !== 'order' || !known.has(kept.row.id));
      await this.#store(others, nextOut, nextIn);
      return known;
    }
  }

  async #store(
    messages: readonly { readonly number: number; readonly kept: Kept }[],
    nextOut: number,
    nextIn: number,
  ): Promise<void> {
    await this.#write((numbers) => {
      const { startedAt, lastSubmission } = numbers;
      const rows = messages.map(({ number, kept }) => ({ kept, numbered: { startedAt, number: BigInt(number) } }));
      const orders = rows.flatMap(({ kept, numbered }) =>
        kept.kind === 'order' ? [{ ...kept.row, ...numbered }] : [],
      );
      const cancels = rows.flatMap(({ kept, numbered }) =>
        kept.kind === 'cancel' ? [{ ...kept.row, ...numbered }] : [],
      );
      const askedIds = rows.flatMap(({ kept }) => (kept.kind === 'question' ? [kept.orderId] : []));
      // From now on it may be sent, so a gateway that lost it must find it.
      const listed = orders.map(({ id }, at) => ({
        number: lastSubmission + BigInt(at + 1),
        clientId: id,
        note: null,
      }));
      const writes = [
        ...(orders.length === 0 ? [] : [fixOrders.insert(...orders), fixSubmissions.insert(...listed)]),
        ...(cancels.length === 0 ? [] : [fixCancels.insert(...cancels)]),
        ...(askedIds.length === 0 ? [] : [fixOrders.set({ id: [...new Set(askedIds)] }, { asked: true })]),
      ];
      const after = {
        ...numbers,
        nextOut: BigInt(nextOut),
        nextIn: BigInt(Math.max(Number(numbers.nextIn), nextIn)),
        lastSubmission: lastSubmission + BigInt(listed.length),
      };
      const learn = () => {
        for (const order of orders) this.#remember({ order, cancels: [], executed: new Map() });
        for (const cancel of cancels) {
          const found = this.#remembered.get(cancel.orderId);
          if (found !== undefined) this.#remember({ ...found, cancels: [...found.cancels, cancel] });
        }
        for (const id of askedIds) {
          const found = this.#remembered.get(id);
          if (found !== undefined) this.#remember({ ...found, order: { ...found.order, asked: true } });
        }
      };
      return { after, writes, result: undefined, learn };
    });
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
    const learn = () => {
      for (const id of orderIds) this.#remembered.delete(id);
      for (const { order, cancels } of this.#remembered.values()) {
        if (cancels.some(({ id }) => cancelIds.includes(id))) this.#remembered.delete(order.id);
      }
    };
    await this.#write((numbers) => ({ after: numbers, writes, result: undefined, learn }));
  }

  /**
   * Notes that the exchange is proven not to have an order. False: something has become known of it meanwhile, which the proof
   * did not consider.
   */
  absent(orderId: string): Promise<boolean> {
    return this.#write(async (numbers) => {
      const order = await this.order(orderId);
      const isUntouched = order?.state === 'sending' && !order.acknowledged && !order.passedOver;
      if (!isUntouched) return { after: numbers, writes: [], result: false };
      // The row may have been read from a server that lags, so the write proves it.
      const untouched = { id: orderId, state: 'sending', acknowledged: false, passedOver: false } as const;
      const writes = [fixOrders.set(untouched, { state: 'unsent' }), guard([statement('ROW_COUNT() = 1')])];
      const learn = () => void this.#remembered.delete(orderId);
      return { after: numbers, writes, result: true, learn };
    });
  }

  /** Notes that the exchange did not answer requests to cancel in time, so that others may be sent. */
  async lost(cancelIds: readonly string[]): Promise<void> {
    const writes = [fixCancels.set({ id: cancelIds, state: 'sending' }, { state: 'lost' })];
    const learn = () => {
      for (const { order, cancels } of this.#remembered.values()) {
        if (cancels.some(({ id }) => cancelIds.includes(id))) this.#remembered.delete(order.id);
      }
    };
    await this.#write((numbers) => ({ after: numbers, writes, result: undefined, learn }));
  }

  /**
   * Commits what messages of the exchange change, with the number of the next one that is expected. `decide` is given the rows
   * that they are about. `passedOver`: messages before that number were passed over, which may have been about any order.
   * Returns the reports with their numbers.
   */
  received<T>(
    nextIn: number,
    passedOver: boolean,
    subjects: Subjects,
    decide: (known: Known) => { readonly changes: Changes; readonly result: T },
  ): Promise<{ readonly reports: readonly FixReport[]; readonly findings: readonly Finding[]; readonly result: T }> {
    return this.#write(async (numbers) => {
      const known = {
        startedAt: numbers.startedAt,
        ...(this.#recall(subjects) ?? (await this.#read(subjects, numbers))),
      };
      const { changes, result } = decide(known);
      const reports = changes.reports.map((report, at) => ({ ...report, number: numbers.lastReport + BigInt(at + 1) }));
      // A refused order has no number, and was not listed. An order with a number was listed when it got it.
      const revived = changes.orders.filter(
        ({ before, after }) => before.state === 'unsent' && after.state !== 'unsent' && before.number === 0n,
      );
      const listed = revived.map(({ after }, at) => ({
        number: numbers.lastSubmission + BigInt(at + 1),
        clientId: after.id,
        note: null,
      }));
      const after = {
        ...numbers,
        nextIn: BigInt(nextIn),
        lastReport: numbers.lastReport + BigInt(reports.length),
        lastSubmission: numbers.lastSubmission + BigInt(listed.length),
      };
      const { tradeChanges, unmatched = [], misnamed = [] } = changes;
      const unsupported = await this.#unsupported(changes.unsupported ?? []);
      const findings = [...changes.findings, ...unsupported.findings];
      const writes = [
        ...changes.orders.flatMap(({ before, after }) => fixOrders.update(before, after)),
        ...changes.cancels.flatMap(({ before, after }) => fixCancels.update(before, after)),
        ...(reports.length === 0 ? [] : [fixReports.insert(...reports)]),
        ...(tradeChanges.length === 0 ? [] : [fixTradeChanges.insert(...tradeChanges.map(withoutId))]),
        ...(listed.length === 0 ? [] : [fixSubmissions.insert(...listed)]),
        ...(changes.findings.length === 0 ? [] : [fixFindings.insert(...changes.findings.map(withoutId))]),
        ...unsupported.writes,
        ...(passedOver || changes.passedOver
          ? markPassedOver
          : [...markUnmatched(unmatched), ...markMisnamed(misnamed)]),
      ];
      const learn = () => {
        if (passedOver || changes.passedOver || misnamed.length > 0) {
          this.#remembered.clear();
          return;
        }
        this.#learn(changes);
        if (unmatched.length > 0) this.#forgetInDoubt();
      };
      return { after, writes, result: { reports, findings, result }, learn };
    });
  }

  /**
   * Returns the writes of messages of unsupported types, by the rows of their session days that the writing server has.
   */
  async #unsupported(messages: readonly UnsupportedMessage[]): Promise<ReturnType<typeof unsupportedWrites>> {
    if (messages.length === 0) return { findings: [], writes: [] };
    const day = [...new Set(messages.map((message) => message.day))];
    const reads = [nothing, fixUnsupported.find({ day })];
    return this.database.transaction(reads, ([, rows = []]) => {
      const before = rows.map((row) => fixUnsupported.all.read(row));
      return { writes: [], result: unsupportedWrites(messages, before) };
    });
  }

  /** The rows that messages are about, if this process knows all of them. */
  #recall({ orderIds, numbers }: Subjects): Omit<Known, 'startedAt'> | undefined {
    const found = orderIds.map((id) => this.#remembered.get(id));
    if (numbers.length > 0 || found.includes(undefined)) return undefined;
    const all = found as readonly Remembered[];
    return {
      orders: all.map(({ order }) => order),
      cancels: all.flatMap(({ cancels }) => cancels),
      executed: new Map(all.map(({ order, executed }) => [order.id, executed])),
    };
  }

  /** Nobody else changes these rows, so they need no lock. */
  async #read({ orderIds, numbers }: Subjects, { startedAt }: FixNumbers): Promise<Omit<Known, 'startedAt'>> {
    const ofOrders =
      orderIds.length === 0
        ? []
        : [fixOrders.find({ id: orderIds }), fixCancels.find({ orderId: orderIds }), executedOf(orderIds)];
    const ofNumbers =
      numbers.length === 0
        ? []
        : [fixOrders.find({ startedAt, number: numbers }), fixCancels.find({ startedAt, number: numbers })];
    // By the server that writes: what is applied to a row that lags is lost.
    const reads = [nothing, ...ofOrders, ...ofNumbers];
    const some = await this.database.transaction(reads, (rows) => ({ writes: [], result: rows }));
    const [orders = [], cancels = [], execs = []] = ofOrders.length === 0 ? [] : some.slice(1);
    const [moreOrders = [], moreCancels = []] = ofNumbers.length === 0 ? [] : some.slice(-ofNumbers.length);
    return {
      orders: unique([...orders, ...moreOrders].map((row) => fixOrders.all.read(row))),
      cancels: unique([...cancels, ...moreCancels].map((row) => fixCancels.all.read(row))),
      executed: byOrder(execs),
    };
  }

  #learn({ orders, cancels, reports, tradeChanges }: Changes): void {
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
    for (const { orderId, execId, kind, quantity, priceKobo, counted } of reports) {
      if (execId !== null)
        this.#learnExecuted(orderId, execId, { kind, quantity, priceKobo, counted, execRefId: null });
    }
    for (const { orderId, execId, kind, quantity, priceKobo, counted, execRefId } of tradeChanges) {
      const executed = { kind: `trade_${kind}`, quantity, priceKobo, counted, execRefId } as const;
      if (execId !== null) this.#learnExecuted(orderId, execId, executed);
    }
  }

  /** The mark of an unmatched report is only in the rows of orders in doubt, so these are read again. */
  #forgetInDoubt(): void {
    for (const { order } of this.#remembered.values()) {
      if (order.state === 'sending') this.#remembered.delete(order.id);
    }
  }

  #learnExecuted(orderId: string, execId: string, executed: Executed): void {
    const found = this.#remembered.get(orderId);
    // In place: an order may have thousands.
    found?.executed.set(execId, executed);
  }

  #remember(one: Remembered): void {
    this.#remembered.delete(one.order.id);
    this.#remembered.set(one.order.id, one);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > maxRemembered && oldest !== undefined) this.#remembered.delete(oldest);
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

  /** Writes down what an operator must look at, once for an order and a key. Returns whether it is new. */
  note(finding: Finding, key: string): Promise<boolean> {
    return this.#write(async (numbers) => {
      const order = await this.order(finding.orderId);
      const noted = order === undefined ? undefined : withNote(order.noted, key);
      if (order === undefined || noted === undefined) return { after: numbers, writes: [], result: false };
      const writes = [fixFindings.insert(withoutId(finding)), ...fixOrders.update(order, { ...order, noted })];
      const learn = () => void this.#remembered.delete(order.id);
      return { after: numbers, writes, result: true, learn };
    });
  }

  /** Writes after all writes before it. If the numbers were not as this process knew them, it decides again. */
  #write<T>(decide: (numbers: FixNumbers) => Decided<T> | Promise<Decided<T>>): Promise<T> {
    const writing = this.#last.then(async () => {
      for (let tries = 1; ; tries += 1) {
        try {
          return await this.#writeNow(decide);
        } catch (error) {
          // Earlier writes may have been committed without an answer, or another process has the session.
          this.#numbers = undefined;
          this.#remembered.clear();
          if (!isGuardFalse(error) || tries >= maxTries) throw error;
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
    const { after, writes, result, learn } = await decide(numbers);
    if (writes.length === 0 && isSame(numbers, after)) return result;
    const { fence, version } = numbers;
    const next = { ...after, version: version + 1n };
    const update = fixNumbers.set({ id: 1n, fence, version }, changed(numbers, next));
    await this.database.writeAll([update, guard([statement('ROW_COUNT() = 1')]), ...writes]);
    this.#numbers = next;
    // Before the next write, which decides by it.
    learn?.();
    return result;
  }
}

/** The numbers after a write, and its other writes. */
interface Decided<T> {
  readonly after: FixNumbers;
  readonly writes: readonly Statement[];
  readonly result: T;
  /** Brings what this process remembers in line with what was committed. */
  readonly learn?: () => void;
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

function executedOf(orderIds: readonly string[]): Statement {
  const ids = orderIds.map((id) => Buffer.from(id));
  return sql`SELECT order_id, exec_id, kind, quantity, price_kobo, counted, NULL AS exec_ref_id, 0 AS id FROM fix_reports
    WHERE order_id IN (${ids}) AND exec_id IS NOT NULL
    UNION ALL SELECT order_id, exec_id, CONCAT('trade_', kind), quantity, price_kobo, counted, exec_ref_id, id FROM fix_trade_changes
    WHERE order_id IN (${ids}) AND exec_id IS NOT NULL ORDER BY id`;
}

/** A row to which the database gives its id. */
function withoutId<Row extends object>(row: Row): Row & { readonly id: bigint } {
  return { ...row, id: 0n };
}

function unique<Row extends { readonly id: string }>(rows: readonly Row[]): Row[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}

function byOrder(rows: readonly SqlRow[]): ExecutedOf {
  const found = new Map<string, Map<string, Executed>>();
  const whole = (value: unknown) => (value === null || value === undefined ? null : BigInt(String(value)));
  for (const row of rows) {
    const id = String(row.order_id);
    const known = found.get(id) ?? new Map<string, Executed>();
    const { quantity, price_kobo, counted, exec_ref_id } = row;
    known.set(String(row.exec_id), {
      kind: String(row.kind) as Executed['kind'],
      quantity: whole(quantity),
      priceKobo: whole(price_kobo),
      counted: whole(counted),
      execRefId: exec_ref_id === null ? null : String(exec_ref_id),
    });
    found.set(id, known);
  }
  return found;
}
