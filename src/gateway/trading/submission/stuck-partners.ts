import type { Logger } from '../../../kit/log.ts';
import { Refusal } from '../../../kit/refusal.ts';

/** A partner counts as stuck for so long after the last failure: longer than an object waits to be tried again. */
const stuckMs = 45_000;

/**
 * Partners whose objects cannot be changed, because their rows are damaged: a statement fails for them that works for others.
 * Background work leaves them aside, so that they hold up nobody else.
 */
export class StuckPartners {
  readonly #until = new Map<string, number>();

  constructor(private readonly log: Logger) {}

  /** Those that failed lately. */
  get all(): readonly string[] {
    const now = performance.now();
    for (const [id, until] of this.#until) if (until <= now) this.#until.delete(id);
    return [...this.#until.keys()];
  }

  /** Notes a failure of one partner, and logs the first. Throws an error that is not of that partner alone. */
  note(partnerId: string, objectIds: readonly string[], error: unknown): void {
    // The database is away, or the process stops.
    if (error instanceof Refusal) throw error;
    if (!this.all.includes(partnerId)) {
      this.log.error(
        { err: error, partnerId, objectIds: objectIds.slice(0, 10) },
        "a partner's objects cannot be changed",
      );
    }
    this.#until.set(partnerId, performance.now() + stuckMs);
  }
}
