import { type Instant, keptMs } from './counter-store.ts';
import { isReplicaName, maxReplicas } from './peers.ts';
import { type EntryChange, SharedCounter } from './shared-counter.ts';
import type { Purpose, Sharing } from './sharing.ts';

/** How long drawn tokens are valid. If a replica dies, its tokens are lost for at most so long. */
const stockMs = 2_000;
/** A replica that drew within this time draws spare tokens too. */
const busyMs = 1_000;
/** A replica that took a token within this time gives half of its tokens to another one that asks, otherwise all. */
const inUseMs = 100;
/** How long a replica waits before it asks again, and a request for a token of the share after other replicas were lost. */
const waitMs = { askAgain: 250, share: 250 };

/** How fast a bucket fills, and its capacity. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Tokens that a replica has drawn and hands out from memory. */
export interface Stock {
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
  /** Since when it has held no more than `own`, in milliseconds of the server's clock. */
  readonly ownSince: number;
  readonly given: number;
  /** The tokens it took from its share while NATS was away. */
  readonly charge: number;
  readonly needed: number;
  /** The spare tokens it asks for. It gets at most half of the rest. */
  readonly spare: number;
  readonly stockMs: number;
  readonly now: Instant;
}

/**
 * Buckets of tokens that replicas draw from together. A replica draws the tokens that its requests need. Under load it
 * draws spare ones too, so that few requests wait for NATS. A stock counts as part of the bucket, and expires after 2
 * s. While NATS is away, a replica's share is the rate and the burst divided by the last number of replicas. It begins
 * with the stock.
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
  #rate: Rate = { perSecond: 0, burst: 0 };
  /** Drawn tokens, valid until `goodUntil`. */
  #stock = 0;
  #goodUntil = 0;
  /** How many spare tokens to draw, and how many to give back. */
  #spare = 0;
  #given = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #usedAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** The bucket has no token before this time, so a request need not ask. */
  #emptyUntil = 0;
  /** This replica's share while it is in use, and the tokens taken from it that the entry does not have yet. */
  #share: { level: number; filledAt: number } | undefined;
  #uncharged = 0;

  constructor(sharing: Sharing, name: string) {
    super(sharing, 'tokens', name);
  }

  takeAt(rate: Rate): boolean | Promise<boolean> {
    this.#rate = rate;
    return this.take();
  }

  override lost(): void {
    super.lost();
    const now = this.sharing.time.now();
    this.#emptyUntil = 0;
    if (this.#share === undefined) this.#beginShare(Math.min(this.#stockAt(now), this.#shareOfRate.burst), now);
    this.#stock = 0;
  }

  protected hasChange(purpose: Purpose): boolean {
    const now = this.sharing.time.now();
    if (purpose === 'settle') return this.#chargeAt(now) > 0;
    return purpose === 'leave' && this.#stockAt(now) > 0;
  }

  protected takeHeld(now: number): boolean {
    if (this.#share !== undefined) {
      this.#uncharged = this.#chargeAt(now);
      this.#share = undefined;
    }
    if (this.#stockAt(now) < 1) return false;
    this.#stock -= 1;
    this.#usedAt = now;
    if (this.#stock < this.#usualStock / 2 && now >= this.#emptyUntil) void this.draw();
    return true;
  }

  protected takeOfShare(now: number): boolean | Promise<boolean> {
    const { time, lostAt } = this.sharing;
    const { perSecond, burst } = this.#shareOfRate;
    const filled = Math.max(this.#stockAt(now), ((now - lostAt) * perSecond) / 1_000);
    const share = this.#share ?? this.#beginShare(Math.min(burst, filled), now);
    this.#stock = 0;
    share.level = Math.min(burst, share.level + ((now - share.filledAt) * perSecond) / 1_000);
    share.filledAt = now;
    const missingMs = waitForToken(share, this.#shareOfRate);
    // The other replicas' tokens are out of reach now, so a short wait is worth it.
    if (missingMs > (now - lostAt < busyMs ? waitMs.share : 0)) return false;
    share.level -= 1;
    this.#uncharged += 1;
    this.#usedAt = now + missingMs;
    return missingMs === 0 || time.wait(missingMs).then(() => true);
  }

  protected isEmpty(now: number): boolean {
    return now < this.#emptyUntil || this.waiting.length >= this.#rate.burst;
  }

  protected valueFrom(read: unknown): Bucket | undefined {
    const found = bucketFrom(read);
    if (found === undefined || !isOfNow(found, this.sharing.store.now)) return undefined;
    // Replicas never owe more than they can take from their shares and in a second, and a token each.
    const { perSecond, burst } = this.#rate;
    return { ...found, level: Math.max(found.level, -(burst + perSecond + this.sharing.replicas)) };
  }

  protected newValue(isUntrusted: boolean): Bucket {
    // Nobody knows how many tokens there were, so it fills from now on.
    if (isUntrusted) return { level: 0, at: this.sharing.store.now.atLeast, held: {} };
    // It may have been filling since the store began, or since its entry was deleted.
    const { now, createdAt } = this.sharing.store;
    const isNew = this.sharing.isFirst && now.atMost - createdAt < keptMs;
    return { level: isNew ? this.#rate.burst : 0, at: Math.max(createdAt, now.atLeast - keptMs), held: {} };
  }

  protected prepare(purpose: Purpose, now: number): void {
    const stock = this.#stockAt(now);
    const isBusy = now - this.#drawnAt < busyMs;
    this.#spare = purpose === 'draw' && isBusy ? this.#usualStock : 0;
    this.#given = 0;
    if (purpose !== 'give' && purpose !== 'leave') return;
    this.#given = purpose === 'give' && now - this.#usedAt < inUseMs ? Math.ceil(stock / 2) : stock;
    this.#stock = stock - this.#given;
  }

  /** Draws, gives back, and charges tokens taken from the share. The write also tells the others how many were used. */
  protected change(before: Bucket, purpose: Purpose, sentAt: number): EntryChange<Bucket> {
    const { replica, store } = this.sharing;
    const own = this.#stockAt(sentAt);
    const uncharged = this.#uncharged;
    const charge = this.#chargeAt(sentAt);
    const { now } = store;
    this.#stock = own;
    const { bucket, drawn } = draw(before, this.#rate, {
      replica,
      own,
      // If this replica dropped the counter in between, it may have used tokens at any time.
      ownSince: Number.isFinite(this.#usedAt) ? now.atMost - (sentAt - this.#usedAt) : Number.POSITIVE_INFINITY,
      given: this.#given,
      charge,
      needed: Math.max(0, this.waiting.length - own),
      spare: Math.max(0, this.#spare - own),
      stockMs,
      now,
    });
    this.#emptyUntil = drawn > 0 ? 0 : sentAt + Math.min(waitForToken(bucket, this.#rate), waitMs.askAgain);
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

  protected othersToAsk(bucket: Bucket, now: number): string[] {
    if (now - this.#askedAt < waitMs.askAgain) return [];
    const others = holdersBut(this.sharing.replica, bucket, this.sharing.store.now);
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

  #beginShare(level: number, now: number): { level: number; filledAt: number } {
    this.#share = { level, filledAt: now };
    return this.#share;
  }

  /** The tokens taken from the share that it has not regained since. */
  #chargeAt(now: number): number {
    if (this.#share === undefined || this.#uncharged === 0) return this.#uncharged;
    const { perSecond, burst } = this.#shareOfRate;
    const level = this.#share.level + ((now - this.#share.filledAt) * perSecond) / 1_000;
    return Math.min(this.#uncharged, Math.max(0, burst - level));
  }
}

/** A time further ahead than this comes from a clock that was set back since. */
const maxAheadMs = 5_000;

/**
 * Draws from a bucket. The elapsed time is measured from the earliest possible time of the last draw to the earliest
 * possible time now. Replicas may differ in that, so the bucket fills more slowly by the difference.
 */
export function draw(before: Bucket, { perSecond, burst }: Rate, by: Draw): { bucket: Bucket; drawn: number } {
  const { now, replica, own } = by;
  const slower = 1 - (now.atMost - now.atLeast) / 1_000;
  const bucket = fill(before, { perSecond: perSecond * Math.max(0, slower), burst }, by);
  const others = Object.entries(bucket.held).filter(([id]) => id !== replica);
  const level = Math.min(burst - own - sum(others), bucket.level + by.given) - by.charge;
  const whole = Math.max(0, Math.floor(level));
  const needed = Math.min(by.needed, whole);
  const drawn = needed + Math.min(by.spare, Math.floor((whole - needed) / 2));
  const stock = { tokens: own + drawn, until: Math.ceil(now.atMost + by.stockMs) };
  return {
    bucket: {
      // Rounded down, so that rounding never adds tokens.
      level: Math.floor((level - drawn) * 1_000) / 1_000,
      at: Math.ceil(bucket.at * 1_000) / 1_000,
      held: Object.fromEntries(stock.tokens > 0 ? [...others, [replica, stock]] : others),
    },
    drawn,
  };
}

/**
 * Fills the bucket for the elapsed time. Another replica's stock counts as part of it until it expires, because the
 * time of its use is unknown and the bucket could have been full until then. A replica knows its own last use.
 */
function fill({ level, at, held }: Bucket, { perSecond, burst }: Rate, by: Draw): Bucket {
  const { now, replica, own, ownSince } = by;
  const isAhead = (time: number) => time > now.atMost + maxAheadMs;
  let filledTo = isAhead(at) ? now.atLeast : at;
  let filled = level;
  const stocks = Object.entries(held)
    .filter(([, { until }]) => !isAhead(until))
    .map(([id, { tokens, until }]): [string, Stock] => {
      const isOwn = id === replica;
      return [id, isOwn ? { tokens: Math.max(0, tokens - own), until: Math.min(until, ownSince) } : { tokens, until }];
    });
  const fillTo = (end: number, room: number) => {
    filled = Math.min(Math.max(filled, room), filled + (Math.max(0, end - filledTo) * perSecond) / 1_000);
    filledTo = Math.max(filledTo, end);
  };
  let rest = sum(stocks);
  const expired = stocks
    .filter(([, { until }]) => until <= now.atLeast)
    .sort(([, one], [, other]) => one.until - other.until);
  for (const [, { tokens, until }] of expired) {
    fillTo(until, burst - own - rest);
    rest -= tokens;
  }
  fillTo(now.atLeast, burst - own - rest);
  return {
    level: filled,
    at: filledTo,
    held: Object.fromEntries(stocks.filter(([, { until }]) => until > now.atLeast)),
  };
}

function sum(held: readonly [string, Stock][]): number {
  return held.reduce((total, [, { tokens }]) => total + tokens, 0);
}

/** The time until a level has become one token, in milliseconds. */
export function waitForToken({ level }: Pick<Bucket, 'level'>, { perSecond }: Rate): number {
  return perSecond > 0 ? (Math.max(0, 1 - level) * 1_000) / perSecond : Number.POSITIVE_INFINITY;
}

/** The other replicas with a valid stock. */
export function holdersBut(replica: string, { held }: Bucket, now: Instant): string[] {
  return Object.keys(held).filter((id) => id !== replica && (held[id]?.until ?? 0) > now.atLeast);
}

/** No bucket holds more tokens, or owes more: a partner's rate and burst are at most 1,000,000. */
const maxTokens = 4_000_000;

/** Checks an entry's value; undefined if it is no bucket, or one that cannot be. */
export function bucketFrom(value: unknown): Bucket | undefined {
  const { level, at, held } = (value ?? {}) as Partial<Bucket>;
  const isTime = (time: unknown): time is number => Number.isFinite(time);
  const isStock = ([replica, stock]: [string, Partial<Stock> | null]) => {
    const { tokens, until } = stock ?? {};
    return isReplicaName(replica) && typeof tokens === 'number' && tokens >= 0 && tokens <= maxTokens && isTime(until);
  };
  if (typeof level !== 'number' || !(Math.abs(level) <= maxTokens) || !isTime(at)) return undefined;
  if (typeof held !== 'object' || held === null || Array.isArray(held)) return undefined;
  const stocks = Object.entries(held);
  return stocks.length <= maxReplicas && stocks.every(isStock) ? { level, at, held } : undefined;
}

/** Whether no time of a bucket is further ahead than replicas can differ about the server's clock. */
export function isOfNow({ at, held }: Bucket, { atMost }: Instant): boolean {
  const last = atMost + maxAheadMs;
  return at <= last && Object.values(held).every(({ until }) => until <= last + stockMs);
}
