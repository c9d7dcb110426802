import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { pause, type Worker } from '../lib/worker.ts';
import { type KeyUse, saveKeyUses } from './store.ts';

/** How often uses are written down: by so much what other replicas show is behind. */
const everyMs = 5_000;
const mostTogether = 500;
/** Keys whose use waits to be written at most. What more are used meanwhile is written when they are used again. */
const mostWaiting = 10_000;

/** Remembers when keys are used, and writes it down now and then, so that no request pays for it. */
export class KeyUses {
  readonly #waiting = new Map<string, KeyUse>();
  readonly worker: Worker = { name: 'key uses', run: (signal) => this.#run(signal) };

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Notes that a key is used now. */
  note(partnerId: string, keyId: string): void {
    if (this.#waiting.size >= mostWaiting && !this.#waiting.has(keyId)) return;
    this.#waiting.set(keyId, { partnerId, keyId, usedAt: this.clock.now() });
  }

  /** When a key was used here, if that is not written down yet. */
  notedAt(keyId: string): number | undefined {
    return this.#waiting.get(keyId)?.usedAt;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(everyMs, signal);
      // Also at the end, for what was used since.
      await this.#save();
    }
  }

  async #save(): Promise<void> {
    // Those used while others are written wait for the next time.
    const uses = [...this.#waiting.values()];
    for (let first = 0; first < uses.length; first += mostTogether) {
      const some = uses.slice(first, first + mostTogether);
      await this.database.write(saveKeyUses(some));
      for (const use of some) if (this.#waiting.get(use.keyId) === use) this.#waiting.delete(use.keyId);
    }
  }
}
