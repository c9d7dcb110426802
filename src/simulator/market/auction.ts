interface Depth {
  readonly priceKobo: number | null;
  readonly shares: number;
}

/**
 * The price at which most shares trade; of several, the one with the fewest shares left, then the nearest to the
 * reference, then the lowest. None if nothing can trade.
 */
export function auctionPrice(
  buys: readonly Depth[],
  sells: readonly Depth[],
  referenceKobo: number,
): number | undefined {
  const willingToPay = cumulated(buys);
  const willingToTake = cumulated(sells);
  const prices = new Set([referenceKobo, ...pricesOf(buys), ...pricesOf(sells)]);
  let best: { priceKobo: number; traded: number; over: number; away: number } | undefined;
  for (const priceKobo of prices) {
    const bought = upTo(willingToPay, (price) => price >= priceKobo);
    const sold = upTo(willingToTake, (price) => price <= priceKobo);
    const traded = Math.min(bought, sold);
    const found = { priceKobo, traded, over: Math.abs(bought - sold), away: Math.abs(priceKobo - referenceKobo) };
    if (traded > 0 && (best === undefined || isBetter(found, best))) best = found;
  }
  return best?.priceKobo;
}

type Found = Readonly<Record<'priceKobo' | 'traded' | 'over' | 'away', number>>;

function isBetter(one: Found, other: Found): boolean {
  if (one.traded !== other.traded) return one.traded > other.traded;
  if (one.over !== other.over) return one.over < other.over;
  return one.away === other.away ? one.priceKobo < other.priceKobo : one.away < other.away;
}

/** The shares that wait at each price or a better one. */
function cumulated(depths: readonly Depth[]): Depth[] {
  let sum = 0;
  return depths.map(({ priceKobo, shares }) => {
    sum += shares;
    return { priceKobo, shares: sum };
  });
}

/** The shares at the last acceptable price. The best prices come first, and null is always acceptable. */
function upTo(cumulatedDepths: readonly Depth[], isAcceptable: (priceKobo: number) => boolean): number {
  let [low, high] = [0, cumulatedDepths.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const price = cumulatedDepths[middle]?.priceKobo ?? null;
    if (price === null || isAcceptable(price)) low = middle + 1;
    else high = middle;
  }
  return cumulatedDepths[low - 1]?.shares ?? 0;
}

function pricesOf(depths: readonly Depth[]): number[] {
  return depths.flatMap(({ priceKobo }) => priceKobo ?? []);
}
