/** Makes a function that gives something back the first time it is called, and does nothing after that. */
export function once(giveBack: () => void): () => void {
  let isGiven = false;
  return () => {
    if (isGiven) return;
    isGiven = true;
    giveBack();
  };
}

/** Counts what is open, by whose it is. A name of which nothing is open is forgotten. */
export class Counts {
  total = 0;
  readonly #byName = new Map<string, number>();

  of(name: string): number {
    return this.#byName.get(name) ?? 0;
  }

  /** Counts one more. Call what it returns when that one is over. */
  add(name: string): () => void {
    this.total += 1;
    this.#byName.set(name, this.of(name) + 1);
    return once(() => {
      this.total -= 1;
      const left = this.of(name) - 1;
      if (left === 0) this.#byName.delete(name);
      else this.#byName.set(name, left);
    });
  }
}
