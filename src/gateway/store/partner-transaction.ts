import { remember } from '../../kit/remember.ts';
import type { Shared, StoredSum } from './facts.ts';
import { type SqlRow, type Statement, statement, toBigInt } from './statement.ts';

/** How many partners are remembered; the one not used for longest goes first. */
const maxPartners = 10_000;
/** How many shared values of each: a wallet, and the sums of this day and the last ones. */
const maxValues = 8;
/**
 * How long a partner has no optimistic transaction after a wrong one: another replica may work for it too. Twice as long
 * after each one that follows, because it fails the transactions of other partners that share its round trip.
 */
const shortestDoubtMs = 1_000;
const longestDoubtMs = 30_000;
/** After so many right ones in a row a partner's transactions may share a round trip: a wrong one fails the others' too. */
const steadyAfter = 3;

interface Remembered {
  readonly state: PartnerState | undefined;
  readonly doubtedUntil: number;
  /** How long the next doubt lasts at least: twice as long after each wrong one, half as long after each right one. */
  readonly doubtedMs: number;
  /** How many were right in a row, up to `steadyAfter`. */
  readonly right: number;
}

/**
 * Each partner's row and shared values after this process's last transaction for it. They may have changed since,
 * so a transaction that relies on them proves them.
 */
export class PartnerCache {
  readonly #remembered = new Map<string, Remembered>();

  constructor(private readonly monotonicNow: () => number = () => performance.now()) {}

  /** The expected state; undefined if it is not known, or if it was wrong a moment ago. */
  expected(partnerId: string): PartnerState | undefined {
    const remembered = this.#remembered.get(partnerId);
    const isUsable = remembered !== undefined && this.monotonicNow() >= remembered.doubtedUntil;
    return isUsable ? remembered.state : undefined;
  }

  /** The shared values that were remembered last. */
  values(partnerId: string): ReadonlyMap<string, unknown> {
    return this.#remembered.get(partnerId)?.state?.shared ?? new Map();
  }

  /** This was read or written under the partner's lock. */
  learn(partnerId: string, { row, shared }: PartnerState): void {
    const kept = new Map([...shared].slice(-maxValues));
    const { doubtedUntil = 0, doubtedMs = 0, right = 0 } = this.#remembered.get(partnerId) ?? {};
    this.#keep(partnerId, { state: { row, shared: kept }, doubtedUntil, doubtedMs, right });
  }

  /** Notes that the expected state was wrong. */
  noteMiss(partnerId: string): void {
    const before = this.#remembered.get(partnerId)?.doubtedMs ?? 0;
    const doubtedMs = Math.min(Math.max(shortestDoubtMs, before * 2), longestDoubtMs);
    this.#keep(partnerId, { state: undefined, doubtedUntil: this.monotonicNow() + doubtedMs, doubtedMs, right: 0 });
  }

  /** Notes that the expected state was right. */
  noteHit(partnerId: string): void {
    const remembered = this.#remembered.get(partnerId);
    if (remembered === undefined || (remembered.doubtedMs === 0 && remembered.right === steadyAfter)) return;
    const doubtedMs = remembered.doubtedMs > shortestDoubtMs ? remembered.doubtedMs / 2 : 0;
    this.#keep(partnerId, { ...remembered, doubtedMs, right: Math.min(remembered.right + 1, steadyAfter) });
  }

  /** Whether the expected state was right again and again, so that the next transaction is likely to succeed. */
  isSteady(partnerId: string): boolean {
    return this.#remembered.get(partnerId)?.right === steadyAfter;
  }

  #keep(partnerId: string, remembered: Remembered): void {
    remember(this.#remembered, partnerId, remembered, maxPartners);
  }
}

/** The columns of a partner's row for decisions. Each column costs a packet, used or not. */
const partnerColumns = ['version', 'orders_kobo_per_day', 'allocations_kobo_per_day'] as const;

/** The known state of a partner: its row, and its shared values by their names. */
export interface PartnerState {
  readonly row: SqlRow;
  readonly shared: ReadonlyMap<string, unknown>;
}

/** Locks a partner's row and reads it. */
export function lockPartner(partnerId: string): Statement {
  return statement(`SELECT id, ${partnerColumns.join(', ')} FROM partners WHERE id = ? FOR UPDATE`, partnerId);
}

/**
 * Locks a partner's row at the beginning of a transaction that does not read it. It fails if another has locked it. One
 * statement for each partner: for a list the server may read a small table whole, and fail for any partner that is locked.
 */
