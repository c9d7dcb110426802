import { type Instant, keptMs } from './counter-store.ts';
import { isReplicaName, maxReplicas } from './peers.ts';
import { type EntryChange, SharedCounter } from './shared-counter.ts';
import type { Purpose, Sharing } from './sharing.ts';

/** How long drawn tokens are valid. If a replica dies, its tokens are lost for at most so long. */
const stockMs = 2_000;
/** A replica that drew within this time draws spare tokens too. */
const busyMs = 1_000;
/**
 * In milliseconds. A replica that is asked for tokens gives all of its own. It gives only half of them if it used a token within
 * this time.
 */
const inUseMs = 100;
/**
 * `askAgain`: how long a replica waits before it asks other replicas again. `share`: how long a request may wait for a token of
 * the share, after the other replicas were lost.
 */
const waitMs = { askAgain: 250, share: 250 };

/** How fast a bucket fills, and its capacity. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Tokens that a replica has drawn and hands out from memory. */
interface Stock {
  readonly tokens: number;
  /** They expire at this time, in milliseconds of the server's clock. */
  readonly until: number;
}

/**
 * A bucket of tokens that replicas draw from. Its level and all stocks together never exceed the burst. So in any
 * second, all replicas together take at most the burst and one second's rate.
 */
export interface Bucket {
  /** The tokens in it at `at`. Below zero if replicas took too many from their shares. */
  readonly level: number;
  /** In milliseconds of the server's clock. */
  readonly at: number;
  readonly held: Readonly<Record<string, Stock>>;
}

/** A replica's change of a bucket. */
export interface Draw {
  readonly replica: string;
  /** The tokens it holds already. */
  readonly own: number;
  /**
   * The time of the last use of a token, in milliseconds of the server's clock. Since then the replica has held at most `own`
   * tokens.
   */
  readonly ownSince: number;
  readonly given: number;
  /** The tokens it took from its share while NATS was away. */
  readonly charge: number;
  readonly needed: number;
  /** The spare tokens it asks for. It gets at most half of the rest. */
  readonly spare: number;
  readonly now: Instant;
}

/**
 * Buckets of tokens that replicas draw from together. A replica draws the tokens that its requests need. Under load it draws
 * spare ones too, so that few requests wait for NATS. A stock counts as part of the bucket, and expires after 2 s. While NATS
 * is away, a replica's share is the rate and the burst divided by the last number of replicas. The share begins with the tokens
 * of the stock.
 */
export class SharedBuckets {
  readonly #counterOf: (name: string) => BucketCounter;

  constructor(sharing: Sharing) {
    this.#counterOf = sharing.counters((name) => new BucketCounter(sharing, name));
  }

  /** Takes a token; false if there is none. Never throws. Names have letters, digits, dots, hyphens, underscores. */
  take(name: string, rate: Rate): boolean | Promise<boolean> {
    return this.#counterOf(name).takeAt(rate);
  }
}

class BucketCounter extends SharedCounter<Bucket> {
  protected readonly folder = 'tokens';
  #rate: Rate = { perSecond: 0, burst: 0 };
  /** Drawn tokens, valid until `goodUntil`. */
  #stock = 0;
  #goodUntil = 0;
  /** How many tokens to give back. */
  #given = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #usedAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** The bucket has no token before this time, so a request need not ask. */
  #emptyUntil = 0;
  /**
   * This replica's share, while it is in use. `#uncharged` counts the tokens taken from the share that are not yet subtracted
   * in the shared entry.
   */
  #share: { readonly level: number; readonly at: number } | undefined;
  #uncharged = 0;

  takeAt(rate: Rate): boolean | Promise<boolean> {
    this.#rate = rate;
    return this.take();
  }

  override lost(): void {
    super.lost();
    this.#emptyUntil = 0;
    this.#fillShare(this.sharing.time.now());
  }

  protected hasChange(purpose: Purpose): boolean {
    const now = this.sharing.time.now();
    if (purpose === 'settle') return this.#chargeAt(now) > 0;
    return purpose === 'leave' && this.#stockAt(now) > 0;
  }

