/** The smallest step of a price in kobo: 1 below ₦5, 5 below ₦100, 10 from there on. */
export function tickKobo(priceKobo: number): number {
  if (priceKobo < 500) return 1;
  return priceKobo < 10_000 ? 5 : 10;
}

/** Whether a price is a whole number of its ticks. */
export function isOnTick(priceKobo: number): boolean {
  return priceKobo % tickKobo(priceKobo) === 0;
}

/** The prices a day allows: ±10 % of the previous close, rounded inwards to the tick. */
export function dailyBand(previousCloseKobo: number): { lowerKobo: number; upperKobo: number } {
  const lowest = Math.max(1, Math.ceil((previousCloseKobo * 9) / 10));
  const highest = Math.floor((previousCloseKobo * 11) / 10);
  const lowerKobo = Math.ceil(lowest / tickKobo(lowest)) * tickKobo(lowest);
  return { lowerKobo, upperKobo: Math.max(lowerKobo, onTickBelow(highest)) };
}

/** The nearest price on its tick that is not above the given one. */
export function onTickBelow(priceKobo: number): number {
  return Math.floor(priceKobo / tickKobo(priceKobo)) * tickKobo(priceKobo);
}
