import type { Database } from '../../gateway/store/database.ts';
import { fenced, type Lease } from '../../gateway/store/lease.ts';
import { type SqlRow, type Statement, sql, statement } from '../../gateway/store/statement.ts';
import { lagosDay } from '../../kit/clock.ts';
import { LeaseLost } from '../store/store.ts';
import { type Finding, fixFindings, fixNumbers, fixReports, fixTradeChanges } from '../store/table.ts';
import {
  type BookedChange,
  bookedChange,
  copiedChange,
  faultOfBookedChange,
  faultOfCopiedChange,
  namesOfTrade,
} from './changes.ts';
import { type ExchangeNames, readOrders, unique } from './orders.ts';
import { faultOfBooked, faultOfCopied, type Mark } from './rules.ts';
import { type DropCopyNumbers, type DropCopyTrade, dropCopyNumbers, dropCopyTrades } from './table.ts';
import type { ReadTrade } from './trades.ts';

/** How many trades are compared at once. */
const maxAtOnce = 500;

export interface ComparedTrade {
  readonly findings: readonly Finding[];
  /** How many trades of the drop copy were of orders that are not ours. */
  readonly others: number;
}

/**
 * The record of the drop copy: the numbers of its session and its trades. A write fails if a later holder of the lease has taken the
 * row of numbers. Orders, reports and counts are only read.
 */
export class DropCopyStore {
  /** How far the last write of this process had compared: up to there nothing need be read. */
  #compared = { bookedTo: -1n, changedTo: -1n };

  constructor(
    private readonly database: Database,
    private readonly lease: Pick<Lease, 'name' | 'fence'>,
    private readonly exchange: ExchangeNames,
  ) {}

  /** Makes this process the one that writes. Throws if a later holder of the lease has done so. */
  async take(): Promise<void> {
    await this.database.transaction([fenced(this.lease), locked], ([leases, rows]) => {
      const numbers = numbersOf(rows);
      if (leases?.[0] === undefined || numbers.fence > this.lease.fence) throw new LeaseLost();
      return { writes: dropCopyNumbers.update(numbers, { ...numbers, fence: this.lease.fence }), result: undefined };
    });
  }

  async numbers(): Promise<DropCopyNumbers> {
    return this.#write([], (numbers) => ({ after: numbers, writes: [], result: numbers }));
  }

