import { Counts, once } from '../../../kit/counts.ts';
import { ApiError } from '../../edge/errors.ts';
import type { SharedSlots, Slot } from '../../edge/limits/shared-slots.ts';
import type { Origin } from '../../edge/origin.ts';
import { type BrokerId, nameAt } from './broker.ts';
import type { ReadTime } from './records.ts';

/** Begins a read with the slots that it acquired. */
type Begin = (slots: readonly Slot[]) => void;

/** How many reads may wait here. A partner may queue at most as many as are still free for others. */
const maxWaiting = 2_000;
/** How often slots are requested again while other replicas have them. */
const askAgainMs = 25;

/**
 * Queues reads of the broker: a bounded number per partner and in all, over all replicas. Partners take turns, and each
 * partner's reads run in order of arrival. Replicas with waiting reads take turns too. A read without an answer in its
 * time throws `exchange_unavailable`.
 */
export class ReadQueue {
  /** The waiting reads by partner. The partner that was served last is last. */
  readonly #queues = new Map<string, Set<Begin>>();
  readonly #underWay = new Counts();
  #isServing = false;
  #serveAgain = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly broker: BrokerId,
    private readonly slots: Pick<SharedSlots, 'acquire'>,
    /** How long a read may take from its arrival to its answer. */
    private readonly timeoutMs: number,
    private readonly mostPerPartner = 2,
    private readonly mostInAll = 4,
  ) {}

  /** How many reads wait here. */
  get waiting(): number {
    return [...this.#queues.values()].reduce((total, queue) => total + queue.size, 0);
  }

  /** How many reads run here. */
  get underWay(): number {
    return this.#underWay.total;
  }

  /** Runs a partner's read in its turn. The read gets the rest of its time. */
  read<T>(origin: Origin, work: (time: ReadTime) => Promise<T>): Promise<T> {
    return this.#read(origin.partnerId, origin, work);
  }

  /** Runs a read of the gateway's own in the turn of a reader, who counts as one more partner. It may have less time. */
  readFor<T>(reader: string, work: (time: ReadTime) => Promise<T>, timeoutMs = this.timeoutMs): Promise<T> {
    return this.#read(reader, undefined, work, Math.min(timeoutMs, this.timeoutMs));
  }

  #read<T>(
    partnerId: string,
    origin: Origin | undefined,
    work: (time: ReadTime) => Promise<T>,
    timeoutMs = this.timeoutMs,
  ): Promise<T> {
    const deadline = performance.now() + timeoutMs;
    if ((this.#queues.get(partnerId)?.size ?? 0) >= maxWaiting - this.waiting) {
      return Promise.reject(tooLate('too many reads wait already'));
    }
    return new Promise((resolve, reject) => {
      const begin = (slots: readonly Slot[]) => {
        leave();
        void this.#run(partnerId, origin, slots, work, deadline)
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

  /** Queues a read. Call the result to remove it. */
  #wait(partnerId: string, begin: Begin): () => void {
    const queue = this.#queues.get(partnerId) ?? new Set();
    this.#queues.set(partnerId, queue.add(begin));
    return once(() => {
      queue.delete(begin);
      if (queue.size === 0) this.#queues.delete(partnerId);
    });
  }

  async #run<T>(
    partnerId: string,
    origin: Origin | undefined,
    slots: readonly Slot[],
    work: (time: ReadTime) => Promise<T>,
    deadline: number,
  ): Promise<T> {
    const countOff = this.#underWay.add(partnerId);
    try {
      return await work({ timeoutMs: Math.max(1, deadline - performance.now()), origin });
    } finally {
      // Only now, because a read without an answer is in progress until it is given up.
      countOff();
      for (const slot of slots) slot.release();
      void this.#serve();
    }
  }

  /** Begins the reads that can run, one after the other. */
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
    // Another replica does not notify when it releases a slot.
    if (this.#queues.size > 0) this.#timer = setTimeout(() => void this.#serve(), askAgainMs).unref();
  }

  /** Begins at most one read of each partner. */
  async #serveOnce(): Promise<void> {
    const { slots, mostPerPartner, mostInAll } = this;
    const name = nameAt(this.broker, 'reads');
    for (const partnerId of [...this.#queues.keys()]) {
      if (this.underWay >= mostInAll) return;
      if (!this.#queues.has(partnerId) || this.#underWay.of(partnerId) >= mostPerPartner) continue;
      const ofPartner = await slots.acquire(`${name}.${partnerId}`, mostPerPartner, true);
      if (ofPartner === undefined) continue;
      const ofAll = await slots.acquire(name, mostInAll, true);
      if (ofAll === undefined) return ofPartner.release();
      const queue = this.#queues.get(partnerId);
      const [begin] = queue ?? [];
      if (queue === undefined || begin === undefined) {
        // Its reads timed out while the slots were requested.
        ofPartner.release();
        ofAll.release();
        continue;
      }
      this.#queues.delete(partnerId);
      this.#queues.set(partnerId, queue);
      begin([ofPartner, ofAll]);
      // The partner may begin another one after the others had their turn.
      this.#serveAgain = true;
    }
  }
}

function tooLate(reason: string): ApiError {
  return new ApiError('exchange_unavailable', { cause: new Error(reason), limit: 'broker_reads' });
}
