import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
import { atMost } from '../lib/at-most.ts';

/** How long the database may take to answer. */
const answerWithinMs = 2_000;

/** Asks the database again and again whether it answers, and keeps the last answer, for those who cannot wait. */
export class DatabaseProbe {
  #isReachable = true;
  #asking: Promise<void> | undefined;

  constructor(private readonly database: Database) {}

  /** Whether the database answered when it was asked last. */
  get isReachable(): boolean {
    return this.#isReachable;
  }

  /** Asks it now, together with all who ask meanwhile. Never throws, and ends within seconds. */
  ask(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    let hasAnswered = false;
    const answer = this.database.read(statement('SELECT 1')).then(
      () => {
        hasAnswered = true;
      },
      () => undefined,
    );
    await atMost(answerWithinMs, answer);
    this.#isReachable = hasAnswered;
  }
}
