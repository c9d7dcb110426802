/** How many partners' versions are remembered; the one not used for longest goes first. */
const mostPartners = 10_000;
/** How long nothing is assumed of a partner after an assumption was wrong: another replica works for it too. */
const doubtedMs = 1_000;

interface Known {
  readonly version: bigint;
  readonly doubtedUntil: number;
}

/**
 * The version each partner had after this process's last transaction for it. It may have moved on since, so a transaction
 * that begins with it says so to the database and fails where it has.
 */
export class PartnerVersions {
  readonly #known = new Map<string, Known>();

  constructor(private readonly monotonicNow: () => number = () => performance.now()) {}

  /** The version to assume; undefined where nothing is known or it was wrong a moment ago. */
  assumed(partnerId: string): bigint | undefined {
    const known = this.#known.get(partnerId);
    return known === undefined || this.monotonicNow() < known.doubtedUntil ? undefined : known.version;
  }

  /** The partner has this version: it was read or written under its lock. */
  learn(partnerId: string, version: bigint): void {
    this.#keep(partnerId, { version, doubtedUntil: this.#known.get(partnerId)?.doubtedUntil ?? 0 });
  }

  /** What was assumed was wrong. */
  doubt(partnerId: string): void {
    const version = this.#known.get(partnerId)?.version ?? 0n;
    this.#keep(partnerId, { version, doubtedUntil: this.monotonicNow() + doubtedMs });
  }

  #keep(partnerId: string, known: Known): void {
    this.#known.delete(partnerId);
    this.#known.set(partnerId, known);
    if (this.#known.size <= mostPartners) return;
    const [oldest = ''] = this.#known.keys();
    this.#known.delete(oldest);
  }
}
