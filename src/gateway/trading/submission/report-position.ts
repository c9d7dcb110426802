import { chunksOf } from '../../../kit/group.ts';
import type { Database } from '../../store/database.ts';
import type { Fact } from '../../store/facts.ts';
import { fenced, type Lease } from '../../store/lease.ts';
import { type SqlRow, type Statement, statement, toBigInt } from '../../store/statement.ts';
import type { BrokerId } from '../broker/broker.ts';
import { positions, savePosition } from './positions.ts';
import { keepDay, reportsPosition } from './report-days.ts';
import { hasMark, ProvenMark } from './report-mark.ts';

/** How often the position is stored. After a crash, later reports are applied again and change nothing. */
const storeEveryMs = 250;
/** How often the stored position is read while no report comes, so that one that went back is noticed. */
export const checkEveryMs = 1_000;
/** If so many objects and findings wait to be proven, they are proven at once. */
const maxClaims = 1_000;
/**
 * So many objects, and findings of objects that are not stored, can wait to be proven. With more, the next reports wait for
 * the transaction that proves them.
 */
const maxUnproven = 20_000;

/** The last report of an object that this process has applied, or that no stored object is about. */
interface Claim {
  readonly number: bigint;
  /** What is written with the position if no object has this id; empty: the object is stored. */
  readonly findings: readonly Statement[];
}

/** What the database has, as the transaction that proves read it. */
interface Proven {
  readonly stored: bigint;
  readonly hasMark: boolean;
  /** The first object without a report that was applied, or that is stored by now. Looked for if the position and the mark are as expected. */
  readonly lacking: string | undefined;
}

/** An object, with the numbers of the last reports that it has, and that it does not have and is looked up for. */
interface Numbers {
  readonly id: string;
  readonly lastReport?: bigint;
  readonly missedReport?: bigint;
}

/** The stored position as a transaction read it, which may have moved on since, and what this process knew before. */
export interface ReadPosition {
  readonly stored: bigint;
  /** What the database had acknowledged when the transaction was asked for. */
  readonly least: bigint;
  /** Whether the database has the mark that it had acknowledged by then. */
  readonly hasMark: boolean;
  /** The last report of each object that was applied and not proven by then. */
  readonly claims: ReadonlyMap<string, bigint>;
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
  readonly broker: BrokerId;
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
    /** The mark of reports proven since the position was stored, which the database lacks. */
    readonly mark?: string;
  }) => void;
}

