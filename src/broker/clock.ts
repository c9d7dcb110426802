import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';

/**
 * Whether the broker's clock and ours agree. `in_step`: they differ by no more than they may. `apart`: something showed that
 * they differ by more, or did within the last seconds. `unknown`: neither is known.
 */
export type ClockAgreement = 'in_step' | 'apart' | 'unknown';

/** How far the broker's clock is ahead of ours in milliseconds. The least is above the most if it changed lately. */
export interface ClockOffset {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** This process's two clocks: the one that may jump, and the one that only measures durations. */
export interface OwnClocks {
  realNow(): number;
  monotonicNow(): number;
}

/** What was learned within one second, against the monotonic clock. */
interface Slot {
  readonly second: number;
  leastMs: number;
  mostMs: number;
}

/** How long what was learned counts: after a clock was wrong, so long must everything agree. */
export const rememberedMs = 20_000;
const slotMs = 1_000;
const slotCount = rememberedMs / slotMs + 1;
/** A round trip cannot tell smaller differences. */
const leastSkewMs = 100;
/** How much two good clocks may drift apart per millisecond: more than quartz does. */
const drift = 0.001;
/** Times are cut off to the millisecond, stated ones and our own. */
const cutOffMs = 1;

const ownClocks: OwnClocks = { realNow: () => Date.now(), monotonicNow: () => performance.now() };

/**
 * Measures how far the broker's clock is ahead of ours, by the times that the broker states. A time in an answer was read
 * between the sending of the call and the receipt of the answer, so each round trip gives two bounds. The offset lies between
 * the highest lower bound and the lowest upper bound of the last seconds.
 *
 * All is kept against the monotonic clock. So a jump of our own clock shows at once, and not as an offset of the broker.
 */
export class BrokerClock {
  readonly #slots: (Slot | undefined)[] = new Array(slotCount).fill(undefined);
  #answeredAt: number | undefined;
  /** By how much the clocks may differ. */
  readonly skewMs: number;

  constructor(
    skewMs: number,
    private readonly own: OwnClocks = ownClocks,
  ) {
    this.skewMs = Math.max(skewMs, leastSkewMs);
  }

  /** The monotonic time now, for `answered`. */
  now(): number {
    return this.own.monotonicNow();
  }

  /** How long no answer has stated a time; undefined: none ever has. */
  get silentMs(): number | undefined {
    return this.#answeredAt === undefined ? undefined : this.own.monotonicNow() - this.#answeredAt;
  }

  /** An answer came to a call that was sent at a monotonic time. */
  answered(sentAt: number, stated: Timestamp | undefined): void {
    if (stated === undefined) return;
    const at = timestampMs(stated);
    const receivedAt = this.own.monotonicNow();
    this.#answeredAt = receivedAt;
    this.#learn(at - receivedAt, at + cutOffMs - sentAt);
  }

  /** A message of a stream came. It may have been under way for any time, so it gives one bound. */
  streamed(stated: Timestamp | undefined): void {
    if (stated !== undefined) this.#learn(timestampMs(stated) - this.own.monotonicNow(), Number.POSITIVE_INFINITY);
  }

  /** What is known of the offset now; a bound that is not known is infinite. */
  get offset(): ClockOffset {
    const second = this.#second();
    const ahead = this.#realAhead();
    let leastMs = Number.NEGATIVE_INFINITY;
    let mostMs = Number.POSITIVE_INFINITY;
    for (const slot of this.#slots) {
      if (slot === undefined || slot.second <= second - slotCount) continue;
      const drifted = (second - slot.second + 1) * slotMs * drift;
      leastMs = Math.max(leastMs, slot.leastMs - drifted);
      mostMs = Math.min(mostMs, slot.mostMs + drifted);
    }
    return { leastMs: leastMs - ahead.mostMs, mostMs: mostMs - ahead.leastMs };
  }

  get agreement(): ClockAgreement {
    const { leastMs, mostMs } = this.offset;
    if (mostMs < -this.skewMs || leastMs > this.skewMs) return 'apart';
    return leastMs >= -this.skewMs && mostMs <= this.skewMs ? 'in_step' : 'unknown';
  }

  /** One figure for the offset; of a clock that changed lately, the one that is further off. Undefined: not known. */
  get estimateMs(): number | undefined {
    const { leastMs, mostMs } = this.offset;
    const known = [leastMs, mostMs].filter(Number.isFinite);
    if (known.length === 2 && leastMs <= mostMs) return (leastMs + mostMs) / 2;
    if (known.length === 0 || (known.length === 1 && this.agreement !== 'apart')) return undefined;
    return known.reduce((one, other) => (Math.abs(one) > Math.abs(other) ? one : other));
  }

  #learn(leastMs: number, mostMs: number): void {
    const second = this.#second();
    const at = second % slotCount;
    const slot = this.#slots[at];
    if (slot?.second === second) {
      slot.leastMs = Math.max(slot.leastMs, leastMs);
      slot.mostMs = Math.min(slot.mostMs, mostMs);
    } else {
      this.#slots[at] = { second, leastMs, mostMs };
    }
  }

  #second(): number {
    return Math.floor(this.own.monotonicNow() / slotMs);
  }

  /** How far our real time is ahead of the monotonic one: this process may be stopped between two looks at clocks. */
  #realAhead(): ClockOffset {
    const before = this.own.monotonicNow();
    const real = this.own.realNow();
    return { leastMs: real - this.own.monotonicNow(), mostMs: real + cutOffMs - before };
  }
}
