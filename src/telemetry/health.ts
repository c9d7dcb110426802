import { atMost } from '../lib/at-most.ts';
import { periodic, type Worker } from '../lib/worker.ts';

/** A part that does not work as it should. */
export interface Finding {
  /** Which part, in a word or two; the same for as long as it lasts. */
  readonly part: string;
  /** What is wrong with it, for people. */
  readonly reason: string;
  /** Whether this process should get no requests because of it. */
  readonly stops: boolean;
}

/** A finding, and since when. */
export interface Trouble extends Finding {
  /** Real time in milliseconds. */
  readonly sinceMs: number;
}

/** How often parts are checked when nobody asks, so that it is known since when something is wrong. */
const checkEveryMs = 1_000;
/** How long a caller waits for the database's answer. If it comes later, the caller gets what was known before. */
const answerWithinMs = 500;

/** Knows which parts are in trouble, and since when. */
export class Health {
  readonly worker: Worker;
  #troubles: readonly Trouble[] = [];

  constructor(
    /** What is known of all parts. Never throws. */
    private readonly look: () => readonly Finding[],
    /** Asks the database, of which nothing is known otherwise. Never throws, and ends within seconds. */
    private readonly askDatabase: () => Promise<void>,
    private readonly realNow: () => number,
  ) {
    this.worker = periodic('health', checkEveryMs, async () => {
      await this.askDatabase();
      this.known();
    });
  }

  /** What is wrong now, answered within a second. */
  async troubles(): Promise<readonly Trouble[]> {
    await atMost(answerWithinMs, this.askDatabase());
    return this.known();
  }

  /** What is wrong as far as is known, answered at once. */
  known(): readonly Trouble[] {
    const findings = this.look();
    const now = this.realNow();
    const since = new Map(this.#troubles.map(({ part, sinceMs }) => [part, sinceMs]));
    this.#troubles = findings.map((finding) => ({ ...finding, sinceMs: since.get(finding.part) ?? now }));
    return this.#troubles;
  }
}
