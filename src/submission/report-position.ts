import type { Database } from '../db/database.ts';
import { type Fact, found } from '../db/facts.ts';
import { fenced, type Lease } from '../db/lease.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../db/statement.ts';
import { crash } from '../lib/crash.ts';
import { positions, saveFirst, savePosition } from './table.ts';

/** How often the position is stored. After a crash, later reports are applied again and change nothing. */
const storeEveryMs = 250;
/** How often the stored position is read while no report comes, so that one that went back is noticed. */
export const checkEveryMs = 1_000;
/** If so many objects wait to be proven, the position is stored at once. */
const mostClaims = 1_000;
/**
 * So many objects, and findings of objects that are not stored, can wait to be proven while the position cannot move, because
 * reports of a locked partner wait. With more, no further reports are read.
 */
const maxUnproven = 20_000;
const dayMs = 86_400_000;
/** The position at the beginning of a day is kept for so many days with reports. */
const keptDays = 8;

/** The last report of an object that this process has applied, or that no stored object is about. */
interface Claim {
  readonly number: bigint;
  /** What is written with the position if no object has this id; empty: the object is stored. */
  readonly findings: readonly Statement[];
}

/** An object, with the numbers of the last reports that it has, and that it does not have and is looked up for. */
interface Numbers {
  readonly id: string;
  readonly lastReport?: bigint;
  readonly missedReport?: bigint;
}

/** The stored position as a transaction read it, which may have moved on since. */
export interface ReadPosition {
  readonly stored: bigint;
  /** What the database had acknowledged when the transaction was asked for. */
  readonly least: bigint;
}

/** Thrown if another process has the lease by now. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';
}

/** Thrown if the database does not have what this process knows or did: everything is read again from what it has. */
export class DatabaseDiffersError extends Error {
  override readonly name = 'DatabaseDiffersError';
}

export interface ReportPositionOptions {
  readonly database: Database;
  /** The kind's name, as in `order`. */
  readonly kind: string;
  /** Finds the objects of some ids: `id`, `last_report`, `missed_report`. */
  readonly findObjects: (ids: readonly string[]) => Statement;
  readonly realNow: () => number;
  /** Called when the database has lost commits: it is behind what it had acknowledged to this process. */
  readonly onWentBack: (details: {
    readonly stored: number;
    readonly known: number;
    readonly objectId?: string;
  }) => void;
}

/**
 * How far a stream of reports is applied. The number in memory is only an expectation. The transaction that stores it proves
 * that the stored position is the one that this process stored last, and that the database has the reports in between: each
 * object's last report, or no such object. A database that lost commits in a failover proves neither. Then nothing is
 * written, and the reports are read again from the stored position.
 */
export class ReportPosition {
  /** The number of the last report before the first that is not applied. */
  number = 0n;
  /** What the database has acknowledged, over all times this process had the lease. */
  #known = 0n;
  #stored = 0n;
  #storedAt = 0;
  #checkedAt = 0;
  #claims = new Map<string, Claim>();
  /** How many findings all claims have. One object can have many. */
  #findings = 0;
  /** One at a time: each expects what the one before it stored. */
  #storing = Promise.resolve();

  constructor(private readonly options: ReportPositionOptions) {}

