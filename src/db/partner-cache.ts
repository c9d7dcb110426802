import type { PartnerState } from './partner-transaction.ts';

/** How many partners are remembered; the one not used for longest goes first. */
const mostPartners = 10_000;
/** How many shared values of each: a wallet, and the sums of this day and the last ones. */
const mostValues = 8;
/** How long nothing is expected of a partner after an expectation was wrong: another replica may work for it too. */
const doubtedMs = 1_000;

interface Remembered {
  readonly state: PartnerState | undefined;
  readonly doubtedUntil: number;
}

/**
 * What each partner's row and shared values were after this process's last transaction for it. They may have changed since,
 * so a transaction that relies on them proves them.
 */
export class PartnerCache {
  readonly #remembered = new Map<string, Remembered>();

  constructor(private readonly monotonicNow: () => number = () => performance.now()) {}

  /** What to expect; undefined if nothing is known, or if it was wrong a moment ago. */
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
    const kept = new Map([...shared].slice(-mostValues));
    const doubtedUntil = this.#remembered.get(partnerId)?.doubtedUntil ?? 0;
    this.#keep(partnerId, { state: { row, shared: kept }, doubtedUntil });
  }

  /** What was expected was wrong. */
  doubt(partnerId: string): void {
    this.#keep(partnerId, { state: undefined, doubtedUntil: this.monotonicNow() + doubtedMs });
  }

  #keep(partnerId: string, remembered: Remembered): void {
    this.#remembered.delete(partnerId);
    this.#remembered.set(partnerId, remembered);
    if (this.#remembered.size <= mostPartners) return;
    const [oldest = ''] = this.#remembered.keys();
    this.#remembered.delete(oldest);
  }
}
