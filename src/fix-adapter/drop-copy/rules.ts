/** The trades on which the drop copy and the order session must agree. Both may be late by the grace time. */

/** A trade as one of the two sides has it. */
export interface Trade {
  readonly execId: string;
  /** 0: it could not be read. */
  readonly quantity: bigint;
  readonly priceKobo: bigint;
}

/** The state of the order session at a time, in milliseconds. */
export interface Mark {
  /** The highest number of a report. */
  readonly number: bigint;
  /** The highest id of a trade that was taken back or corrected. */
  readonly changed: bigint;
  readonly at: number;
}

/** Returns the fault of a trade of the drop copy whose grace is over. Undefined: nothing. */
export function faultOfCopied(copied: Trade, booked: Trade | undefined): string | undefined {
  const shown = `${copied.quantity} at ${copied.priceKobo} kobo`;
  if (booked === undefined) return `the drop copy has a trade that was not booked: ${shown}`;
  if (booked.quantity === copied.quantity && booked.priceKobo === copied.priceKobo) return undefined;
  return `the drop copy has ${shown}, and what was booked is ${booked.quantity} at ${booked.priceKobo} kobo`;
}

/**
 * Returns the fault of a trade of the order session whose grace is over, by the trades of the drop copy with its order
 * and ExecID. One that is there with other terms is found as a trade of the drop copy. `passedOver`: the copy may have
 * been in a message that was passed over, so that the trade is not confirmed.
 */
export function faultOfBooked(booked: Trade, copies: readonly Trade[], passedOver: boolean): string | undefined {
  if (copies.length > 0) return undefined;
  const why = passedOver ? '; it passed over messages, so the trade is not confirmed' : '';
  return `the drop copy lacks a trade that was booked: ${booked.quantity} at ${booked.priceKobo} kobo${why}`;
}

/** Whether the grace of a trade that came at this time is over. */
export function isOver(at: number, now: number, graceMs: number): boolean {
  return now - at >= graceMs;
}

/**
 * The mark up to which reports and changes of the order session must be on the drop copy. Their grace begins anew when the drop copy comes
 * up. Undefined: none must.
 */
export function dueMark(
  marks: readonly Mark[],
  upSince: number | undefined,
  now: number,
  graceMs: number,
): Mark | undefined {
  if (upSince === undefined) return undefined;
  return marks.findLast(({ at }) => isOver(Math.max(at, upSince), now, graceMs));
}

/** The marks with one more, and without those before the last that is over. An unchanged state is marked once. */
export function withMark(marks: readonly Mark[], mark: Mark, graceMs: number): readonly Mark[] {
  const last = marks.at(-1);
  const isSame = last?.number === mark.number && last.changed === mark.changed;
  const all = isSame ? marks : [...marks, mark];
  const over = all.findLastIndex(({ at }) => isOver(at, mark.at, graceMs));
  return all.slice(Math.max(0, over));
}
