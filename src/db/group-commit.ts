import { ApiError } from '../lib/errors.ts';
import { isUndoneByServer } from './errors.ts';
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
  /** On a clock that never goes back. */
  readonly since: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** Runs a whole transaction in one round trip. */
type Run = (statements: readonly Statement[]) => Promise<void>;

/** How many round trips there are at once. While they are under way, the next transactions gather. */
const mostAtOnce = 2;
/** How many transactions share one: a bound for its time and for what a lost connection leaves open. */
const mostTogether = 16;
/** How long a transaction waits for others. Then it goes alone: those before it may wait for a lock. */
const longestWaitMs = 500;

/**
 * Commits transactions of several partners as one: one round trip and one flush to disk. If it fails and nothing was
 * committed, each is tried alone, so that none fails another. If its outcome is unknown, that of each is.
 */
export class GroupCommit {
  readonly #waiting: Waiting[] = [];
  #underWay = 0;
  #isScheduled = false;
  #expiry: NodeJS.Timeout | undefined;

  /** `runTogether` runs a transaction that several share: it gives up soon, because each can be tried alone. */
  constructor(
    private readonly run: Run,
    private readonly runTogether: Run,
  ) {}

  /** How many wait for their round trip. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Commits with others, if it is not likely to fail them. */
  commit(transaction: ProvenWrites, isLikely: boolean): Promise<void> {
    if (!isLikely) return this.run(statementsOf([{ transaction }]));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ transaction, since: performance.now(), resolve, reject });
      this.#schedule();
      this.#expiry ??= setTimeout(() => this.#runLate(), longestWaitMs).unref();
    });
  }

  #runLate(): void {
    const oldest = performance.now() - longestWaitMs;
    const first = this.#waiting.findIndex(({ since }) => since > oldest);
    for (const entry of this.#waiting.splice(0, first < 0 ? this.#waiting.length : first)) void this.#runAlone(entry);
    const [next] = this.#waiting;
    this.#expiry = next && setTimeout(() => this.#runLate(), next.since - oldest).unref();
  }

  /** Begins after the events of this turn of the loop, because what came in with them can go together. */
  #schedule(): void {
    if (this.#isScheduled || this.#underWay >= mostAtOnce) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      while (this.#underWay < mostAtOnce && this.#waiting.length > 0) {
        void this.#runGroup(this.#waiting.splice(0, mostTogether));
      }
    });
  }

  async #runGroup(group: readonly Waiting[]): Promise<void> {
    this.#underWay += 1;
    const [first] = group;
    if (group.length === 1 && first !== undefined) await this.#runAlone(first);
    else {
      try {
        await this.runTogether(statementsOf(group));
        for (const { resolve } of group) resolve();
      } catch (error) {
        if (isUndone(error)) await Promise.all(group.map((entry) => this.#runAlone(entry)));
        else for (const { reject } of group) reject(error);
      }
    }
    this.#underWay -= 1;
    this.#schedule();
  }

  /** Never rejects. */
  #runAlone({ transaction, resolve, reject }: Waiting): Promise<void> {
    return this.run(statementsOf([{ transaction }])).then(resolve, reject);
  }
}

/** Whether an error proves that nothing was committed, and the database can be asked again. */
function isUndone(error: unknown): boolean {
  return !(error instanceof ApiError) || isUndoneByServer(error.cause ?? error);
}

function statementsOf(group: readonly Pick<Waiting, 'transaction'>[]): Statement[] {
  const transactions = group.map(({ transaction }) => transaction);
  return joinLists([
    ...transactions.flatMap(({ locks }) => locks),
    guard(transactions.flatMap(({ guards }) => guards)),
    ...transactions.flatMap(({ writes }) => writes),
  ]);
}