  /** Forgets what is in memory and reads the stored position, under the lease. */
  async read(lease: Lease): Promise<void> {
    const stored = await this.options.database.transaction(
      [fenced(lease), lockPosition(this.#name)],
      ([leases, rows]) => {
        if (leases?.[0] === undefined) throw new LeaseLostError('another process has the lease');
        return { writes: [], result: positionOf(rows) };
      },
    );
    if (stored < this.#known) this.options.onWentBack({ stored: Number(stored), known: Number(this.#known) });
    this.#known = stored;
    this.#stored = stored;
    this.number = stored;
    this.#claims.clear();
    this.#findings = 0;
    this.#checkedAt = performance.now();
  }

  /** The stored position, for a transaction that applies reports and is asked for now. */
  get fact(): Fact<ReadPosition> {
    const least = this.#stored;
    return found(positions.find({ name: this.#name }), (rows) => ({ stored: positionOf(rows), least }));
  }

  /**
   * Throws `DatabaseDiffersError` if a transaction is of a database that lacks reports from before the ones it would apply:
   * an object takes a later report for proof that it has the earlier ones.
   */
  check({ stored, least }: ReadPosition, { id, lastReport = 0n, missedReport = 0n }: Numbers): void {
    if (stored < least) throw new DatabaseDiffersError(`the stored position is ${stored}, and was ${least}`);
    const { number = 0n } = this.#claims.get(id) ?? {};
    if (lastReport >= number || missedReport >= number) return;
    throw new DatabaseDiffersError(`the database lacks report ${number} about ${id}, which was applied`);
  }

  /** Notes each object's last report that is applied, and what is found of those that no stored object is about. */
  applied(byObject: Iterable<readonly [id: string, number: bigint, finding?: Statement]>): void {
    for (const [id, number, finding] of byObject) {
      const before = this.#claims.get(id);
      if (before !== undefined && before.number >= number) continue;
      // What is found of earlier reports is not written yet.
      const findings = finding === undefined ? (before?.findings ?? []) : [...(before?.findings ?? []), finding];
      this.#findings += finding === undefined ? 0 : 1;
      this.#claims.set(id, { number, findings });
    }
  }

  /** Notes that all reports up to a number are applied. */
  moveTo(number: bigint): void {
    if (number > this.number) this.number = number;
  }

  /** Whether so many objects wait to be proven that no further reports should be read. */
  get isFull(): boolean {
    return this.#claims.size + this.#findings >= maxUnproven;
  }

  /**
   * Stores the position if it is time. Throws `DatabaseDiffersError` or `LeaseLostError` if it may not be stored, and nothing
   * is written then.
   */
  store(lease: Lease, now: boolean): Promise<void> {
    const storing = this.#storing.then(() => this.#store(lease, now));
    this.#storing = storing.catch(() => {}); // Who waits for it hears of it.
    return storing;
  }

  async #store(lease: Lease, now: boolean): Promise<void> {
    const hasMoved = this.#stored !== this.number;
    const [since, everyMs] = hasMoved ? [this.#storedAt, storeEveryMs] : [this.#checkedAt, checkEveryMs];
    if (now && !hasMoved) return;
    const isUrgent = hasMoved && this.#claims.size >= mostClaims;
    if (!now && !isUrgent && performance.now() - since < everyMs) return;
    const { database, kind, findObjects, realNow } = this.options;
    // All of them prove a move. Without one, they only show early what the database has lost.
    const claims = new Map([...this.#claims].slice(0, hasMoved ? undefined : mostClaims));
    const [number, expected] = [this.number, this.#stored];
    const ids = [...claims.keys()];
    const reads = [fenced(lease), lockPosition(this.#name), ...chunksOf(ids, mostClaims).map(findObjects)];
    const { stored, lacking } = await database.transaction(reads, ([leases, rows, ...objects]) => {
      if (leases?.[0] === undefined) throw new LeaseLostError('another process has the lease');
      const stored = positionOf(rows);
      const lacking = stored === expected ? findLacking(claims, objects.flat()) : undefined;
      if (stored !== expected || lacking !== undefined || !hasMoved) return { writes: [], result: { stored, lacking } };
      const findings = [...claims.values()].flatMap(({ findings }) => findings);
      const moves = [savePosition(this.#name, number.toString()), keepDay(this.#name, expected, realNow())];
      return { writes: [...moves, ...findings], result: { stored, lacking } };
    });
    this.#checkedAt = performance.now();
    if (lacking !== undefined || stored !== expected) this.#forget();
    if (lacking !== undefined) {
      this.options.onWentBack({ stored: Number(stored), known: Number(number), objectId: lacking });
      throw new DatabaseDiffersError(`the database lacks a report about ${lacking}, which was applied`);
    }
    if (stored !== expected) throw new DatabaseDiffersError(`the stored position is ${stored}, and was ${expected}`);
    if (!hasMoved) return;
    this.#known = number;
    this.#stored = number;
    this.#storedAt = this.#checkedAt;
    for (const [id, claim] of claims) {
      if (this.#claims.get(id) !== claim) continue;
      this.#claims.delete(id);
      this.#findings -= claim.findings.length;
    }
    crash(`${kind}-report.position-moved`);
  }

  /** What this process did since it stored the position may be gone, so none of it is stored. */
  #forget(): void {
    this.number = this.#stored;
    this.#claims.clear();
    this.#findings = 0;
  }

  get #name(): string {
    return positionNameOf(this.options.kind);
  }
}

/** The name of the stored position of a kind's reports, and of the lease on their stream. */
export function positionNameOf(kind: string): string {
  return `${kind}-reports`;
}

/** The first object that the database has without a report that was applied, or has although its report found none. */
function findLacking(claims: ReadonlyMap<string, Claim>, objects: readonly SqlRow[]): string | undefined {
  const byId = new Map(objects.map((row) => [String(row.id), row]));
  for (const [id, { number, findings }] of claims) {
    const row = byId.get(id);
    if ((row === undefined) !== findings.length > 0) return id;
    if (row === undefined) continue;
    if (toBigInt(row.last_report) < number && toBigInt(row.missed_report) < number) return id;
  }
  return undefined;
}

function chunksOf<Item>(items: readonly Item[], size: number): Item[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, at) => items.slice(at * size, (at + 1) * size));
}

/** Locked, so that a proxy that splits reads and writes sends it, and what follows it, to the writer. */
function lockPosition(name: string): Statement {
  return statement('SELECT position FROM positions WHERE name = ? FOR UPDATE', name);
}

function positionOf(rows: readonly SqlRow[] | undefined): bigint {
  return BigInt(String(rows?.[0]?.position ?? 0));
}

const slotName = (name: string, slot: number) => `${name} day ${slot}`;

/** Keeps the position with which a day began, in place of an earlier day's. It ends with the day: `5142162 @20783`. */
function keepDay(name: string, number: bigint, realNow: number): Statement {
  const day = Math.floor(realNow / dayMs);
  return saveFirst(slotName(name, day % keptDays), number.toString(), `@${day}`);
}

/** A position that was set back, for the one who did it. */
export interface Rewound {
  readonly name: string;
  readonly from: bigint;
  readonly to: bigint;
}

/**
 * Sets the positions of reports back to where the oldest of the last days began, or to the beginning if fewer days are known.
 * So all reports since are read again. An object ignores those that it has, and gets those that a database lost which was
 * restored, or whose failover lost commits. Only while no gateway runs.
 */
export async function rewindReports(database: Database, kinds: readonly string[]): Promise<Rewound[]> {
  const names = kinds.map(positionNameOf);
  const slots = Array.from({ length: keptDays }, (_, slot) => slot);
  const all = names.flatMap((name) => [name, ...slots.map((slot) => slotName(name, slot))]);
  const read = statement('SELECT name, position FROM positions WHERE name IN (?) FOR UPDATE', all);
  return database.transaction([read], ([rows = []]) => {
    const byName = new Map(rows.map((row) => [String(row.name), String(row.position)]));
    const rewound = names.flatMap((name): Rewound[] => {
      const from = BigInt(byName.get(name) ?? 0);
      const days = slots.map((slot) => BigInt(byName.get(slotName(name, slot))?.split(' ')[0] ?? 0));
      const to = days.reduce((least, day) => (day < least ? day : least), from);
      return to < from ? [{ name, from, to }] : [];
    });
    return { writes: rewound.map(({ name, to }) => savePosition(name, to.toString())), result: rewound };
  });
}
