import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import { atMost } from '../lib/at-most.ts';
import type { Clock } from '../lib/clock.ts';

/** How long the database may take to answer. */
const answerWithinMs = 2_000;

/** Asks the database again and again whether it answers, and what time it is, for those who cannot wait for an answer. */
export class DatabaseProbe {
  #isReachable = true;
  #clockAheadMs: number | undefined;
  #asking: Promise<void> | undefined;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Whether the database answered when it was asked last. */
  get isReachable(): boolean {
    return this.#isReachable;
  }

  /** How far the database's clock is ahead of ours, to within two seconds. Undefined: it did not answer. */
  get clockAheadMs(): number | undefined {
    return this.#clockAheadMs;
  }

  /** Asks it now, together with all who ask meanwhile. Never throws, and ends within seconds. */
  ask(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    let databaseNow: number | undefined;
    const answer = this.database.read(statement('SELECT NOW(3) AS now')).then(
      ([row]) => {
        databaseNow = row === undefined ? undefined : (row.now as Date).getTime();
      },
      () => undefined,
    );
    await atMost(answerWithinMs, answer);
    this.#isReachable = databaseNow !== undefined;
    this.#clockAheadMs = databaseNow === undefined ? undefined : databaseNow - this.clock.realNow();
  }
}
