import type { Instant } from './server-clock.ts';

/** How fast a bucket fills, and how much it holds. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Tokens a replica has drawn and hands out without asking. */
export interface Stock {
  readonly tokens: number;
  /** From when on they are nobody's, in milliseconds of the server's clock. */
  readonly until: number;
}

/**
 * A bucket of tokens that replicas draw from. What is in it and what they hold of it is never more than it can hold, so in
 * any second no more is taken than a burst and a second's rate, whoever takes it.
 */
export interface Bucket {
  /** What was in it at `at`; less than nothing where more was taken by share than there was. */
  readonly level: number;
  /** In milliseconds of the server's clock. */
  readonly at: number;
  readonly held: Readonly<Record<string, Stock>>;
}

/** What a replica does to a bucket. */
export interface Change {
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
 * Changes a bucket. Time passes from the earliest the last change can have been to the earliest it can be now. What two
 * replicas may differ in that is made up for by filling more slowly, by as much in a second.
 */
export function change(before: Bucket, { perSecond, burst }: Rate, by: Change): { bucket: Bucket; drawn: number } {
  const { now, replica, own } = by;
  const slower = 1 - (now.atMost - now.atLeast) / 1_000;
  const bucket = fill(before, { perSecond: perSecond * Math.max(0, slower), burst }, by);
  const others = Object.entries(bucket.held).filter(([id]) => id !== replica);
  const room = burst - own - others.reduce((sum, [, { tokens }]) => sum + tokens, 0);
  const level = Math.min(room, bucket.level + by.given) - by.charge;
  const whole = Math.max(0, Math.floor(level));
  const needed = Math.min(by.needed, whole);
  const drawn = needed + Math.min(by.spare, Math.floor((whole - needed) / 2));
  const stock = { tokens: own + drawn, until: Math.ceil(now.atMost + by.stockMs) };
  return {
    bucket: {
      // Rounded against whoever draws.
      level: Math.floor((level - drawn) * 1_000) / 1_000,
      at: Math.ceil(bucket.at * 1_000) / 1_000,
      held: Object.fromEntries(stock.tokens > 0 ? [...others, [replica, stock]] : others),
    },
    drawn,
  };
}

/**
 * Lets time pass. What other replicas hold counts as if it were in the bucket until it is nobody's, used or not: when it
 * was used is not known, and the bucket could have been full until then. Of its own a replica knows when it used the last.
 */
function fill({ level, at, held }: Bucket, { perSecond, burst }: Rate, by: Change): Bucket {
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
    const room = burst - own - left.reduce((sum, [, { tokens }]) => sum + tokens, 0);
    filled = Math.min(Math.max(filled, room), filled + (Math.max(0, end - filledTo) * perSecond) / 1_000);
    filledTo = Math.max(filledTo, end);
    left = left.filter(([, { until }]) => until > end);
  }
  return { level: filled, at: filledTo, held: Object.fromEntries(left) };
}

/** How long it takes until a bucket has a token, in milliseconds. */
export function waitForToken({ level }: Bucket, { perSecond }: Rate): number {
  return perSecond > 0 ? (Math.max(0, 1 - level) * 1_000) / perSecond : Number.POSITIVE_INFINITY;
}

/** Whether other replicas hold some of it. */
export function holdersBut(replica: string, { held }: Bucket, now: Instant): string[] {
  return Object.entries(held)
    .filter(([id, { until }]) => id !== replica && until > now.atLeast)
    .map(([id]) => id);
}

/** Reads a bucket's text; undefined where it is none. */
export function bucketFrom(text: string): Bucket | undefined {
  const value = parseEntry(text) as Partial<Bucket> | null | undefined;
  if (typeof value?.level !== 'number' || typeof value.at !== 'number' || typeof value.held !== 'object') return;
  const isStock = (stock: unknown) => {
    const { tokens, until } = (stock ?? {}) as Partial<Stock>;
    return typeof tokens === 'number' && tokens >= 0 && typeof until === 'number';
  };
  if (value.held === null || !Object.values(value.held).every(isStock)) return;
  return { level: value.level, at: value.at, held: value.held };
}

/** The value of an entry's text; undefined where it is not JSON. */
export function parseEntry(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
