interface Item {
  readonly key: string;
  readonly dueAtMs: number;
}

/** How many items it keeps. The caller must find further items again later. */
const maxHeld = 200_000;
/** The longest time for setTimeout. */
const maxTimeoutMs = 2_147_483_647;

/** Calls back for keys when their times come, earliest first, with one timer. */
export class Scheduler {
  /** The present time of each key. An item of the heap with another time is out of date. */
  readonly #dueAt = new Map<string, number>();
  readonly #heap: Item[] = [];
  #timer: NodeJS.Timeout | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #closed = false;
  /** Whether an item did not fit since the last reset. */
  overflowed = false;

  constructor(
    private readonly now: () => number,
    private readonly due: (keys: string[]) => void,
  ) {}

  get size(): number {
    return this.#dueAt.size;
  }

  /** Sets or changes a key's time; null removes it. */
  set(key: string, dueAtMs: number | null): void {
    if (dueAtMs === null) {
      this.#dueAt.delete(key);
      return;
    }
    if (this.#closed || this.#dueAt.get(key) === dueAtMs) return;
    if (this.#heap.length >= maxHeld) {
      this.overflowed = true;
      return;
    }
    this.#dueAt.set(key, dueAtMs);
    this.#push({ key, dueAtMs });
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#dueAt.clear();
    this.#heap.length = 0;
  }

  #arm(): void {
    const next = this.#heap[0];
    if (next === undefined || next.dueAtMs >= this.#timerAtMs) return;
    clearTimeout(this.#timer);
    this.#timerAtMs = next.dueAtMs;
    const waitMs = Math.min(maxTimeoutMs, Math.max(0, next.dueAtMs - this.now()));
    this.#timer = setTimeout(() => this.#fire(), waitMs);
  }

  #fire(): void {
    this.#timerAtMs = Number.POSITIVE_INFINITY;
    const now = this.now();
    const keys: string[] = [];
    for (let next = this.#heap[0]; next !== undefined && next.dueAtMs <= now; next = this.#heap[0]) {
      this.#pop();
      if (this.#dueAt.get(next.key) !== next.dueAtMs) continue;
      this.#dueAt.delete(next.key);
      keys.push(next.key);
    }
    if (keys.length > 0) this.due(keys);
    this.#arm();
  }

  #push(item: Item): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(item);
    while (at > 0) {
      const parentAt = (at - 1) >> 1;
      const parent = heap[parentAt];
      if (parent === undefined || parent.dueAtMs <= item.dueAtMs) break;
      heap[at] = parent;
      at = parentAt;
    }
    heap[at] = item;
  }

  #pop(): void {
    const heap = this.#heap;
    const item = heap.pop();
    if (item === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let childAt = 2 * at + 1;
      let child = heap[childAt];
      const right = heap[childAt + 1];
      if (child !== undefined && right !== undefined && right.dueAtMs < child.dueAtMs) {
        child = right;
        childAt += 1;
      }
      if (child === undefined || child.dueAtMs >= item.dueAtMs) break;
      heap[at] = child;
      at = childAt;
    }
    heap[at] = item;
  }
}
