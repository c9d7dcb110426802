import type { ReadTime } from '../broker/port.ts';
import { Counts, once } from '../lib/counts.ts';
import { ApiError } from '../lib/errors.ts';
import type { Origin } from '../lib/origin.ts';
import type { SharedSlots, Slot } from './shared-slots.ts';

/** Begins a read in slots that were acquired for it. */
type Begin = (slots: readonly Slot[]) => void;

/** How many reads may wait here. A partner may have at most as many as there is room left for others. */
const mostWaiting = 2_000;
/** How often slots are asked for again while other replicas have them. */
const askAgainMs = 25;

/**
 * Lets reads of the broker have their turn: only so many of a partner at once, and only so many in all, over all
 * replicas. Partners take turns, and a partner's reads come in the order of their arrival. Replicas where reads wait take
 * turns too. A read that has no answer in its time is `exchange_unavailable`.
 */
export class ReadQueue {
  /** The reads that wait, by partner. The partner that was served last comes last. */
  readonly #queues = new Map<string, Set<Begin>>();
  readonly #waiting = new Counts();
  readonly #underWay = new Counts();
  #isServing = false;
  #serveAgain = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly slots: Pick<SharedSlots, 'acquire'>,
    /** How long a read has from its arrival to its answer. */
    private readonly timeoutMs: number,
    private readonly mostPerPartner = 2,
    private readonly mostInAll = 4,
  ) {}

  /** How many reads wait here for their turn. */
  get waiting(): number {
    return this.#waiting.total;
  }

  /** How many are under way here. */
  get underWay(): number {
    return this.#underWay.total;
  }

  /** Does a read of a partner's when it is its turn. The read gets the time that is left of its own. */
  read<T>(origin: Origin, work: (time: ReadTime) => Promise<T>): Promise<T> {
    const { partnerId } = origin;
    const { timeoutMs } = this;
    const deadline = performance.now() + timeoutMs;
    if (this.#waiting.of(partnerId) >= mostWaiting - this.waiting) {
      return Promise.reject(tooLate('too many reads wait already'));
    }
    return new Promise((resolve, reject) => {
      const begin = (slots: readonly Slot[]) => {
        leave();
        void this.#run(origin, slots, work, deadline)
          .then(resolve, reject)
          .finally(() => clearTimeout(timer));
      };
      const leave = this.#wait(partnerId, begin);
      const timer = setTimeout(() => {
        leave();
        reject(tooLate('the read took too long'));
      }, timeoutMs);
      void this.#serve();
    });
  }

  /** Puts a read into its partner's queue. What it returns takes it out again. */
  #wait(partnerId: string, begin: Begin): () => void {
    const queue = this.#queues.get(partnerId) ?? new Set();
    this.#queues.set(partnerId, queue.add(begin));
    const countOff = this.#waiting.add(partnerId);
    return once(() => {
      countOff();
      queue.delete(begin);
      if (queue.size === 0) this.#queues.delete(partnerId);
    });
  }

  async #run<T>(
    origin: Origin,
    slots: readonly Slot[],
    work: (time: ReadTime) => Promise<T>,
    deadline: number,
  ): Promise<T> {
    const countOff = this.#underWay.add(origin.partnerId);
    try {
      return await work({ timeoutMs: Math.max(1, deadline - performance.now()), origin });
    } finally {
      // Only now: a read that has no answer is under way until it is given up.
      countOff();
      for (const slot of slots) slot.release();
      void this.#serve();
    }
  }

  /** Begins what can begin, one after the other. */
  async #serve(): Promise<void> {
    this.#serveAgain = true;
    if (this.#isServing) return;
    this.#isServing = true;
    clearTimeout(this.#timer);
    while (this.#serveAgain) {
      this.#serveAgain = false;
      await this.#serveOnce();
    }
    this.#isServing = false;
    // Another replica gives no notice when it gives a slot back.
    if (this.waiting > 0) this.#timer = setTimeout(() => void this.#serve(), askAgainMs).unref();
  }

  /** Begins one read of each partner that can have one. */
  async #serveOnce(): Promise<void> {
    const { slots, mostPerPartner, mostInAll } = this;
    for (const partnerId of [...this.#queues.keys()]) {
      if (this.underWay >= mostInAll) return;
      if (this.#waiting.of(partnerId) === 0 || this.#underWay.of(partnerId) >= mostPerPartner) continue;
      const ofPartner = await slots.acquire(`reads.${partnerId}`, mostPerPartner, true);
      if (ofPartner === undefined) continue;
      const ofAll = await slots.acquire('reads', mostInAll, true);
      if (ofAll === undefined) return ofPartner.release();
      const queue = this.#queues.get(partnerId);
      const [begin] = queue ?? [];
      if (queue === undefined || begin === undefined) {
        // Its reads ran out of time while the slots were asked for.
        ofPartner.release();
        ofAll.release();
        continue;
      }
      this.#queues.delete(partnerId);
      this.#queues.set(partnerId, queue);
      begin([ofPartner, ofAll]);
      // The partner may have one more, after the others had their turn.
      this.#serveAgain = true;
    }
  }
}

function tooLate(reason: string): ApiError {
  return new ApiError('exchange_unavailable', { cause: new Error(reason), limit: 'broker_reads' });
}
