import { Refusal, UnavailableError } from '../../kit/refusal.ts';
import { isUndoneByServer } from './errors.ts';
import type { Fact } from './facts.ts';
import type { PartnerTransaction } from './partner-transaction.ts';
import { type Decision, guard, joinLists, type Statement } from './statement.ts';

/** One piece of work on a partner's objects: its facts, and its decision. */
export interface PartnerWork<Value, T> {
  /**
   * Names that only one piece of work in a transaction may touch: an object's id, an Idempotency-Key. Work that touches the
   * same name waits for the next transaction, so that its reads see the earlier writes.
   */
  readonly touches: readonly string[];
  readonly fact: Fact<Value>;
  /**
   * Decides, under the lock or on expected values. Throws to refuse: then this work writes nothing. It may be called twice,
   * because a decision on expected values is made again under the lock if they are wrong or if it refuses.
   */
  decide(value: Value, partner: PartnerTransaction): Decision<T>;
}

// biome-ignore lint/suspicious/noExplicitAny: work on many kinds of values waits in one queue.
export type AnyWork = PartnerWork<any, unknown>;

/** Work waiting for its transaction. */
export interface WaitingWork {
  readonly work: AnyWork;
  /** Since when, on a clock that never goes back. */
  readonly since: number;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** How many pieces of work may wait for one partner, and how many share a transaction. */
const longestQueue = 500;
const maxInTransaction = 16;
/** How long work may wait for its transaction to begin: while one waits for a lock, more would come than can go. */
const longestTurnMs = 8_000;

/**
 * Lets a partner's work run in one transaction at a time, in the order of arrival, and all that waits meanwhile together
 * in the next: many waiters then cost one lock, two round trips and one flush to disk. Waiters wait here rather than in
 * the database, where each would hold a connection.
 */
export class PartnerQueue {
  readonly #waiting = new Map<string, WaitingWork[]>();

  /** `runTogether` runs some work in one transaction and settles each piece of it. It never rejects. */
  constructor(private readonly runTogether: (partnerId: string, group: readonly WaitingWork[]) => Promise<void>) {}

  /** How many pieces of work wait for their turn. */
  get waiting(): number {
    let waiting = 0;
    for (const entries of this.#waiting.values()) waiting += entries.length;
    return waiting;
  }

  run<Value, T>(partnerId: string, work: PartnerWork<Value, T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiting = this.#waiting.get(partnerId);
      if (waiting !== undefined && waiting.length >= longestQueue) throw new UnavailableError();
      const entry = { work, since: performance.now(), resolve: resolve as (result: unknown) => void, reject };
      if (waiting !== undefined) {
        waiting.push(entry);
        return;
      }
      this.#waiting.set(partnerId, [entry]);
      void this.#drain(partnerId);
    });
  }

  async #drain(partnerId: string): Promise<void> {
    for (;;) {
      const waiting = refuseLate(this.#waiting.get(partnerId) ?? []);
      const { group, rest } = takeGroup(waiting);
      if (group.length === 0) {
        this.#waiting.delete(partnerId);
        return;
      }
      this.#waiting.set(partnerId, rest);
      await this.runTogether(partnerId, group);
    }
  }
}

/** Refuses the work that waited too long, and returns the rest. */
function refuseLate(waiting: readonly WaitingWork[]): readonly WaitingWork[] {
  const oldest = performance.now() - longestTurnMs;
  if (waiting[0] === undefined || waiting[0].since >= oldest) return waiting;
  for (const { since, reject } of waiting) if (since < oldest) reject(new UnavailableError());
  return waiting.filter(({ since }) => since >= oldest);
}

/** The work that can share a transaction: the first that waits, and those after it that touch no name of an earlier one. */
function takeGroup(waiting: readonly WaitingWork[]): { group: WaitingWork[]; rest: WaitingWork[] } {
  const group: WaitingWork[] = [];
  const rest: WaitingWork[] = [];
  const touched = new Set<string>();
  for (const entry of waiting) {
    const fits = group.length < maxInTransaction && entry.work.touches.every((thing) => !touched.has(thing));
    (fits ? group : rest).push(entry);
    for (const thing of entry.work.touches) touched.add(thing);
  }
  return { group, rest };
}

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
const maxAtOnce = 2;
/** How many transactions share one: a bound for its time and for what a lost connection leaves open. */
const maxTogether = 16;
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
    if (this.#isScheduled || this.#underWay >= maxAtOnce) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      while (this.#underWay < maxAtOnce && this.#waiting.length > 0) {
        void this.#runGroup(this.#waiting.splice(0, maxTogether));
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
  return !(error instanceof Refusal) || isUndoneByServer(error.cause ?? error);
}

function statementsOf(group: readonly Pick<Waiting, 'transaction'>[]): Statement[] {
  const transactions = group.map(({ transaction }) => transaction);
  return joinLists([
    ...transactions.flatMap(({ locks }) => locks),
    guard(transactions.flatMap(({ guards }) => guards)),
    ...transactions.flatMap(({ writes }) => writes),
  ]);
}