  /**
   * Begins a numbering. Copies of what was booked before may never come in it, and what lacks one is found all the same. Only what
   * was booked before the first numbering is not compared: there was no drop copy.
   */
  startDay(startedAt: number): Promise<DropCopyNumbers> {
    return this.#write([lastReport, lastChange], (numbers, [reports = [], changes = []]) => {
      const passedOverTo = reportOf(reports);
      const compared = numbers.startedAt === 0 ? { bookedTo: passedOverTo, changedTo: changeOf(changes) } : {};
      const after = { ...numbers, startedAt, nextOut: 1n, nextIn: 1n, passedOverTo, ...compared };
      return { after, writes: [], result: after };
    });
  }

  async sending(nextOut: number, nextIn: number): Promise<void> {
    await this.#write([], (numbers) => {
      const after = { ...numbers, nextOut: BigInt(nextOut), nextIn: BigInt(Math.max(Number(numbers.nextIn), nextIn)) };
      return { after, writes: [], result: undefined };
    });
  }

  /** Stores trades that came, once each. `passedOver`: others may have come, whose booked trades are not confirmed. */
  async received(trades: readonly ReadTrade[], at: number, nextIn: number, passedOver: boolean): Promise<void> {
    const execIds = [...new Set(trades.map(({ execId }) => execId))];
    const reportIds = unique(trades.map(({ reportRefId }) => reportRefId));
    const some = (filter: Parameters<typeof dropCopyTrades.find>[0], ids: readonly string[]) =>
      ids.length === 0 ? nothing : dropCopyTrades.find(filter);
    const reads = [
      ...[lastReport, some({ execId: execIds }, execIds)],
      some({ reportId: reportIds, kind: 'trade' }, reportIds),
    ];
    await this.#write(reads, (numbers, [reports = [], rows = [], referred = []]) => {
      const known = new Set(rows.map((row) => dropCopyTrades.all.read(row)).map((row) => keyOf(row, row.at)));
      const came = named(
        trades,
        referred.map((row) => dropCopyTrades.all.read(row)),
      );
      const fresh = new Map(came.map((trade) => [keyOf(trade, at), trade] as const));
      const added = [...fresh].flatMap(([key, trade]) =>
        known.has(key) ? [] : [{ ...trade, id: 0n, at, compared: false }],
      );
      const passedOverTo = passedOver ? reportOf(reports) : numbers.passedOverTo;
      const writes = added.length === 0 ? [] : [dropCopyTrades.insert(...added)];
      return { after: { ...numbers, nextIn: BigInt(nextIn), passedOverTo }, writes, result: undefined };
    });
  }

  /** Reads the last state of the order session. */
  async last(): Promise<Omit<Mark, 'at'>> {
    const [reports = [], changes = []] = await this.#read([lastReport, lastChange]);
    return { number: reportOf(reports), changed: changeOf(changes) };
  }

  /** Compares trades of the drop copy that came by this time with what was booked, once each. */
  async compareCopied(cameBy: number, now: number): Promise<ComparedTrade> {
    const tail = `WHERE compared = 0 AND at <= ? ORDER BY at LIMIT ${maxAtOnce}`;
    const due = statement(`SELECT ${dropCopyTrades.all.list} FROM fix_drop_copy ${tail}`, new Date(cameBy));
    const copies = ((await this.#read([due]))[0] ?? []).map((row) => dropCopyTrades.all.read(row));
    if (copies.length === 0) return { findings: [], others: 0 };
    const orderOf = await this.#ordersOf(copies);
    const ours = copies.flatMap((copied) => {
      const orderId = orderOf(copied);
      return orderId === undefined ? [] : [{ copied, orderId }];
    });
    const booked = await this.#bookedOf(ours.filter(({ copied }) => copied.kind === 'trade'));
    const changes = ours.filter(({ copied }) => copied.kind !== 'trade');
    const changesOf = await this.#changesOf(changes.map(({ orderId }) => orderId));
    const findings = ours.flatMap(({ copied, orderId }) => {
      const change = copiedChange(copied);
      const fault =
        change === undefined
          ? faultOfCopied(copied, booked.get(`${orderId} ${copied.execId}`))
          : faultOfCopiedChange(change, changesOf(orderId));
      const execId = change === undefined || change.execRefId === '' ? copied.execId : change.execRefId;
      return fault === undefined ? [] : [findingOf(orderId, execId, fault, now)];
    });
    const others = copies.filter((copied) => orderOf(copied) === undefined).map(({ id }) => id);
    const writes = [
      ...(ours.length === 0
        ? []
        : [dropCopyTrades.set({ id: ours.map(({ copied }) => copied.id) }, { compared: true })]),
      ...(others.length === 0 ? [] : [sql`DELETE FROM fix_drop_copy WHERE id IN (${others})`]),
    ];
    await this.#find(findings, writes);
    return { findings, others: others.length };
  }

  /** Compares reports of the order session up to a number with the drop copy, once each. */
  async compareBooked(to: bigint, now: number): Promise<readonly Finding[]> {
    if (to <= this.#compared.bookedTo) return [];
    const { bookedTo, passedOverTo } = await this.numbers();
    if (to <= bookedTo) return [];
    const last = bookedTo + BigInt(maxAtOnce) < to ? bookedTo + BigInt(maxAtOnce) : to;
    const due = statement(
      `SELECT ${fixReports.all.list} FROM fix_reports
       WHERE number > ? AND number <= ? AND kind = 'trade' AND exec_id IS NOT NULL`,
      bookedTo,
      last,
    );
    const booked = ((await this.#read([due]))[0] ?? []).map((row) => fixReports.all.read(row));
    const execIds = booked.flatMap(({ execId }) => (execId === null ? [] : [execId]));
    const [rows = []] =
      execIds.length === 0 ? [] : await this.#read([dropCopyTrades.find({ execId: execIds, kind: 'trade' })]);
    const copies = rows.map((row) => dropCopyTrades.all.read(row));
    const orderOf = await this.#ordersOf(copies);
    const findings = booked.flatMap(({ number, orderId, execId, quantity, priceKobo }) => {
      if (execId === null) return [];
      const same = copies.filter((each) => each.execId === execId && orderOf(each) === orderId);
      const trade = { execId, quantity: quantity ?? 0n, priceKobo: priceKobo ?? 0n };
      const fault = faultOfBooked(trade, same, number <= passedOverTo);
      return fault === undefined ? [] : [findingOf(orderId, execId, fault, now)];
    });
    await this.#find(findings, [], { bookedTo: last });
    return findings;
  }

  /** Compares trades that the order session took back or corrected, up to an id, with the drop copy, once each. */
  async compareChanged(to: bigint, now: number): Promise<readonly Finding[]> {
    if (to <= this.#compared.changedTo) return [];
    const { changedTo } = await this.numbers();
    if (to <= changedTo) return [];
    const last = changedTo + BigInt(maxAtOnce) < to ? changedTo + BigInt(maxAtOnce) : to;
    const due = statement(
      `SELECT ${fixTradeChanges.all.list} FROM fix_trade_changes WHERE id > ? AND id <= ?`,
      ...[changedTo, last],
    );
    const changes = ((await this.#read([due]))[0] ?? []).map((row) => fixTradeChanges.all.read(row));
    const changesOf = await this.#changesOf(changes.map(({ orderId }) => orderId));
    const copiesOf = await this.#copiesOf(
      changes.flatMap((change) => namesOfTrade(bookedChange(change), changesOf(change.orderId))),
    );
    const findings = changes.flatMap((each) => {
      const change = bookedChange(each);
      const fault = faultOfBookedChange(change, changesOf(each.orderId), copiesOf(each.orderId));
      return fault === undefined ? [] : [findingOf(each.orderId, each.execRefId, fault, now)];
    });
    await this.#find(findings, [], { changedTo: last });
    return findings;
  }

  /** All changes of trades that the order session brought, by order. */
  async #changesOf(orderIds: readonly string[]): Promise<(orderId: string) => readonly BookedChange[]> {
    const orderId = unique(orderIds);
    const [rows = []] = orderId.length === 0 ? [] : await this.#read([fixTradeChanges.find({ orderId })]);
    const changes = rows.map((row) => fixTradeChanges.all.read(row));
    return (id) => changes.filter((each) => each.orderId === id).map(bookedChange);
  }

  /** The changes on the drop copy of trades with some ExecIDs, by order. */
  async #copiesOf(execRefIds: readonly string[]) {
    const execRefId = unique(execRefIds);
    if (execRefId.length === 0) return () => [];
    const [rows = []] = await this.#read([dropCopyTrades.find({ execRefId, kind: ['cancelled', 'corrected'] })]);
    const copies = rows.map((row) => dropCopyTrades.all.read(row));
    const orderOf = await this.#ordersOf(copies);
    return (orderId: string) =>
      copies.filter((each) => orderOf(each) === orderId).flatMap((each) => copiedChange(each) ?? []);
  }

  /** Stores findings with the fact that what they are about was compared, which never goes back. */
  async #find(
    findings: readonly Finding[],
    writes: readonly Statement[],
    { bookedTo = 0n, changedTo = 0n }: { readonly bookedTo?: bigint; readonly changedTo?: bigint } = {},
  ): Promise<void> {
    const inserts = findings.length === 0 ? [] : [fixFindings.insert(...findings.map((row) => ({ ...row, id: 0n })))];
    await this.#write([], (numbers) => ({
      after: {
        ...numbers,
        bookedTo: bookedTo < numbers.bookedTo ? numbers.bookedTo : bookedTo,
        changedTo: changedTo < numbers.changedTo ? numbers.changedTo : changedTo,
      },
      writes: [...writes, ...inserts],
      result: undefined,
    }));
  }

  #ordersOf(copies: readonly DropCopyTrade[]): Promise<(copied: DropCopyTrade) => string | undefined> {
    return readOrders((reads) => this.#read(reads), copies, this.exchange);
  }

  async #bookedOf(ours: readonly { readonly copied: DropCopyTrade; readonly orderId: string }[]) {
    if (ours.length === 0) return new Map<string, never>();
    const orderId = unique(ours.map((each) => each.orderId));
    const execId = unique(ours.map(({ copied }) => copied.execId));
    const [rows = []] = await this.#read([fixReports.find({ orderId, execId, kind: 'trade' })]);
    return new Map(
      rows.map((row) => {
        const { orderId: of, execId: by, quantity, priceKobo } = fixReports.all.read(row);
        const trade = { execId: by ?? '', quantity: quantity ?? 0n, priceKobo: priceKobo ?? 0n };
        return [`${of} ${trade.execId}`, trade] as const;
      }),
    );
  }

  /** Reads by the server that writes: what a copy that lags does not have would be found missing. */
  #read(reads: readonly Statement[]): Promise<SqlRow[][]> {
    return this.database.transaction([nothing, ...reads], ([, ...rows]) => ({ writes: [], result: rows }));
  }

  async #write<T>(
    reads: readonly Statement[],
    decide: (
      numbers: DropCopyNumbers,
      rows: readonly SqlRow[][],
    ) => { readonly after: DropCopyNumbers; readonly writes: readonly Statement[]; readonly result: T },
  ): Promise<T> {
    const { after, result } = await this.database.transaction([locked, ...reads], ([own, ...rows]) => {
      const before = numbersOf(own);
      if (before.fence !== this.lease.fence) throw new LeaseLost();
      const { writes, ...decided } = decide(before, rows);
      return { writes: [...dropCopyNumbers.update(before, decided.after), ...writes], result: decided };
    });
    this.#compared = { bookedTo: after.bookedTo, changedTo: after.changedTo };
    return result;
  }
}

