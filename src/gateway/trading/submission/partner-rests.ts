import { Rests } from '../../../kit/rests.ts';

/** How long a partner is left alone after a failure. */
const restMs = 5_000;
/** How many partners that failed are tried at once. */
const maxTried = 4;

/**
 * Partners whose last change failed: most likely their row is locked. A change waits for the lock until its deadline, so such a
 * partner rests in between and is tried with one object at a time, and all of them together leave room for others.
 */
export class PartnerRests {
  readonly #rests: Rests;
  readonly #tried = new Set<string>();

  constructor(now?: () => number) {
    this.#rests = new Rests(restMs, now);
  }

  /** Those that cannot be tried now. */
  get all(): readonly string[] {
    return this.#rests.failed.filter((id) => !this.mayTry(id));
  }

  mayTry(partnerId: string): boolean {
    if (!this.#rests.hasFailed(partnerId)) return true;
    return !this.#rests.isResting(partnerId) && !this.#tried.has(partnerId) && this.#tried.size < maxTried;
  }

  /** Begins to change an object of a partner that may be tried. The answer is told whether the change failed. */
  begin(partnerId: string): (hasFailed: boolean) => void {
    const isTrial = this.#rests.hasFailed(partnerId);
    if (isTrial) this.#tried.add(partnerId);
    return (hasFailed) => {
      if (isTrial) this.#tried.delete(partnerId);
      if (hasFailed) this.#rests.rest(partnerId);
      else this.#rests.end(partnerId);
    };
  }
}
