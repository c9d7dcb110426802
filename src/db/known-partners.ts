import type { SqlRow } from './statement.ts';

/** How many partners' rows are remembered; the one not used for longest goes first. */
const mostPartners = 10_000;
/** How long nothing is assumed of a partner after an assumption was wrong: another replica may work for it too. */
const doubtedMs = 1_000;

interface Known {
  readonly row: SqlRow | undefined;
  readonly doubtedUntil: number;
}

/**
 * What each partner's row was after this process's last transaction for it. It may have changed since, so a transaction
 * that begins with it says so to the database and fails where it has.
 */
export class KnownPartners {
  readonly #known = new Map<string, Known>();

  constructor(private readonly monotonicNow: () => number = () => performance.now()) {}

  /** The row to assume; undefined where nothing is known or it was wrong a moment ago. */
  assumed(partnerId: string): SqlRow | undefined {
    const known = this.#known.get(partnerId);
    return known === undefined || this.monotonicNow() < known.doubtedUntil ? undefined : known.row;
  }

  /** The partner's row is this: it was read or written under its lock. */
  learn(partnerId: string, row: SqlRow): void {
    this.#keep(partnerId, { row, doubtedUntil: this.#known.get(partnerId)?.doubtedUntil ?? 0 });
  }

  /** What was assumed was wrong. */
  doubt(partnerId: string): void {
    this.#keep(partnerId, { row: undefined, doubtedUntil: this.monotonicNow() + doubtedMs });
  }

  #keep(partnerId: string, known: Known): void {
    this.#known.delete(partnerId);
    this.#known.set(partnerId, known);
    if (this.#known.size <= mostPartners) return;
    const [oldest = ''] = this.#known.keys();
    this.#known.delete(oldest);
  }
}
