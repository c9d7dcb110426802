import { outOfRange, type SqlRow, type Statement, statement, toBigInt } from './statement.ts';

/** What work under a partner's lock may ask of its row: every column costs a packet, read or not. */
export const partnerColumns = ['version', 'orders_kobo_per_day', 'allocations_kobo_per_day'] as const;

/** What a capability keeps of a partner in a transaction. It never changes: work that goes on from it keeps another. */
export interface Kept {
  /** What is written of it at the end of the transaction. */
  save(): readonly Statement[];
}

/**
 * A partner whose row is locked, with what all work in the same transaction shares: the next event version, what was used
 * of daily limits, and what capabilities keep. Each piece of work sees what those before it took, and one write at the end
 * saves it all.
 */
export class LockedPartner {
  readonly id: string;
  #version: bigint;
  #used = new Map<string, Usage>();
  #kept = new Map<string, Kept>();

  constructor(readonly row: SqlRow) {
    this.id = String(row.id);
    this.#version = toBigInt(row.version);
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

  /**
   * Adds to what was used on a day, in kobo; a negative amount gives back. Who has not read what was used says how much may
   * be used `atMost`: the transaction then fails where it would be more.
   */
  addUsage(kind: string, day: string, kobo: bigint, atMost?: bigint): void {
    if (kobo === 0n) return;
    const before = this.#used.get(`${kind} ${day}`);
    this.#used.set(`${kind} ${day}`, { kobo: (before?.kobo ?? 0n) + kobo, atMost: atMost ?? before?.atMost });
  }

  /** What this transaction added to a day so far, for those who read the day before it did. */
  usageAdded(kind: string, day: string): bigint {
    return this.#used.get(`${kind} ${day}`)?.kobo ?? 0n;
  }

  /** Keeps something under a name for the work after ours, in place of what was kept so far. */
  keep(name: string, value: Kept): void {
    this.#kept.set(name, value);
  }

  /** What work before ours kept; undefined when there was none, and what was read is how it is. */
  kept(name: string): Kept | undefined {
    return this.#kept.get(name);
  }

  /** Runs one piece of work; what it took is given back when it throws. */
  attempt<T>(work: () => T): T {
    const version = this.#version;
    const used = new Map(this.#used);
    const kept = new Map(this.#kept);
    try {
      return work();
    } catch (error) {
      this.#version = version;
      this.#used = used;
      this.#kept = kept;
      throw error;
    }
  }

  /** The row as it is at the end of the transaction. */
  get saved(): SqlRow {
    return { ...this.row, version: this.#version };
  }

  /**
   * Locks the row at the beginning of a transaction that has not read it. It fails, by a number out of range, where the row
   * is not the one that is assumed, and does not wait where another has locked it: the reading way waits, and is decided
   * after that.
   */
  lockAssumed(): Statement {
    const columns = partnerColumns.map((column) => `${column} <=> ?`);
    return statement(
      `SELECT IF(${columns.join(' AND ')}, 1, ${outOfRange}) FROM partners WHERE id = ? FOR UPDATE NOWAIT`,
      // As numbers: the server would compare a column with a text as numbers that are not exact.
      ...partnerColumns.map((column) => (this.row[column] === null ? null : toBigInt(this.row[column]))),
      this.id,
    );
  }

  /** What is written at the end of the transaction. */
  save(): Statement[] {
    const usage = [...this.#used].map(([key, used]) => {
      const [kind = '', day = ''] = key.split(' ');
      return saveUsage(this.id, day, kind, used);
    });
    const kept = [...this.#kept.values()].flatMap((value) => value.save());
    if (this.#version === toBigInt(this.row.version)) return [...usage, ...kept];
    return [statement('UPDATE partners SET version = ? WHERE id = ?', this.#version, this.id), ...usage, ...kept];
  }
}

/** What is added to a day's usage, and how much may be used where that was not read. */
interface Usage {
  readonly kobo: bigint;
  readonly atMost: bigint | undefined;
}

/** Fails by a null where more would be used than may be. */
function saveUsage(partnerId: string, day: string, kind: string, { kobo, atMost }: Usage): Statement {
  const insert = 'INSERT INTO usage_days (partner_id, day, kind, used_kobo) VALUES';
  if (atMost === undefined) {
    const add = 'ON DUPLICATE KEY UPDATE used_kobo = used_kobo + VALUES(used_kobo)';
    return statement(`${insert} (?, ?, ?, ?) ${add}`, partnerId, day, kind, kobo);
  }
  const add = 'ON DUPLICATE KEY UPDATE used_kobo = IF(used_kobo + ? <= ?, used_kobo + ?, NULL)';
  const values = [kobo, atMost, kobo, kobo, atMost, kobo];
  return statement(`${insert} (?, ?, ?, IF(? <= ?, ?, NULL)) ${add}`, partnerId, day, kind, ...values);
}
