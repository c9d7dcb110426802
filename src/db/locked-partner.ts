import { type SqlRow, type Statement, statement, toBigInt } from './statement.ts';

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
  #used = new Map<string, bigint>();
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

  /** Adds to what was used on a day, in kobo; a negative amount gives back. */
  addUsage(kind: string, day: string, kobo: bigint): void {
    if (kobo !== 0n) this.#used.set(`${kind} ${day}`, this.usageAdded(kind, day) + kobo);
  }

  /** What this transaction added to a day so far, for those who read the day before it did. */
  usageAdded(kind: string, day: string): bigint {
    return this.#used.get(`${kind} ${day}`) ?? 0n;
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

  /** What is written at the end of a transaction that locked the row. */
  save(): Statement[] {
    const moved = this.#version !== toBigInt(this.row.version);
    const version = statement('UPDATE partners SET version = ? WHERE id = ?', this.#version, this.id);
    return moved ? [version, ...this.#saveShared()] : this.#saveShared();
  }

  /**
   * The same for a transaction that has not locked the row and goes by the version it is assumed to have. It begins with a
   * statement that locks the row and fails, because a version cannot be null, where it has another.
   */
  saveAssumed(writes: readonly Statement[]): Statement[] {
    const lock = statement(
      'UPDATE partners SET version = IF(version = ?, ?, NULL) WHERE id = ?',
      toBigInt(this.row.version),
      this.#version,
      this.id,
    );
    return [lock, ...writes, ...this.#saveShared()];
  }

  #saveShared(): Statement[] {
    const usage = [...this.#used].map(([key, kobo]) => {
      const [kind = '', day = ''] = key.split(' ');
      return statement(
        `INSERT INTO usage_days (partner_id, day, kind, used_kobo) VALUES (?, ?, ?, ?)
          ON DUPLICATE KEY UPDATE used_kobo = used_kobo + VALUES(used_kobo)`,
        this.id,
        day,
        kind,
        kobo,
      );
    });
    return [...usage, ...[...this.#kept.values()].flatMap((value) => value.save())];
  }
}
