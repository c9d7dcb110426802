import { pause, Wakeup } from '../../../kit/worker.ts';
import type { LaneSlots } from './lane-slots.ts';
import type { Unapplied } from './report-applier.ts';

/** How many reports of one partner are applied in one transaction. */
const maxTogether = 1_000;
/**
 * A partner that takes longer no longer counts as one of them, because it most likely waits for a lock. Applying reports
 * takes a tenth of this.
 */
const slowAfterMs = 250;
/**
 * How many reports may wait for their partners. With more, those of a stuck partner are left out, to be read again later. If
 * there are none, the stream is not read.
 */
export const maxWaiting = 20_000;
/** A partner counts as stuck when its reports failed, or are not applied after this long. Others do not wait for it. */
const stuckAfterMs = 1_000;
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
  /** Whether reports of a partner may be left out when too many wait. */
  readonly canLeaveOut: (partnerId: string) => boolean;
  /** Called when a partner's reports that were left out can be read again: all before them are applied. */
  readonly readAgain: (from: bigint) => void;
  /** The work under way, which that of earlier streams counts in. */
  readonly slots: LaneSlots;
  /** Ends all: what is under way ends by itself, and nothing further begins. */
  readonly signal: AbortSignal;
}

interface Lane<Report> {
  readonly partnerId: string;
  /** Not applied yet, in the order of their numbers. The first `taken` of them are under way. */
  waiting: Report[];
  taken: number;
  failures: number;
  /** Why they were not applied the last time. */
  error: unknown;
  /** When the work on it that is under way began, in real time; undefined: none is. */
  runningSince: number | undefined;
  /** The number of the first report that was left out. All later ones are, too. */
  leftFrom: bigint | undefined;
}

/**
 * Applies each partner's reports one after another, and those of different partners independently: a partner whose row is
 * locked holds up no other one.
 */
export class ReportLanes<Report extends { readonly number: bigint }> {
  readonly #lanes = new Map<string, Lane<Report>>();
  /** Lanes that can go on as soon as there is a slot for them. */
  readonly #ready: Lane<Report>[] = [];
  /** The same, of which the last try failed. */
  readonly #readyAgain: Lane<Report>[] = [];
  readonly #running = new Set<Promise<void>>();
  #waiting = 0;
  readonly #room = new Wakeup();