const nothing = statement('SELECT 1 FROM fix_drop_copy_numbers WHERE id = 0');
const locked = dropCopyNumbers.find({ id: 1n }, dropCopyNumbers.all, statement('FOR UPDATE'));
const lastReport = fixNumbers.find({ id: 1n }, fixNumbers.only('lastReport'));
const lastChange = statement('SELECT COALESCE(MAX(id), 0) AS id FROM fix_trade_changes');

function reportOf([row]: readonly SqlRow[]): bigint {
  if (row === undefined) throw new Error('the database has no numbers of a session: migrate it first');
  return fixNumbers.only('lastReport').read(row).lastReport;
}

function changeOf([row]: readonly SqlRow[]): bigint {
  return BigInt(String(row?.id ?? 0));
}

function numbersOf(rows: readonly SqlRow[] | undefined): DropCopyNumbers {
  const row = rows?.[0];
  if (row === undefined) throw new Error('the database has no numbers of a drop copy: migrate it first');
  return dropCopyNumbers.all.read(row);
}

type Came = Omit<DropCopyTrade, 'id' | 'at' | 'compared'>;

/**
 * What came, with the ExecID of the trade that it takes back or corrects: ExecRefID, otherwise that of the trade whose TradeReportID
 * it refers to, otherwise its own.
 */