/**
 * How far a stream of reports is applied. The number in memory is only an expectation. The transaction that stores it proves
 * that the stored position is the one that this process stored last, and that the database has the reports in between: each
 * object's last report, or no such object. A database that lost commits in a failover proves neither. Then nothing is
 * written, and the reports are read again from the stored position.
 *
 * While the position cannot move, because a partner's reports wait, a mark takes its place (`ProvenMark`): it is written by
 * the transaction that proves what was applied, and every later proof includes the mark.
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
  readonly #mark: ProvenMark;

  constructor(private readonly options: ReportPositionOptions) {
    this.#mark = new ProvenMark(this.#name, options.realNow);
  }

  /** Forgets what is in memory and reads the stored position, under the lease. */
  async read(lease: Lease): Promise<void> {
    const [stored, marks] = await this.options.database.transaction(
      [fenced(lease), lockPosition(this.#name), this.#mark.read],
      ([leases, rows, marks]) => {
        if (leases?.[0] === undefined) throw new LeaseLostError('another process has the lease');
        return { writes: [], result: [positionOf(rows), marks] as const };
      },
    );
    const mark = this.#mark.begin(marks);
    const details = { stored: Number(stored), known: Number(this.#known) };
    if (mark !== undefined) this.options.onWentBack({ ...details, mark });
    else if (stored < this.#known) this.options.onWentBack(details);
    this.#known = stored;
    this.#stored = stored;
    this.number = stored;
    this.#claims.clear();
    this.#findings = 0;
    this.#checkedAt = performance.now();
  }

  /** The stored position, for a transaction that applies reports about some objects and is asked for now. */
  factFor(ids: readonly string[]): Fact<ReadPosition> {
    const [least, mark] = [this.#stored, this.#mark.least];
    const claims = new Map(ids.map((id) => [id, this.#claims.get(id)?.number ?? 0n]));
    const reads = [positions.find({ name: this.#name }), ...(mark === undefined ? [] : [this.#mark.read])];
    return {
      reads,
      value: ([rows, marks]) => ({ stored: positionOf(rows), least, hasMark: hasMark(marks, mark), claims }),
    };
  }

  /**
   * Throws `DatabaseDiffersError` if a transaction is of a database that lacks reports from before the ones it would apply:
   * an object takes a later report for proof that it has the earlier ones.
   */
  check({ stored, least, hasMark, claims }: ReadPosition, { id, lastReport = 0n, missedReport = 0n }: Numbers): void {
    if (stored < least) throw new DatabaseDiffersError(`the stored position is ${stored}, and was ${least}`);
    if (!hasMark) throw new DatabaseDiffersError('the database lacks reports that were proven');
    const number = claims.get(id) ?? 0n;
    if (lastReport >= number || missedReport >= number) return;
    throw new DatabaseDiffersError(`the database lacks report ${number} about ${id}, which was applied`);
  }

  /** Notes each object's last report that is applied, and what is found of those that no stored object is about. */
  applied(byObject: Iterable<readonly [id: string, number: bigint, found?: readonly Statement[]]>): void {
    for (const [id, number, found = []] of byObject) {
      const before = this.#claims.get(id);
      if (before !== undefined && before.number >= number) continue;
      // What is found of earlier reports is not written yet.
      const findings = [...(before?.findings ?? []), ...found];
      this.#findings += found.length;
      this.#claims.set(id, { number, findings });
    }
  }

  /** Notes that all reports up to a number are applied. */
  moveTo(number: bigint): void {
    if (number > this.number) this.number = number;
  }

  /** Whether so many objects wait to be proven that the next reports should wait for the proof. */
  get isFull(): boolean {
    return this.#unproven >= maxUnproven;
  }

  get #unproven(): number {
    return this.#claims.size + this.#findings;
  }

  /**
   * Stores the position if it is time, or proves what was applied if the position cannot move. Throws `DatabaseDiffersError`
   * or `LeaseLostError` if it may not be stored, and nothing is written then.
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
    const isUrgent = this.#unproven >= maxClaims;
    if (!now && !isUrgent && performance.now() - since < everyMs) return;
    // All of them prove a move or a mark. Without either, they only show early what the database has lost.
    const claims = new Map([...this.#claims].slice(0, hasMoved || isUrgent ? undefined : maxClaims));
    const [number, expected] = [this.number, this.#stored];
    const mark = !hasMoved && isUrgent ? this.#mark.next(lease.fence) : undefined;
    const writes = mark === undefined ? [] : [mark.write];
    if (hasMoved) {
      writes.push(savePosition(this.#name, number.toString()), keepDay(this.#name, expected, this.options.realNow()));
    }
    const { stored, hasMark, lacking } = await this.#prove(lease, claims, expected, writes);
    this.#checkedAt = performance.now();
    if (lacking !== undefined || !hasMark || stored !== expected) this.#forget();
    if (lacking !== undefined) {
      const { findings = [] } = claims.get(lacking) ?? {};
      if (findings.length > 0) throw new DatabaseDiffersError(`${lacking} was not stored, and is restored`);
      this.options.onWentBack({ stored: Number(stored), known: Number(number), objectId: lacking });
      throw new DatabaseDiffersError(`the database lacks a report about ${lacking}, which was applied`);
    }
    if (stored !== expected) throw new DatabaseDiffersError(`the stored position is ${stored}, and was ${expected}`);
    if (!hasMark) throw new DatabaseDiffersError('the database lacks reports that were proven');
    mark?.acknowledged();
    if (hasMoved) {
      this.#known = number;
      this.#stored = number;
      this.#storedAt = this.#checkedAt;
    }
    if (hasMoved || mark !== undefined) this.#drop(claims);
  }

  /** Reads under the lease whether the database is as expected. If it is, writes the moved position or the mark, if any. */
  #prove(
    lease: Lease,
    claims: ReadonlyMap<string, Claim>,
    expected: bigint,
    writes: readonly Statement[],
  ): Promise<Proven> {
    const { database, findObjects } = this.options;
    const ids = [...claims.keys()];
    const least = this.#mark.least;
    const marks = least === undefined ? [] : [lockPosition(this.#mark.name)];
    const reads = [
      fenced(lease),
      lockPosition(this.#name),
      ...marks,
      ...[...chunksOf(ids, maxClaims)].map(findObjects),
    ];
    return database.transaction<Proven>(reads, ([leases, rows, ...others]) => {
      if (leases?.[0] === undefined) throw new LeaseLostError('another process has the lease');
      const stored = positionOf(rows);
      const result: Proven = { stored, hasMark: hasMark(others[0], least), lacking: undefined };
      if (stored !== expected || !result.hasMark) return { writes: [], result };
      const lacking = findLacking(claims, others.slice(marks.length).flat());
      if (lacking !== undefined) return { writes: [], result: { ...result, lacking } };
      if (writes.length === 0) return { writes, result };
      return { writes: [...writes, ...[...claims.values()].flatMap(({ findings }) => findings)], result };
    });
  }

  /** Forgets what is proven, unless an object has a later report since. */
  #drop(claims: ReadonlyMap<string, Claim>): void {
    for (const [id, claim] of claims) {
      if (this.#claims.get(id) !== claim) continue;
      this.#claims.delete(id);
      this.#findings -= claim.findings.length;
    }
  }

  /** What this process did since it stored the position may be gone, so none of it is stored. */
  #forget(): void {
    this.number = this.#stored;
    this.#claims.clear();
    this.#findings = 0;
  }

  get #name(): string {
    return reportsPosition(this.options.broker, this.options.kind);
  }
}

/** The first object that the database has without a report that was applied, or was restored since its report found none. */
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

/** Locked, so that a proxy that splits reads and writes sends it, and what follows it, to the writer. */
function lockPosition(name: string): Statement {
  return statement('SELECT position FROM positions WHERE name = ? FOR UPDATE', name);
}

function positionOf(rows: readonly SqlRow[] | undefined): bigint {
  return BigInt(String(rows?.[0]?.position ?? 0));
}
