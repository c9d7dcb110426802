/** The numbers that a SequenceReset moves over. */
export interface Move {
  /** MsgSeqNum of the SequenceReset. */
  readonly number: number;
  /** NewSeqNo: the number that is expected behind it. */
  readonly to: number;
  /** PossDupFlag, or reset mode: it stands for earlier messages, its own number included. */
  readonly isPossDup: boolean;
}

/** The numbers of a ResendRequest. */
export interface ResendRange {
  readonly begin: number;
  /** 0: no end. */
  readonly end: number;
}

export interface GapRules {
  /** How many numbers a ResendRequest may ask for; undefined: all. */
  readonly chunk: number | undefined;
  /** If nothing is resent for so long after a part was, the other side sends only so many at once: the rest is asked for. */
  readonly quietMs: number;
  /** How long nothing that is missing may come. */
  readonly timeoutMs: number;
}

interface Gap {
  /** The first number that was not seen to be missing. */
  to: number;
  /** The range that was asked for last; undefined: nothing yet. */
  asked: ResendRange | undefined;
  /** When it was asked for. */
  askedAt: number;
  /** Whether a part of what was asked for last has come. */
  hasProgressed: boolean;
  /** When something came last that was asked for, or was a repetition. */
  resentAt: number;
  readonly foundAt: number;
}

/** How many numbers of administrative messages are known. Those that are forgotten count as passed over. */
const maxSeen = 10_000;
/** A gap may take so many times the time within which a part of it must come. */
const maxParts = 20;

/**
 * The numbers of the other side's messages on one connection: which is the next one, which are missing, and whether messages
 * were passed over. All times are of the monotonic clock.
 */
export class Incoming {
  #next: number;
  #gap: Gap | undefined;
  /** Numbers of administrative messages that came too early. They carried nothing that is lost. */
  readonly #seen = new Set<number>();

  constructor(
    next: number,
    private readonly rules: GapRules,
  ) {
    this.#next = next;
  }

  /** The number of the next message. */
  get next(): number {
    return this.#next;
  }

  /** The numbers that are missing: from the first one to the last one that was seen to be. */
  get missing(): { readonly from: number; readonly to: number } | undefined {
    return this.#gap === undefined ? undefined : { from: this.#next, to: this.#gap.to - 1 };
  }

  /** The message with the next number was received. Returns whether it was the last one that was missing. */
  take(now: number): boolean {
    this.#next += 1;
    return this.#progress(now);
  }

  /** A message came before its turn, and must come again. Returns whether it shows a new gap. */
  comesEarly(number: number, isAdministrative: boolean, now: number): boolean {
    if (isAdministrative && this.#seen.size < maxSeen) this.#seen.add(number);
    if (this.#gap !== undefined) {
      this.#gap.to = Math.max(this.#gap.to, number + 1);
      return false;
    }
    const asked = undefined;
    this.#gap = { to: number + 1, asked, askedAt: now, hasProgressed: false, resentAt: now, foundAt: now };
    return true;
  }

  /** The other side knows what is missing, and sends it without being asked. */
  isSentAlready(now: number): void {
    if (this.#gap === undefined) return;
    Object.assign(this.#gap, {
      asked: { begin: this.#next, end: 0 },
      askedAt: now,
      hasProgressed: true,
      resentAt: now,
    });
  }

  /** A message came again that was received before. */
  repeats(now: number): void {
    if (this.#gap !== undefined) this.#gap.resentAt = now;
  }

  /**
   * Goes on with a higher number, as a SequenceReset demands. Returns whether a message was passed over that may have been a
   * report, and whether nothing is missing any more.
   */
  moveTo(move: Move, now: number): { readonly passesOver: boolean; readonly isClosed: boolean } {
    const passesOver = this.#passesOver(move);
    this.#next = move.to;
    return { passesOver, isClosed: this.#progress(now) };
  }

  /** Returns the range that must be asked for now. Undefined: nothing. */
  request(now: number): ResendRange | undefined {
    const gap = this.#gap;
    if (gap === undefined) return undefined;
    const { asked, hasProgressed, resentAt } = gap;
    const isDone = asked !== undefined && asked.end !== 0 && this.#next > asked.end;
    const hasStopped = hasProgressed && now - resentAt >= this.rules.quietMs;
    if (asked !== undefined && !isDone && !hasStopped) return undefined;
    const { chunk } = this.rules;
    const range = {
      begin: this.#next,
      end: chunk === undefined ? 0 : Math.min(this.#next + chunk - 1, gap.to - 1),
    };
    Object.assign(gap, { asked: range, askedAt: now, hasProgressed: false });
    return range;
  }

  /** Whether what was asked for has not come in time. */
  isOverdue(now: number): boolean {
    if (this.#gap === undefined) return false;
    const { askedAt, resentAt, foundAt } = this.#gap;
    const { timeoutMs } = this.rules;
    return now - Math.max(askedAt, resentAt) > timeoutMs || now - foundAt > timeoutMs * maxParts;
  }

  #progress(now: number): boolean {
    if (this.#gap === undefined) return false;
    Object.assign(this.#gap, { hasProgressed: true, resentAt: now });
    if (this.#next < this.#gap.to) return false;
    this.#gap = undefined;
    return true;
  }

  #passesOver({ number, to, isPossDup }: Move): boolean {
    // Without PossDupFlag it is a message of its own, unless its number is one that is missing: then it was sent before.
    const isOriginal = !isPossDup && (this.#gap === undefined || number >= this.#gap.to);
    // So many cannot all have been seen.
    if (to - this.#next > maxSeen + 1) return true;
    for (let each = this.#next; each < to; each += 1) {
      const isItsOwn = each === number && isOriginal;
      if (!isItsOwn && !this.#seen.has(each)) return true;
    }
    return false;
  }
}
