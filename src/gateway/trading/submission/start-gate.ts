import { Waiters, type Worker } from '../../../kit/worker.ts';
import { ApiError } from '../../edge/errors.ts';

/** Lost objects of a kind that could not be restored yet: those of one partner, or of an unknown one. */
export interface HeldObjects {
  readonly kind: string;
  readonly partnerId?: string;
}

/** How long a request may wait for the gate. A start takes less time if the broker answers. */
const maxWaitMs = 3_000;

/**
 * Holds back all code that stores or changes objects until this process knows that its database has every object that
 * the broker was sent. Otherwise a partner who repeats the request of a lost order would have it sent twice.
 */
export class StartGate {
  #isOpen = false;
  readonly #waiters = new Waiters();
  #held: readonly HeldObjects[] = [];

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** What could not be restored yet. No new objects of the same kind and partner are stored, or of all partners. */
  get held(): readonly HeldObjects[] {
    return this.#held;
  }

  open(): void {
    this.#isOpen = true;
    this.#waiters.wakeAll();
  }

  hold(held: readonly HeldObjects[]): void {
    this.#held = held;
  }

  /** Whether new objects of a kind can be stored for a partner now. */
  admits(kind: string, partnerId: string): boolean {
    return this.#isOpen && !this.#holds(kind, partnerId);
  }

  /** Waits for the gate, at most 3 s. Throws `exchange_unavailable`: then nothing is stored or sent. */
  async pass(newOf?: { readonly kind: string; readonly partnerId: string }): Promise<void> {
    if (!this.#isOpen) await this.#waiters.wait(maxWaitMs);
    const isHeld = newOf !== undefined && this.#holds(newOf.kind, newOf.partnerId);
    if (!this.#isOpen || isHeld) throw new ApiError('exchange_unavailable');
  }

  /** The worker, starting when the gate is open. */
  behind({ name, run }: Worker): Worker {
    return {
      name,
      run: async (signal) => {
        while (!this.#isOpen && !signal.aborted) await this.#waiters.wait(maxWaitMs, signal);
        if (!signal.aborted) await run(signal);
      },
    };
  }

  #holds(kind: string, partnerId: string): boolean {
    return this.#held.some((held) => held.kind === kind && (held.partnerId ?? partnerId) === partnerId);
  }
}
