import type { Instant } from './counter-store.ts';

/** How fast a bucket fills, and how much it can hold. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Tokens that a replica has drawn and hands out without asking. */
export interface Stock {
  readonly tokens: number;
  /** From when on they belong to nobody, in milliseconds of the server's clock. */
  readonly until: number;
}

/**
 * A bucket of tokens that replicas draw from. Its level and what they hold of it are never more than a burst together. So
 * in any second no more is taken than a burst and a second's rate, whoever takes it.
 */
export interface Bucket {
  /** The tokens in it at `at`; below zero if more were taken by share than there were. */
  readonly level: number;
  /** In milliseconds of the server's clock. */
  readonly at: number;
  readonly held: Readonly<Record<string, Stock>>;
}

/** What a replica does to a bucket. */
export interface Draw {
  readonly replica: string;
  /** What it holds already. */
  readonly own: number;
  /** Since when it has held no more than that, in milliseconds of the server's clock. */
  readonly ownSince: number;
  /** What it gives back. */
  readonly given: number;
  /** What it took by share while it could not ask. */
  readonly charge: number;
  /** What it needs at once. */
  readonly needed: number;
  /** What it would like besides. It gets no more than half of what is left. */
  readonly spare: number;
  /** How long it keeps what it holds, in milliseconds. */
  readonly stockMs: number;
  readonly now: Instant;
}

/** A time that is further ahead than this is from a clock that was set back since. */
const mostAheadMs = 5_000;

/**
 * Draws from a bucket. Time passes from the earliest that the last draw can have been to the earliest that it can be now.
 * Two replicas may differ in that, so the bucket fills more slowly by as much in a second.
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
      // Rounded to the disadvantage of the one that draws.
      level: Math.floor((level - drawn) * 1_000) / 1_000,
      at: Math.ceil(bucket.at * 1_000) / 1_000,
      held: Object.fromEntries(stock.tokens > 0 ? [...others, [replica, stock]] : others),
    },
    drawn,
  };
}

/**
 * Lets time pass. What other replicas hold counts as if it were in the bucket until it belongs to nobody, used or not: when
 * it was used is not known, and the bucket could have been full until then. A replica knows when it used its own last.
 */
function fill({ level, at, held }: Bucket, { perSecond, burst }: Rate, by: Draw): Bucket {
  const { now, replica, own, ownSince } = by;
  const isAhead = (time: number) => time > now.atMost + mostAheadMs;
  let filledTo = isAhead(at) ? now.atLeast : at;
  let filled = level;
  let left = Object.entries(held)
    .filter(([, { until }]) => !isAhead(until))
    .map(([id, { tokens, until }]): [string, Stock] => {
      const isOwn = id === replica;
      return [id, isOwn ? { tokens: Math.max(0, tokens - own), until: Math.min(until, ownSince) } : { tokens, until }];
    });
  const ends = left.map(([, { until }]) => until).filter((until) => until <= now.atLeast);
  for (const end of [...ends.sort((one, other) => one - other), now.atLeast]) {
    const room = burst - own - sum(left);
    filled = Math.min(Math.max(filled, room), filled + (Math.max(0, end - filledTo) * perSecond) / 1_000);
    filledTo = Math.max(filledTo, end);
    left = left.filter(([, { until }]) => until > end);
  }
  return { level: filled, at: filledTo, held: Object.fromEntries(left) };
}

function sum(held: readonly [string, Stock][]): number {
  return held.reduce((total, [, { tokens }]) => total + tokens, 0);
}

/** How long it takes until a level has become a token, in milliseconds. */
export function waitForToken({ level }: Pick<Bucket, 'level'>, { perSecond }: Rate): number {
  return perSecond > 0 ? (Math.max(0, 1 - level) * 1_000) / perSecond : Number.POSITIVE_INFINITY;
}

/** The other replicas that hold some of it. */
export function holdersBut(replica: string, { held }: Bucket, now: Instant): string[] {
  return Object.keys(held).filter((id) => id !== replica && (held[id]?.until ?? 0) > now.atLeast);
}

/** Checks an entry's value; undefined if it is no bucket. */
export function bucketFrom(value: unknown): Bucket | undefined {
  const { level, at, held } = (value ?? {}) as Partial<Bucket>;
  const isStock = (stock: Partial<Stock> | null) =>
    typeof stock?.tokens === 'number' && stock.tokens >= 0 && typeof stock.until === 'number';
  if (typeof level !== 'number' || typeof at !== 'number' || typeof held !== 'object' || held === null) return;
  return Object.values(held).every(isStock) ? { level, at, held } : undefined;
}
