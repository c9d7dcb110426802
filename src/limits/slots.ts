import { once } from '../lib/once.ts';

/** A place taken. */
export interface Slot {
  /** Gives the place back. Only the first call counts. */
  release(): void;
}

/**
 * Places of which only so many can be taken at once: by one partner, or by all. Whoever takes one gives it back when it
 * is done, whatever became of it.
 */
export interface Slots {
  /**
   * Takes a place of a name, or answers undefined when all of them are taken. It waits for no place and never throws.
   *
   * @param name What is counted together, such as `documents.<partner>`: letters, digits, dots, hyphens, underscores.
   * @param most How many places there are, 1 or more.
   * @param isInLine Whether who finds none will ask again and again: other replicas let it have its turn.
   */
  acquire(name: string, most: number, isInLine?: boolean): Promise<Slot | undefined>;

  /** How many places of a name are taken now, as far as that can be found out. It never throws. */
  taken(name: string): Promise<number>;
}

/** Counts places within this process. */
export class LocalSlots implements Slots {
  readonly #taken = new Map<string, number>();

  async acquire(name: string, most: number): Promise<Slot | undefined> {
    const taken = this.#taken.get(name) ?? 0;
    if (taken >= most) return undefined;
    this.#taken.set(name, taken + 1);
    return slot(() => {
      const left = (this.#taken.get(name) ?? 1) - 1;
      if (left === 0) this.#taken.delete(name);
      else this.#taken.set(name, left);
    });
  }

  async taken(name: string): Promise<number> {
    return this.#taken.get(name) ?? 0;
  }
}

/** A place that is given back once. */
export function slot(giveBack: () => void): Slot {
  return { release: once(giveBack) };
}
