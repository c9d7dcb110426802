/** The tick in kobo from a price on: 1 below ₦5, 5 below ₦100, and 10 above. */
const ticks = [
  { fromKobo: 0, tickKobo: 1 },
  { fromKobo: 500, tickKobo: 5 },
  { fromKobo: 10_000, tickKobo: 10 },
] as const;

/** The tick size in kobo at a price. */
export function tickKobo(priceKobo: number): number {
  if (priceKobo < ticks[1].fromKobo) return ticks[0].tickKobo;
  return priceKobo < ticks[2].fromKobo ? ticks[1].tickKobo : ticks[2].tickKobo;
}

/** The ticks of the prices in a band, by price. */
export function ticksWithin(lowerKobo: number, upperKobo: number) {
  return ticks.filter(
    ({ fromKobo }, at) => fromKobo <= upperKobo && (ticks[at + 1]?.fromKobo ?? Number.POSITIVE_INFINITY) > lowerKobo,
  );
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
