import { ApiError } from '../lib/errors.ts';
import { isRetryable } from './errors.ts';
import { guard, joinLists, type Statement } from './statement.ts';

/** A transaction that needs no reads: it goes to the server in one round trip, and waits for nobody's lock. */
export interface ProvenWrites {
  /** Each fails at once if another transaction has the row. */
  readonly locks: readonly Statement[];
  /** Conditions that must be true under the locks. */
  readonly guards: readonly Statement[];
  readonly writes: readonly Statement[];
}

interface Waiting {
  readonly transaction: ProvenWrites;
  resolve(): void;
  reject(error: unknown): void;
}

/** How many round trips there are at once. While they are under way, the next transactions gather. */
const mostAtOnce = 2;
/** How many transactions share one: a bound for its time and for what a lost connection leaves open. */
const mostTogether = 16;

/**
 * Commits transactions of several partners as one: one round trip and one flush to disk. If it fails and nothing was
 * committed, each is tried alone, so that none fails another. If its outcome is unknown, that of each is.
 */
export class GroupCommit {
  readonly #waiting: Waiting[] = [];
  #underWay = 0;
  #isScheduled = false;

  /** `run` runs a whole transaction in one round trip. */
  constructor(private readonly run: (statements: readonly Statement[]) => Promise<void>) {}

  commit(transaction: ProvenWrites): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ transaction, resolve, reject });
      this.#schedule();
    });
  }

  /** Begins after the events of this turn of the loop, because what came in with them can go together. */
  #schedule(): void {
    if (this.#isScheduled || this.#underWay >= mostAtOnce) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      while (this.#underWay < mostAtOnce && this.#waiting.length > 0) {
        void this.#runTogether(this.#waiting.splice(0, mostTogether));
      }
    });
  }

  async #runTogether(group: readonly Waiting[]): Promise<void> {
    this.#underWay += 1;
    try {
      await this.run(statementsOf(group));
      for (const { resolve } of group) resolve();
    } catch (error) {
      for (const { transaction, resolve, reject } of group) {
        if (group.length === 1 || !isUndone(error)) reject(error);
        else this.run(statementsOf([{ transaction }])).then(resolve, reject);
      }
    } finally {
      this.#underWay -= 1;
      this.#schedule();
    }
  }
}

/** Whether an error proves that nothing was committed, and the database can be asked again. */
function isUndone(error: unknown): boolean {
  return !(error instanceof ApiError) || isRetryable(error.cause ?? error);
}

function statementsOf(group: readonly Pick<Waiting, 'transaction'>[]): Statement[] {
  const transactions = group.map(({ transaction }) => transaction);
  return joinLists([
    ...transactions.flatMap(({ locks }) => locks),
    guard(transactions.flatMap(({ guards }) => guards)),
    ...transactions.flatMap(({ writes }) => writes),
  ]);
}
