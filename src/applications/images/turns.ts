interface Line<Item> {
  readonly items: Item[];
  /** How much this partner has used, counted as if nobody had waited while it used nothing. */
  used: number;
}

/**
 * Items of many partners that wait for one resource. The partner that has used the least comes next, so each gets the same
 * share of the resource while it waits, however many items it has and however long each takes.
 */
export class Turns<Item> {
  readonly #lines = new Map<string, Line<Item>>();
  #waiting = 0;
  /** What the partner had used that came last. Whoever comes new begins here: nobody saves up turns. */
  #usedByLast = 0;

  /** How many items wait. */
  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(partnerId: string): number {
    return this.#lines.get(partnerId)?.items.length ?? 0;
  }

  add(partnerId: string, item: Item): void {
    const line = this.#lines.get(partnerId) ?? { items: [], used: 0 };
    if (line.items.length === 0) line.used = Math.max(line.used, this.#usedByLast);
    line.items.push(item);
    this.#lines.set(partnerId, line);
    this.#waiting += 1;
  }

  /** The item that comes next. It stays until it is removed. */
  peek(): Item | undefined {
    return this.#next()?.items[0];
  }

  /** Takes an item out. Returns false if it was taken before. */
  remove(partnerId: string, item: Item): boolean {
    const line = this.#lines.get(partnerId);
    const at = line?.items.indexOf(item) ?? -1;
    if (line === undefined || at === -1) return false;
    line.items.splice(at, 1);
    this.#usedByLast = Math.max(this.#usedByLast, line.used);
    this.#waiting -= 1;
    return true;
  }

  /** Counts what an item that was taken out has used. */
  charge(partnerId: string, amount: number): void {
    const charged = this.#lines.get(partnerId);
    if (charged !== undefined) charged.used += amount;
    for (const [id, line] of this.#lines) {
      const isForgotten = line.items.length === 0 && (line.used <= this.#usedByLast || this.#waiting === 0);
      if (isForgotten) this.#lines.delete(id);
    }
  }

  #next(): Line<Item> | undefined {
    let next: Line<Item> | undefined;
    for (const line of this.#lines.values()) {
      if (line.items.length > 0 && (next === undefined || line.used < next.used)) next = line;
    }
    return next;
  }
}