export function lockPartnerAtOnce(partnerId: string): Statement {
  return statement('SELECT id FROM partners WHERE id = ? FOR UPDATE NOWAIT', partnerId);
}

/** A condition that is true exactly if a partner's row is this one. */
export function partnerGuard({ row }: PartnerState): Statement {
  const columns = partnerColumns.map((column) => `${column} <=> ?`);
  return statement(
    `EXISTS (SELECT 1 FROM partners WHERE id = ? AND ${columns.join(' AND ')})`,
    String(row.id),
    // As numbers: the server would compare a column with a text as numbers that are not exact.
    ...partnerColumns.map((column) => (row[column] === null ? null : toBigInt(row[column]))),
  );
}

interface Changed {
  readonly shared: Shared<unknown>;
  readonly value: unknown;
}

interface Added {
  readonly counter: StoredSum;
  readonly amount: bigint;
}

/**
 * A transaction on one partner's objects, with what all work in it shares: the next event version, the wallet, what was
 * used of daily limits. Each piece of work sees what those before it changed, and one write at the end saves it all.
 */
export class PartnerTransaction {
  readonly id: string;
  #version: bigint;
  #changed = new Map<string, Changed>();
  #added = new Map<string, Added>();

  constructor(private readonly before: PartnerState) {
    this.id = String(before.row.id);
    this.#version = toBigInt(before.row.version);
  }

  /** The partner's row as it was at the beginning. */
  get row(): SqlRow {
    return this.before.row;
  }

  /** The version of the partner's last event, with those this transaction makes so far. */
  get version(): bigint {
    return this.#version;
  }

  /** Takes the partner's next versions and returns the first of them. */
  takeVersions(count: number): bigint {
    const first = this.#version + 1n;
    this.#version += BigInt(count);
    return first;
  }

  /** A shared value as it is by now. The work's fact must name it. */
  get<Value>(shared: Shared<Value>): Value {
    const changed = this.#changed.get(shared.name);
    if (changed !== undefined) return changed.value as Value;
    if (!this.before.shared.has(shared.name)) throw new Error(`${shared.name} was not read`);
    const value = this.before.shared.get(shared.name) as Value;
    const added = this.#added.get(shared.name);
    return added === undefined ? value : (((value as bigint) + added.amount) as Value);
  }

  set<Value>(shared: Shared<Value>, value: Value): void {
    this.#changed.set(shared.name, { shared, value });
  }

  /** Adds to a counter, which need not have been read. A negative amount gives back. */
  add(counter: StoredSum, amount: bigint): void {
    if (amount === 0n) return;
    const before = this.#added.get(counter.name)?.amount ?? 0n;
    this.#added.set(counter.name, { counter, amount: before + amount });
  }

  /** Runs one piece of work; what it changed is undone when it throws. */
  attempt<T>(work: () => T): T {
    const version = this.#version;
    const changed = new Map(this.#changed);
    const added = new Map(this.#added);
    try {
      return work();
    } catch (error) {
      this.#version = version;
      this.#changed = changed;
      this.#added = added;
      throw error;
    }
  }

  /** The statements at the end of the transaction. */
  save(): Statement[] {
    const added = [...this.#added.values()].map(({ counter, amount }) => counter.add(amount));
    const changed = [...this.#changed].flatMap(([name, { shared, value }]) =>
      shared.save(this.before.shared.get(name), value),
    );
    if (this.#version === toBigInt(this.before.row.version)) return [...added, ...changed];
    return [statement('UPDATE partners SET version = ? WHERE id = ?', this.#version, this.id), ...added, ...changed];
  }

  /** The partner's state after COMMIT. `known` are the other shared values that were cached before. */
  after(known: ReadonlyMap<string, unknown>): PartnerState {
    // What was used comes last, because the first are forgotten.
    const shared = new Map([...known].filter(([name]) => !this.before.shared.has(name) && !this.#added.has(name)));
    for (const [name] of this.#added) if (known.has(name)) shared.set(name, known.get(name));
    for (const [name, value] of this.before.shared) shared.set(name, value);
    for (const [name, { shared: one, value }] of this.#changed) shared.set(name, one.remembered?.(value) ?? value);
    for (const [name, { amount }] of this.#added) {
      const before = shared.get(name);
      if (typeof before === 'bigint') shared.set(name, before + amount);
    }
    return { row: { ...this.before.row, version: this.#version }, shared };
  }
}
