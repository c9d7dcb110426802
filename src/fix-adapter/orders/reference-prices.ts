/** More symbols than the exchange has. */
const maxSymbols = 5_000;

/** The last price of each symbol that the back office stated, against which the prices of trades are held to be plausible. */
export class ReferencePrices {
  readonly #prices = new Map<string, bigint>();

  note(symbol: string, priceKobo: bigint): void {
    if (priceKobo < 1n) return;
    this.#prices.delete(symbol);
    this.#prices.set(symbol, priceKobo);
    const [oldest] = this.#prices.keys();
    if (this.#prices.size > maxSymbols && oldest !== undefined) this.#prices.delete(oldest);
  }

  /** In kobo; null if none was stated since this process has the session. */
  of(symbol: string): bigint | null {
    return this.#prices.get(symbol) ?? null;
  }
}
