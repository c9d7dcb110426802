import { ApiError } from '../lib/errors.ts';
import type { Worker } from '../lib/worker.ts';

/** How long a request may wait for the gate: a start takes less when the broker is there. */
const mostWaitMs = 3_000;

/**
 * Stands before everything that stores or changes an object until this process knows that its database lacks nothing of
 * what the broker was given: a partner who repeats a request whose order was lost would have it sent again.
 */
export class StartGate {
  #isOpen = false;
  readonly #waiting = new Set<() => void>();
  readonly #held = new Set<string>();

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Kinds of which something that was lost could not be stored anew; nothing is added to them until it could. */
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

  /** Whether something new of a kind can be stored now. */
  admits(kind: string): boolean {
    return this.#isOpen && !this.#held.has(kind);
  }

  /** Waits a moment for the gate. Throws `exchange_unavailable`: nothing was stored, nothing was sent. */
  async pass(newOf?: string): Promise<void> {
    if (!this.#isOpen) await this.#opened(mostWaitMs);
    if (!this.#isOpen || (newOf !== undefined && this.#held.has(newOf))) throw new ApiError('exchange_unavailable');
  }

  /** A worker that begins when the gate is open. */
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