function named(trades: readonly ReadTrade[], stored: readonly DropCopyTrade[]): Came[] {
  const byReportId = new Map(
    [...stored, ...trades].flatMap(({ kind, reportId, execId }) =>
      kind === 'trade' && reportId !== '' ? [[reportId, execId] as const] : [],
    ),
  );
  return trades.map(({ reportRefId, ...trade }) => {
    if (trade.kind === 'trade' || trade.execRefId !== '') return trade;
    const referred = byReportId.get(reportRefId) ?? (trade.reportId === '' ? '' : trade.execId);
    return { ...trade, execRefId: referred };
  });
}

/**
 * Makes the key that tells trades apart. Exchanges use their ids again on another day, and some for each symbol and
 * side.
 */
function keyOf({ quantity, priceKobo, tradedAt, ...trade }: Came, cameAt: number): string {
  const { named, exchangeOrderId, kind, execId, execRefId, symbol, side } = trade;
  const ids = [named, exchangeOrderId, kind, execId, execRefId, symbol, side];
  return JSON.stringify([...ids, String(quantity), String(priceKobo), lagosDay(tradedAt ?? cameAt)]);
}

function findingOf(orderId: string, execId: string, detail: string, at: number): Finding {
  return { at, what: 'drop_copy_differs', orderId, execId, detail, facts: null, bytes: null };
}
