import { pause } from '../lib/worker.ts';
import type { Unapplied } from './report-applier.ts';

/** How many reports of one partner are applied in one transaction. */
const maxTogether = 1_000;
/** How many partners are worked on at once. */
const maxAtOnce = 4;
/**
 * A partner that takes longer no longer counts as one of them, because it most likely waits for a lock. Applying reports
 * takes a tenth of this.
 */
const slowAfterMs = 250;
/** How many partners are worked on at once with those that wait. Each has a database connection, and requests need some too. */
const maxWithSlow = 10;
/** How many reports may wait for their partners. Then the stream is not read: reports of other partners wait too. */
export const maxWaiting = 20_000;
const firstRetryMs = 250;
const longestRetryMs = 5_000;
/** After so many failures in a row a person should look. */
const failingAfter = 3;

export interface ReportLanesOptions<Report> {
  /**
   * Applies reports of a partner in order, and returns those that it could not apply. If it throws, it applied none for
   * certain. What is not applied is tried again later, with the reports that came since.
   */
  readonly apply: (partnerId: string, reports: readonly Report[]) => Promise<Unapplied<Report> | undefined>;
  /** Called when fewer reports wait. */
  readonly applied: () => void;
  /** Called when reports could not be applied. `failures` counts those in a row. */
  readonly failed: (partnerId: string, error: unknown, failures: number) => void;
  /** Called when reports are applied that could not be before. */
  readonly recovered: (partnerId: string, failures: number) => void;
  /** Ends all: what is under way ends by itself, and nothing further begins. */
  readonly signal: AbortSignal;
}

interface Lane<Report> {
  readonly partnerId: string;
  /** Not applied yet, in the order of their numbers. The first `taken` of them are under way. */
  waiting: Report[];
  taken: number;
  failures: number;
}

/**
 * Applies each partner's reports one after another, and those of different partners independently: a partner whose row is
 * locked holds up no other one.
 */
export class ReportLanes<Report extends { readonly number: bigint }> {
  readonly #lanes = new Map<string, Lane<Report>>();
  /** Lanes that can go on as soon as there is room for them. */
  readonly #ready: Lane<Report>[] = [];
  readonly #running = new Set<Promise<void>>();
  #counted = 0;
  #waiting = 0;
  #makeRoom: (() => void) | undefined;

  constructor(private readonly options: ReportLanesOptions<Report>) {
    options.signal.addEventListener('abort', () => this.#makeRoom?.(), { once: true });
  }

  /** The smallest number of a report that is not applied; undefined: all are. */
  get firstWaiting(): bigint | undefined {
    let first: bigint | undefined;
    for (const { waiting } of this.#lanes.values()) {
      const number = waiting[0]?.number;
      if (number !== undefined && (first === undefined || number < first)) first = number;
    }
    return first;
  }

  /** Whether reports of a partner fail again and again. */
  get isFailing(): boolean {
    return [...this.#lanes.values()].some(({ failures }) => failures >= failingAfter);
  }

  /** Adds reports of a partner, which follow those added before. */
  add(partnerId: string, reports: readonly Report[]): void {
    if (reports.length === 0) return;
    this.#waiting += reports.length;
    const lane = this.#lanes.get(partnerId);
    if (lane !== undefined) {
      lane.waiting.push(...reports);
      return;
    }
    const added = { partnerId, waiting: [...reports], taken: 0, failures: 0 };
    this.#lanes.set(partnerId, added);
    this.#ready.push(added);
    this.#begin();
  }

  /** Waits until further reports may be added. Returns at once when all is ended. */
  async room(): Promise<void> {
    while (this.#waiting >= maxWaiting && !this.options.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#makeRoom = resolve;
      });
    }
  }

  /** Waits until nothing is under way. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #begin(): void {
    while (this.#counted < maxAtOnce && this.#running.size < maxWithSlow && !this.options.signal.aborted) {
      const lane = this.#ready.shift();
      if (lane === undefined) return;
      const running = this.#run(lane).then(() => {
        this.#running.delete(running);
        this.#begin();
      });
      this.#running.add(running);
    }
  }

  /** Applies what waits for one partner now. Never rejects. */
  async #run(lane: Lane<Report>): Promise<void> {
    const { partnerId } = lane;
    let isCounted = true;
    this.#counted += 1;
    const release = () => {
      if (isCounted) this.#counted -= 1;
      isCounted = false;
    };
    const slow = setTimeout(() => {
      release();
      this.#begin();
    }, slowAfterMs);
    try {
      lane.taken = Math.min(lane.waiting.length, maxTogether);
      const unapplied = await this.options.apply(partnerId, lane.waiting.slice(0, lane.taken));
      this.#keep(lane, unapplied?.reports ?? []);
      this.options.applied();
      if (unapplied === undefined) this.#goOn(lane);
      else this.#fail(lane, unapplied.error);
    } catch (error) {
      this.#fail(lane, error);
    } finally {
      clearTimeout(slow);
      release();
    }
  }

  /** Keeps those of the reports under way that were not applied. */
  #keep(lane: Lane<Report>, unapplied: readonly Report[]): void {
    this.#waiting -= lane.taken - unapplied.length;
    lane.waiting = [...unapplied, ...lane.waiting.slice(lane.taken)];
    lane.taken = 0;
    this.#makeRoom?.();
  }

  #goOn(lane: Lane<Report>): void {
    if (lane.failures > 0) this.options.recovered(lane.partnerId, lane.failures);
    lane.failures = 0;
    if (lane.waiting.length === 0) this.#lanes.delete(lane.partnerId);
    else this.#ready.push(lane);
  }

  #fail(lane: Lane<Report>, error: unknown): void {
    lane.failures += 1;
    this.options.failed(lane.partnerId, error, lane.failures);
    void this.#retry(lane);
  }

  async #retry(lane: Lane<Report>): Promise<void> {
    const { signal } = this.options;
    await pause(Math.min(firstRetryMs * 2 ** (lane.failures - 1), longestRetryMs), signal);
    if (signal.aborted) return;
    this.#ready.push(lane);
    this.#begin();
  }
}
