import { ApiError } from '../lib/errors.ts';
import type { Worker } from '../lib/worker.ts';

/** How long a request may wait for the gate. A start takes less time if the broker answers. */
const mostWaitMs = 3_000;

/**
 * Holds back all code that stores or changes objects until this process knows that its database has every object that
 * the broker was sent. Otherwise a partner who repeats the request of a lost order would have it sent twice.
 */
export class StartGate {
  #isOpen = false;
  readonly #waiting = new Set<() => void>();
  readonly #held = new Set<string>();

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Kinds with a lost object that could not be restored yet. No new objects of these kinds are stored. */
  get held(): readonly string[] {
    return [...this.#held];
  }

  open(): void {
    this.#isOpen = true;
    for (const go of this.#waiting) go();
    this.#waiting.clear();
  }

  hold(kinds: Iterable<string>): void {
    this.#held.clear();
    for (const kind of kinds) this.#held.add(kind);
  }

  /** Whether new objects of a kind can be stored now. */
  admits(kind: string): boolean {
    return this.#isOpen && !this.#held.has(kind);
  }

  /** Waits for the gate, at most 3 s. Throws `exchange_unavailable`: then nothing is stored or sent. */
  async pass(newOf?: string): Promise<void> {
    if (!this.#isOpen) await this.#opened(mostWaitMs);
    if (!this.#isOpen || (newOf !== undefined && this.#held.has(newOf))) throw new ApiError('exchange_unavailable');
  }

  /** The worker, starting when the gate is open. */
  behind({ name, run }: Worker): Worker {
    return {
      name,
      run: async (signal) => {
        if (!this.#isOpen) await this.#opened(undefined, signal);
        if (!signal.aborted) await run(signal);
      },
    };
  }

  #opened(mostMs: number | undefined, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', go);
        this.#waiting.delete(go);
        resolve();
      };
      const timer = mostMs === undefined ? undefined : setTimeout(go, mostMs);
      signal?.addEventListener('abort', go, { once: true });
      this.#waiting.add(go);
    });
  }
}
