/** What the drop copy and the order session must agree on. Both may be late by the grace time. */

/** A trade as one of the two sides has it. */
export interface Trade {
  readonly execId: string;
  /** 0: it could not be read. */
  readonly quantity: bigint;
  readonly priceKobo: bigint;
}

/** The highest number of a report of the order session that was known at a time, in milliseconds. */
export interface Mark {
  readonly number: bigint;
  readonly at: number;
}

/** What is wrong with a trade of the drop copy whose grace is over. Undefined: nothing. */
export function faultOfCopied(copied: Trade, booked: Trade | undefined): string | undefined {
  const shown = `${copied.quantity} at ${copied.priceKobo} kobo`;
  if (booked === undefined) return `the drop copy has a trade that was not booked: ${shown}`;
  if (booked.quantity === copied.quantity && booked.priceKobo === copied.priceKobo) return undefined;
  return `the drop copy has ${shown}, and what was booked is ${booked.quantity} at ${booked.priceKobo} kobo`;
}

/**
 * What is wrong with a trade of the order session whose grace is over, by the trades of the drop copy with its order and ExecID.
 * One that is there with other terms is found as a trade of the drop copy.
 */
export function faultOfBooked(booked: Trade, copies: readonly Trade[]): string | undefined {
  if (copies.length > 0) return undefined;
  return `the drop copy lacks a trade that was booked: ${booked.quantity} at ${booked.priceKobo} kobo`;
}

/** Whether the grace of a trade that came at this time is over. */
export function isOver(at: number, now: number, graceMs: number): boolean {
  return now - at >= graceMs;
}

/**
 * The number up to which reports of the order session must be on the drop copy. Their grace begins anew when the drop copy comes
 * up. Undefined: none must.
 */
export function dueNumber(
  marks: readonly Mark[],
  upSince: number | undefined,
  now: number,
  graceMs: number,
): bigint | undefined {
  if (upSince === undefined) return undefined;
  return marks.findLast(({ at }) => isOver(Math.max(at, upSince), now, graceMs))?.number;
}

/** The marks with one more, and without those before the last that is over. A number is marked once. */
export function withMark(marks: readonly Mark[], mark: Mark, graceMs: number): readonly Mark[] {
  const all = marks.at(-1)?.number === mark.number ? marks : [...marks, mark];
  const over = all.findLastIndex(({ at }) => isOver(at, mark.at, graceMs));
  return all.slice(Math.max(0, over));
}