  constructor(private readonly options: ReportLanesOptions<Report>) {
    options.slots.onFree(() => this.#begin(), options.signal);
  }

  /** The smallest number of a report that is not applied; undefined: all are. */
  get firstWaiting(): bigint | undefined {
    let first: bigint | undefined;
    for (const { waiting, taken, leftFrom } of this.#lanes.values()) {
      for (const number of [waiting[0]?.number, waiting[taken]?.number, leftFrom]) {
        if (number !== undefined && (first === undefined || number < first)) first = number;
      }
    }
    return first;
  }

  /** How many partners are worked on now. */
  get underWay(): number {
    return this.#running.size;
  }

  /** The partners of which reports fail again and again, and why they failed the last time. */
  get failing(): readonly Pick<Lane<Report>, 'partnerId' | 'error'>[] {
    return [...this.#lanes.values()].filter(({ failures }) => failures >= failingAfter);
  }

  /**
   * Adds reports of a partner, in the order of their numbers. Reports about one object follow those added before; those
   * about others can be from before.
   */
  add(partnerId: string, reports: readonly Report[]): void {
    if (reports.length === 0) return;
    const lane = this.#lanes.get(partnerId);
    if (lane !== undefined) {
      this.#append(lane, reports);
      return;
    }
    this.#waiting += reports.length;
    const waiting = [...reports];
    const own = { taken: 0, failures: 0, error: undefined, runningSince: undefined, leftFrom: undefined };
    const added = { partnerId, waiting, ...own };
    this.#lanes.set(partnerId, added);
    this.#ready.push(added);
    this.#begin();
  }

  #append(lane: Lane<Report>, reports: readonly Report[]): void {
    const { leftFrom } = lane;
    const kept = leftFrom === undefined ? reports : reports.filter(({ number }) => number < leftFrom);
    if (kept.length === 0) return;
    const [isIdle, last] = [lane.waiting.length === 0, lane.waiting.at(-1)?.number ?? 0n];
    this.#waiting += kept.length;
    if ((kept[0]?.number ?? 0n) > last) lane.waiting.push(...kept);
    else lane.waiting.push(...inOrder([...lane.waiting.splice(lane.taken), ...kept]));
    if (!isIdle) return;
    this.#ready.push(lane); // It waited for the reports that were left out.
    this.#begin();
  }

  /** Waits until further reports may be added. Returns at once when all is ended. */
  async room(): Promise<void> {
    const { signal } = this.options;
    while (this.#waiting >= maxWaiting && !signal.aborted) {
      if (!this.#leaveOut()) await this.#room.wait(stuckAfterMs, signal);
    }
  }

  /**
   * Leaves out the second half of what waits for the stuck partner with the most reports, and all its later ones. Returns
   * whether there was one.
   */
  #leaveOut(): boolean {
    const now = performance.now();
    const isStuck = ({ failures, runningSince }: Lane<Report>) =>
      failures > 0 || (runningSince !== undefined && now - runningSince >= stuckAfterMs);
    const count = ({ waiting, taken }: Lane<Report>) => Math.floor((waiting.length - Math.max(taken, 1)) / 2);
    const [lane] = [...this.#lanes.values()]
      .filter((one) => this.options.canLeaveOut(one.partnerId) && isStuck(one) && count(one) > 0)
      .sort((one, other) => count(other) - count(one));
    if (lane === undefined) return false;
    const left = lane.waiting.splice(-count(lane));
    this.#waiting -= left.length;
    lane.leftFrom = left[0]?.number;
    return true;
  }

  /** Waits until nothing is under way. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  #begin(): void {
    const { slots, signal } = this.options;
    while (!signal.aborted) {
      const lane = this.#next();
      if (lane === undefined) return;
      const hasFailed = lane.failures > 0;
      const running = slots
        .run(() => this.#run(lane), hasFailed, slowAfterMs)
        .then(() => void this.#running.delete(running));
      this.#running.add(running);
    }
  }

  /** The lane that takes the next slot. One that failed comes first: it has waited, and few of them are tried at once. */
  #next(): Lane<Report> | undefined {
    const { slots } = this.options;
    if (this.#readyAgain.length > 0 && slots.isFree(true)) return this.#readyAgain.shift();
    return slots.isFree(false) ? this.#ready.shift() : undefined;
  }

  /** Applies what waits for one partner now. Never rejects. */
  async #run(lane: Lane<Report>): Promise<void> {
    const { partnerId } = lane;
    lane.runningSince = performance.now();
    lane.taken = Math.min(lane.waiting.length, maxTogether);
    const reports = lane.waiting.slice(0, lane.taken);
    try {
      const unapplied = await this.options.apply(partnerId, reports);
      this.#keep(lane, unapplied?.reports ?? []);
      this.options.applied();
      if (unapplied === undefined) this.#goOn(lane);
      else this.#fail(lane, unapplied.error);
    } catch (error) {
      this.#keep(lane, reports);
      this.#fail(lane, error);
    }
  }

  /** Keeps those of the reports under way that were not applied. */
  #keep(lane: Lane<Report>, unapplied: readonly Report[]): void {
    this.#waiting -= lane.taken - unapplied.length;
    lane.waiting = inOrder([...unapplied, ...lane.waiting.slice(lane.taken)]);
    lane.taken = 0;
    lane.runningSince = undefined;
    this.#room.wake();
  }

  #goOn(lane: Lane<Report>): void {
    if (lane.failures > 0) this.options.recovered(lane.partnerId, lane.failures);
    lane.failures = 0;
    lane.error = undefined;
    if (lane.waiting.length > 0) this.#ready.push(lane);
    else if (lane.leftFrom === undefined) this.#lanes.delete(lane.partnerId);
    else this.options.readAgain(lane.leftFrom);
  }

  #fail(lane: Lane<Report>, error: unknown): void {
    lane.failures += 1;
    lane.error = error;
    this.options.failed(lane.partnerId, error, lane.failures);
    void this.#retry(lane);
  }

  async #retry(lane: Lane<Report>): Promise<void> {
    const { signal } = this.options;
    await pause(Math.min(firstRetryMs * 2 ** (lane.failures - 1), longestRetryMs), signal);
    if (signal.aborted) return;
    this.#readyAgain.push(lane);
    this.#begin();
  }
}

function inOrder<Report extends { readonly number: bigint }>(reports: Report[]): Report[] {
  return reports.sort((one, other) => (one.number < other.number ? -1 : Number(one.number > other.number)));
}
