import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';

/**
 * Whether the broker's clock and ours agree. `in_step`: the difference is within the limit. `apart`: it is above, or was
 * within the last seconds. `unknown`: neither is known.
 */
export type ClockAgreement = 'in_step' | 'apart' | 'unknown';

/** How far the broker's clock is ahead of ours, in milliseconds. If it changed lately, the least is above the most. */
export interface ClockOffset {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** This process's two clocks: one that may jump, and a monotonic one. */
export interface OwnClocks {
  realNow(): number;
  monotonicNow(): number;
}

/** The bounds from one second, relative to the monotonic clock. */
interface Slot {
  readonly second: number;
  leastMs: number;
  mostMs: number;
}

/** How long a measurement counts. After a clock was wrong, all measurements must agree for this long. */
export const rememberedMs = 20_000;
const slotMs = 1_000;
const slotCount = rememberedMs / slotMs + 1;
/** A round trip cannot show smaller differences. */
const leastSkewMs = 100;
/** How much two good clocks may drift apart per millisecond: more than quartz does. */
const drift = 0.001;
/** Stated times and our own are cut off to the millisecond. */
const cutOffMs = 1;

const ownClocks: OwnClocks = { realNow: () => Date.now(), monotonicNow: () => performance.now() };

/**
 * Measures how far the broker's clock is ahead of ours. The broker read a stated time between the sending of a call and
 * the receipt of its answer, so each round trip gives two bounds. The offset lies between the highest lower and the
 * lowest upper bound of the last 20 s.
 *
 * Bounds are relative to the monotonic clock, so a jump of our own clock does not look like an offset of the broker.
 */
export class BrokerClock {
  readonly #slots: (Slot | undefined)[] = new Array(slotCount).fill(undefined);
  #answeredAt: number | undefined;
  /** The largest expected difference of the clocks. */
  readonly skewMs: number;

  constructor(
    skewMs: number,
    private readonly own: OwnClocks = ownClocks,
  ) {
    this.skewMs = Math.max(skewMs, leastSkewMs);
  }

  /** The monotonic time, for `answered`. */
  now(): number {
    return this.own.monotonicNow();
  }

  /** The time since an answer last stated a time; undefined: none ever did. */
  get silentMs(): number | undefined {
    return this.#answeredAt === undefined ? undefined : this.own.monotonicNow() - this.#answeredAt;
  }

  /** Learns from an answer. `sentAt` is the monotonic time at which its call was sent. */
  answered(sentAt: number, stated: Timestamp | undefined): void {
    if (stated === undefined) return;
    const at = timestampMs(stated);
    const receivedAt = this.own.monotonicNow();
    this.#answeredAt = receivedAt;
    this.#learn(at - receivedAt, at + cutOffMs - sentAt);
  }

  /** Learns from a stream's message. Its delay is unknown, so it gives one bound. */
  streamed(stated: Timestamp | undefined): void {
    if (stated !== undefined) this.#learn(timestampMs(stated) - this.own.monotonicNow(), Number.POSITIVE_INFINITY);
  }

  /** The present bounds; an unknown one is infinite. */
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

  /** The offset as one figure; if it changed lately, the larger bound. Undefined: unknown. */
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

  /** How far our real time is ahead of the monotonic one: a range, because the process may pause between the reads. */
  #realAhead(): ClockOffset {
    const before = this.own.monotonicNow();
    const real = this.own.realNow();
    return { leastMs: real - this.own.monotonicNow(), mostMs: real + cutOffMs - before };
  }
}