  protected takeHeld(now: number): boolean {
    this.#uncharged = this.#chargeAt(now);
    this.#share = undefined;
    if (this.#stockAt(now) < 1) return false;
    this.#stock -= 1;
    this.#usedAt = now;
    if (this.#stock < this.#usualStock / 2 && now >= this.#emptyUntil) void this.draw();
    return true;
  }

  protected takeOfShare(now: number): boolean | Promise<boolean> {
    const { time, lostAt } = this.sharing;
    const { level } = this.#fillShare(now);
    const missingMs = waitForToken(level, this.#shareOfRate);
    // The other replicas' tokens are out of reach now, so a short wait is worth it.
    if (missingMs > (now - lostAt < busyMs ? waitMs.share : 0)) return false;
    this.#share = { level: level - 1, at: now };
    this.#uncharged += 1;
    this.#usedAt = now + missingMs;
    return missingMs === 0 || time.wait(missingMs).then(() => true);
  }

  protected isEmpty(now: number): boolean {
    return now < this.#emptyUntil || this.waiting.length >= this.#rate.burst;
  }

  protected valueFrom(read: unknown): Bucket | undefined {
    const found = bucketFrom(read, this.sharing.store.now);
    // All replicas together can owe at most the burst, one second's rate, and one token each. A lower level in the entry is
    // raised to this.
    const { perSecond, burst } = this.#rate;
    return found && { ...found, level: Math.max(found.level, -(burst + perSecond + this.sharing.replicas)) };
  }

  protected newValue(isUntrusted: boolean): Bucket {
    const { now, createdAt } = this.sharing.store;
    // Nobody knows how many tokens there were, so it fills from now on.
    if (isUntrusted) return { level: 0, at: now.atLeast, held: {} };
    // It may have been filling since the store began, or since its entry was deleted.
    const isNew = this.sharing.isFirst && now.atMost - createdAt < keptMs;
    return { level: isNew ? this.#rate.burst : 0, at: Math.max(createdAt, now.atLeast - keptMs), held: {} };
  }

  protected prepare(purpose: Purpose, now: number): void {
    const stock = this.#stockAt(now);
    if (purpose === 'leave') this.#given = stock;
    else if (purpose === 'give') this.#given = now - this.#usedAt < inUseMs ? Math.ceil(stock / 2) : stock;
    else this.#given = 0;
    this.#stock = stock - this.#given;
  }

  /** Draws, gives back, and charges tokens taken from the share. The write also tells the others how many were used. */
  protected change(before: Bucket, purpose: Purpose, sentAt: number): EntryChange<Bucket> {
    const { replica, store } = this.sharing;
    const { now } = store;
    const own = this.#stockAt(sentAt);
    const uncharged = this.#uncharged;
    const charge = this.#chargeAt(sentAt);
    const spare = purpose === 'draw' && sentAt - this.#drawnAt < busyMs ? this.#usualStock : 0;
    this.#stock = own;
    const { bucket, drawn } = draw(before, this.#rate, {
      replica,
      own,
      // If this replica dropped the counter in between, it may have used tokens at any time.
      ownSince: Number.isFinite(this.#usedAt) ? now.atMost - (sentAt - this.#usedAt) : Number.POSITIVE_INFINITY,
      given: this.#given,
      charge,
      needed: Math.max(0, this.waiting.length - own),
      spare: Math.max(0, spare - own),
      now,
    });
    this.#emptyUntil = drawn > 0 ? 0 : sentAt + Math.min(waitForToken(bucket.level, this.#rate), waitMs.askAgain);
    const isUnchanged = drawn === 0 && charge === 0;
    const hasUsed = (before.held[replica]?.tokens ?? 0) > own;
    if (isUnchanged && (purpose === 'draw' || purpose === 'settle' || !hasUsed)) return { done: () => false };
    const done = () => {
      this.#uncharged -= uncharged;
      this.#stock += drawn;
      this.#goodUntil = sentAt + stockMs;
      this.#drawnAt = sentAt;
      return drawn > 0;
    };
    return { value: bucket, done };
  }

  protected othersToAsk({ held }: Bucket, now: number): string[] {
    if (now - this.#askedAt < waitMs.askAgain) return [];
    const { replica, store } = this.sharing;
    const { atLeast } = store.now;
    const others = Object.keys(held).filter((id) => id !== replica && (held[id]?.until ?? 0) > atLeast);
    if (others.length > 0) {
      this.#askedAt = now;
      this.#emptyUntil = 0;
    }
    return others;
  }

  #stockAt(now: number): number {
    return now < this.#goodUntil ? this.#stock : 0;
  }

  get #usualStock(): number {
    return Math.floor(Math.min(this.#rate.burst / 4, this.#rate.perSecond / 2));
  }

  get #shareOfRate(): Rate {
    const { replicas } = this.sharing;
    return { perSecond: this.#rate.perSecond / replicas, burst: Math.max(1, this.#rate.burst / replicas) };
  }

  /**
   * Fills the share for the time until now. The share begins with the tokens of the stock, and the tokens of the time since the
   * other replicas were lost.
   */
  #fillShare(now: number): { readonly level: number } {
    const { perSecond, burst } = this.#shareOfRate;
    // A finite time, because 0 tokens per second times an infinite time is not a number.
    const since = Math.max(Number.MIN_SAFE_INTEGER, this.sharing.lostAt);
    const { level, at } = this.#share ?? { level: this.#stockAt(now), at: since };
    this.#stock = 0;
    this.#share = { level: Math.min(burst, level + ((now - at) * perSecond) / 1_000), at: now };
    return this.#share;
  }

  /** The tokens that were taken from the share, minus those that the share has gained since then. */
  #chargeAt(now: number): number {
    if (this.#share === undefined || this.#uncharged === 0) return this.#uncharged;
    return Math.min(this.#uncharged, Math.max(0, this.#shareOfRate.burst - this.#fillShare(now).level));
  }
}

/**
 * Draws from a bucket. The server's time is known only as a range. The elapsed time is the difference between the earliest
 * possible time of the last draw and the earliest possible time now. The ranges of two replicas may differ. So the bucket fills
 * more slowly, by that difference. The stock of another replica counts as part of the bucket until it expires. Nobody knows
 * when that replica used its tokens, and the bucket may have been full until then. A replica knows its own last use.
 */
export function draw(before: Bucket, { perSecond, burst }: Rate, by: Draw): { bucket: Bucket; drawn: number } {
  const { now, replica, own } = by;
  const { [replica]: ownBefore = { tokens: 0, until: 0 }, ...heldByOthers } = before.held;
  const ownUsed = { tokens: Math.max(0, ownBefore.tokens - own), until: Math.min(ownBefore.until, by.ownSince) };
  const stocks = [...Object.values(heldByOthers), ownUsed];
  const perMs = (perSecond * Math.max(0, 1 - (now.atMost - now.atLeast) / 1_000)) / 1_000;
  let { level, at } = before;
  let room = burst - own - sum(stocks);
  const fillTo = (end: number) => {
    level = Math.min(Math.max(level, room), level + Math.max(0, end - at) * perMs);
    at = Math.max(at, end);
  };
  const expired = stocks.filter(({ until }) => until <= now.atLeast).sort((one, other) => one.until - other.until);
  for (const { tokens, until } of expired) {
    fillTo(until);
    room += tokens;
  }
  fillTo(now.atLeast);
  const others = Object.entries(heldByOthers).filter(([, { until }]) => until > now.atLeast);
  level = Math.min(burst - own - sum(others.map(([, stock]) => stock)), level + by.given) - by.charge;
  const whole = Math.max(0, Math.floor(level));
  const needed = Math.min(by.needed, whole);
  const drawn = needed + Math.min(by.spare, Math.floor((whole - needed) / 2));
  const stock = { tokens: own + drawn, until: Math.ceil(now.atMost + stockMs) };
  return {
    bucket: {
      // Rounded down, so that rounding never adds tokens.
      level: Math.floor((level - drawn) * 1_000) / 1_000,
      at: Math.ceil(at * 1_000) / 1_000,
      held: Object.fromEntries(stock.tokens > 0 ? [...others, [replica, stock]] : others),
    },
    drawn,
  };
}

function sum(stocks: readonly Stock[]): number {
  return stocks.reduce((total, { tokens }) => total + tokens, 0);
}

/** The time until a level has become one token, in milliseconds. */
export function waitForToken(level: number, { perSecond }: Rate): number {
  return perSecond > 0 ? (Math.max(0, 1 - level) * 1_000) / perSecond : Number.POSITIVE_INFINITY;
}

/** No bucket holds more tokens, or owes more: a partner's rate and burst are at most 1,000,000. */
const maxTokens = 4_000_000;
/**
 * The largest difference between the replicas' ideas of the server's time. If a stored time is further in the future, the
 * server's clock was set back after it was stored.
 */
const maxAheadMs = 5_000;

/**
 * Checks the value of an entry. Undefined if the value is not a bucket, if its numbers are impossible, or if its time is in the
 * future.
 */
export function bucketFrom(value: unknown, { atMost }: Instant): Bucket | undefined {
  const { level, at, held } = (value ?? {}) as Partial<Bucket>;
  const isTime = (time: unknown, latest: number): time is number => Number.isFinite(time) && Number(time) <= latest;
  const isStock = ([replica, stock]: [string, Partial<Stock> | null]) => {
    const { tokens, until } = stock ?? {};
    const isCount = typeof tokens === 'number' && tokens >= 0 && tokens <= maxTokens;
    return isReplicaName(replica) && isCount && isTime(until, atMost + maxAheadMs + stockMs);
  };
  if (typeof level !== 'number' || !(Math.abs(level) <= maxTokens) || !isTime(at, atMost + maxAheadMs))
    return undefined;
  if (typeof held !== 'object' || held === null || Array.isArray(held)) return undefined;
  const stocks = Object.entries(held);
  return stocks.length <= maxReplicas && stocks.every(isStock) ? { level, at, held } : undefined;
}
