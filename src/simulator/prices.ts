/** The tick size in kobo: 1 below ₦5, 5 below ₦100, and 10 above. */
export function tickKobo(priceKobo: number): number {
  if (priceKobo < 500) return 1;
  return priceKobo < 10_000 ? 5 : 10;
}

/** Whether a price is a multiple of its tick. */
export function isOnTick(priceKobo: number): boolean {
  return priceKobo % tickKobo(priceKobo) === 0;
}

/** The day's price band: ±10 % of the previous close, rounded inwards to the tick. */
export function dailyBand(previousCloseKobo: number): { lowerKobo: number; upperKobo: number } {
  const lowest = Math.max(1, Math.ceil((previousCloseKobo * 9) / 10));
  const highest = Math.floor((previousCloseKobo * 11) / 10);
  const lowerKobo = Math.ceil(lowest / tickKobo(lowest)) * tickKobo(lowest);
  return { lowerKobo, upperKobo: Math.max(lowerKobo, onTickBelow(highest)) };
}

/** The highest price on its tick that is not above the given one. */
export function onTickBelow(priceKobo: number): number {
  return Math.floor(priceKobo / tickKobo(priceKobo)) * tickKobo(priceKobo);
}
