/** The numbers that a SequenceReset moves over. */
export interface Move {
  /** MsgSeqNum of the SequenceReset. */
  readonly number: number;
  /** The number that was expected before it. */
  readonly from: number;
  /** NewSeqNo: the number that is expected behind it. */
  readonly to: number;
  /** PossDupFlag: it stands for earlier messages, its own number included. */
  readonly isPossDup: boolean;
}

/** How many numbers of administrative messages are known. Those that are forgotten count as passed over. */
const maxSeen = 10_000;

/**
 * Which messages of the other side were passed over without being applied. Administrative messages that this connection has
 * seen, although they came too early, carried nothing that is lost.
 */
export class PassedOver {
  readonly #seen = new Set<number>();

  /** An administrative message came with a number that is not expected yet. */
  see(number: number): void {
    if (this.#seen.size < maxSeen) this.#seen.add(number);
  }

  /** Whether a SequenceReset passes over a message that may have been a report. */
  isBy({ number, from, to, isPossDup }: Move): boolean {
    // A long way has numbers that were not seen, because only so many are.
    if (to - from > maxSeen + 1) return true;
    for (let each = from; each < to; each += 1) {
      const isItsOwn = each === number && !isPossDup;
      if (!isItsOwn && !this.#seen.has(each)) return true;
    }
    return false;
  }
}
