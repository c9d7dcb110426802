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
  readonly partnerId: string;
  /** Begins the read in places that were taken for it. */
  readonly begin: (places: readonly Slot[]) => void;
}

const usualMostPerPartner = 2;
const usualMostInAll = 4;
/** How many reads wait here: what is beyond them would hardly have its turn in time. */
const mostWaitingOfPartner = 32;
const mostWaiting = 256;
/** How often places are asked for again while other replicas have them. */
const askAgainMs = 25;

/**
 * Lets reads of the broker have their turn: only so many of a partner at once, and only so many in all, over all
 * replicas. Who waits is served in the order of arrival, past those whose partner has no place left; replicas where reads
 * wait take turns. A read that has no
 * answer in its time, or finds the queue full, is `exchange_unavailable`.
 */
export class ReadQueue {
  readonly #waiting = new Set<Waiting>();
  readonly #underWay = new Map<string, number>();
  #allUnderWay = 0;
  #isServing = false;
  #askAgain = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: ReadQueueOptions) {}

  /** How many reads wait here for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** How many are under way here. */
  get underWay(): number {
    return this.#allUnderWay;
  }

  /** Does a read of a partner's when it is its turn. The read gets the time that is left of its own. */
  read<T>(origin: Origin, work: (time: ReadTime) => Promise<T>): Promise<T> {
    const { partnerId } = origin;
    const deadline = performance.now() + this.options.timeoutMs;
    const own = [...this.#waiting].filter((each) => each.partnerId === partnerId).length;
    if (own >= mostWaitingOfPartner || this.#waiting.size >= mostWaiting) {
      return Promise.reject(tooLate('too many reads wait already'));
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        partnerId,
        begin: (places) => void this.#run(origin, places, work, deadline).then(resolve, reject).finally(stopWaiting),
      };
      const timer = setTimeout(() => {
        stopWaiting();
        reject(tooLate('the read took too long'));
      }, this.options.timeoutMs);
      const stopWaiting = () => {
        clearTimeout(timer);
        this.#waiting.delete(waiting);
      };
      this.#waiting.add(waiting);
      void this.#serve();
    });
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
    if (this.#waiting.size > 0) this.#timer = setTimeout(() => void this.#serve(), askAgainMs).unref();
  }

  async #serveOnce(): Promise<void> {
    const { mostPerPartner = usualMostPerPartner, mostInAll = usualMostInAll } = this.options;
    const full = new Set<string>();
    for (const waiting of [...this.#waiting]) {
      const { partnerId } = waiting;
      if (this.#allUnderWay >= mostInAll) return;
      if (full.has(partnerId) || !this.#waiting.has(waiting)) continue;
      const places = await this.#takePlaces(partnerId, mostPerPartner, mostInAll);
      if (places === 'full') return;
      if (places === 'partner-full') {
        full.add(partnerId);
      } else if (this.#waiting.delete(waiting)) {
        waiting.begin(places);
      } else {
        for (const place of places) place.release(); // Its time ran out meanwhile.
      }
    }
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
