/** A step of an order's history that has a trade. */
export interface TradeStep {
  readonly sequence: number;
  readonly kind: string;
  readonly state: string;
  readonly at: number;
  readonly upstreamAt: number | null;
  readonly quantity: bigint | null;
  readonly priceKobo: bigint | null;
  readonly tradeSequence: number | null;
  readonly filledChange: bigint | null;
}

/** What a trade counts with in the order: nothing, if it was refused or taken back. */
interface Counted {
  readonly quantity: bigint;
  readonly priceKobo: bigint;
}

/** A trade of an order's history, with what later steps made of it. */
export interface KnownTrade {
  readonly at: number;
  readonly counted: Counted;
}

const nothing: Counted = { quantity: 0n, priceKobo: 0n };

/** The trades of an order by the step that has each of them. `steps` come in the order of their numbers. */
export function tradesOf(steps: readonly TradeStep[]): ReadonlyMap<number, KnownTrade> {
  const trades = new Map<number, KnownTrade>();
  for (const step of steps) {
    const { sequence, tradeSequence, at, upstreamAt } = step;
    const quantity = step.quantity ?? 0n;
    const stated = quantity === 0n ? nothing : { quantity, priceKobo: step.priceKobo ?? 0n };
    if (tradeSequence === null) {
      trades.set(sequence, { at: upstreamAt ?? at, counted: isCounted(step) ? stated : nothing });
      continue;
    }
    const before = trades.get(tradeSequence);
    // A report that repeats a trade changes nothing.
    if (before !== undefined && step.kind === 'settled_by_operator') {
      trades.set(tradeSequence, { ...before, counted: stated });
    }
  }
  return trades;
}

/** Whether a step's own trade counted in the order when the step was written. */
export function isCounted({ kind, state, filledChange }: Pick<TradeStep, 'kind' | 'state' | 'filledChange'>): boolean {
  if (filledChange !== null) return filledChange !== 0n;
  // Steps of earlier versions do not say. A late trade of an order that was refused or rejected is inconsistent, and counted.
  return kind === 'report' || state === 'refused' || state === 'rejected';
}

/** The sums of an order's trades. */
export function sumsOf(trades: ReadonlyMap<number, KnownTrade>): { quantity: bigint; valueKobo: bigint } {
  let quantity = 0n;
  let valueKobo = 0n;
  for (const { counted } of trades.values()) {
    quantity += counted.quantity;
    valueKobo += counted.quantity * counted.priceKobo;
  }
  return { quantity, valueKobo };
}
