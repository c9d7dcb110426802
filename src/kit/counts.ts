/** Makes a function that calls `giveBack` the first time, and does nothing after that. */
export function once(giveBack: () => void): () => void {
  let isGiven = false;
  return () => {
    if (isGiven) return;
    isGiven = true;
    giveBack();
  };
}

/** Counts open items by name. A name without open items takes no memory. */
export class Counts {
  total = 0;
  readonly #byName = new Map<string, number>();

  of(name: string): number {
    return this.#byName.get(name) ?? 0;
  }

  /** Counts one more. Call the returned function when it is over. */
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
