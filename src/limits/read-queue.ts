import type { ReadTime } from '../broker/port.ts';
import { ApiError } from '../lib/errors.ts';
import type { Origin } from '../lib/origin.ts';
import type { Slot, Slots } from './slots.ts';

export interface ReadQueueOptions {
  readonly slots: Slots;
  /** How long a read has from its arrival to its answer. */
  readonly timeoutMs: number;
  readonly mostPerPartner?: number;
  readonly mostInAll?: number;
}

interface Waiting {
  /** Begins the read in places that were taken for it. */
  readonly begin: (places: readonly Slot[]) => void;
}

const usualMostPerPartner = 2;
const usualMostInAll = 4;
/** How many reads may wait here. A partner may have at most as many as there is room left for others. */
const mostWaiting = 2_000;
/** How often places are asked for again while other replicas have them. */
const askAgainMs = 25;

/**
 * Lets reads of the broker have their turn: only so many of a partner at once, and only so many in all, over all
 * replicas. Partners take turns, and a partner's reads come in the order of their arrival. Replicas where reads wait take
 * turns too. A read that has no answer in its time is `exchange_unavailable`.
 */
export class ReadQueue {
  /** The reads that wait, by partner. The partner that was served last comes last. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  #allWaiting = 0;
  readonly #underWay = new Map<string, number>();
  #allUnderWay = 0;
  #isServing = false;
  #askAgain = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: ReadQueueOptions) {}

  /** How many reads wait here for their turn. */
  get waiting(): number {
    return this.#allWaiting;
  }

  /** How many are under way here. */
  get underWay(): number {
    return this.#allUnderWay;
  }

  /** Does a read of a partner's when it is its turn. The read gets the time that is left of its own. */
  read<T>(origin: Origin, work: (time: ReadTime) => Promise<T>): Promise<T> {
    const { partnerId } = origin;
    const deadline = performance.now() + this.options.timeoutMs;
    if (this.#waitingOf(partnerId) >= mostWaiting - this.#allWaiting) {
      return Promise.reject(tooLate('too many reads wait already'));
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        begin: (places) => void this.#run(origin, places, work, deadline).then(resolve, reject).finally(stopWaiting),
      };
      const timer = setTimeout(() => {
        stopWaiting();
        reject(tooLate('the read took too long'));
      }, this.options.timeoutMs);
      const stopWaiting = () => {
        clearTimeout(timer);
        this.#remove(partnerId, waiting);
      };
      this.#add(partnerId, waiting);
      void this.#serve();
    });
  }

  #waitingOf(partnerId: string): number {
    return this.#waiting.get(partnerId)?.size ?? 0;
  }

  #add(partnerId: string, waiting: Waiting): void {
    const own = this.#waiting.get(partnerId) ?? new Set();
    own.add(waiting);
    this.#waiting.set(partnerId, own);
    this.#allWaiting += 1;
  }

  /** False if it does not wait any more. */
  #remove(partnerId: string, waiting: Waiting): boolean {
    const own = this.#waiting.get(partnerId);
    if (own?.delete(waiting) !== true) return false;
    this.#allWaiting -= 1;
    if (own.size === 0) this.#waiting.delete(partnerId);
    return true;
  }

  async #run<T>(
    origin: Origin,
    places: readonly Slot[],
    work: (time: ReadTime) => Promise<T>,
    deadline: number,
  ): Promise<T> {
    const { partnerId } = origin;
    this.#count(partnerId, 1);
    try {
      return await work({ timeoutMs: Math.max(1, deadline - performance.now()), origin });
    } finally {
      // Only now: a read that has no answer is under way until it is given up.
      this.#count(partnerId, -1);
      for (const place of places) place.release();
      void this.#serve();
    }
  }

  #count(partnerId: string, change: 1 | -1): void {
    this.#allUnderWay += change;
    const count = (this.#underWay.get(partnerId) ?? 0) + change;
    if (count === 0) this.#underWay.delete(partnerId);
    else this.#underWay.set(partnerId, count);
  }

  /** Begins what can begin, one after the other. */
  async #serve(): Promise<void> {
    this.#askAgain = true;
    if (this.#isServing) return;
    this.#isServing = true;
    clearTimeout(this.#timer);
    while (this.#askAgain) {
      this.#askAgain = false;
      await this.#serveOnce();
    }
    this.#isServing = false;
    // Another replica gives no notice when it gives a place back.
    if (this.#allWaiting > 0) this.#timer = setTimeout(() => void this.#serve(), askAgainMs).unref();
  }

  /** Begins one read of each partner that has a place. */
  async #serveOnce(): Promise<void> {
    const { mostPerPartner = usualMostPerPartner, mostInAll = usualMostInAll } = this.options;
    for (const partnerId of [...this.#waiting.keys()]) {
      if (this.#allUnderWay >= mostInAll) return;
      if (this.#waitingOf(partnerId) === 0) continue;
      const places = await this.#takePlaces(partnerId, mostPerPartner, mostInAll);
      if (places === 'full') return;
      if (places === 'partner-full') continue;
      // While the places were asked for, reads may have run out of time.
      const own = this.#waiting.get(partnerId);
      const [next] = own ?? [];
      if (own === undefined || next === undefined) {
        for (const place of places) place.release();
        continue;
      }
      this.#remove(partnerId, next);
      this.#moveLast(partnerId);
      next.begin(places);
      // It may have a place for one more, after the others had their turn.
      this.#askAgain = true;
    }
  }

  #moveLast(partnerId: string): void {
    const own = this.#waiting.get(partnerId);
    if (own === undefined) return;
    this.#waiting.delete(partnerId);
    this.#waiting.set(partnerId, own);
  }

  async #takePlaces(partnerId: string, mostPerPartner: number, mostInAll: number) {
    if ((this.#underWay.get(partnerId) ?? 0) >= mostPerPartner) return 'partner-full';
    const { slots } = this.options;
    const ofPartner = await slots.acquire(`reads.${partnerId}`, mostPerPartner, true);
    if (ofPartner === undefined) return 'partner-full';
    const ofAll = await slots.acquire('reads', mostInAll, true);
    if (ofAll !== undefined) return [ofPartner, ofAll];
    ofPartner.release();
    return 'full';
  }
}

function tooLate(reason: string): ApiError {
  return new ApiError('exchange_unavailable', { cause: new Error(reason), limit: 'broker_reads' });
}
