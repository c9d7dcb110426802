import { once } from '../lib/once.ts';

/** Counts what this process has under way, of each partner and of all. */
export class LocalCount {
  readonly #counts = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  of(partnerId: string): number {
    return this.#counts.get(partnerId) ?? 0;
  }

  /** Counts one more. What it returns counts it off, once. */
  add(partnerId: string): () => void {
    this.#change(partnerId, 1);
    return once(() => this.#change(partnerId, -1));
  }

  #change(partnerId: string, by: 1 | -1): void {
    const count = this.of(partnerId) + by;
    this.#total += by;
    if (count === 0) this.#counts.delete(partnerId);
    else this.#counts.set(partnerId, count);
  }
}
