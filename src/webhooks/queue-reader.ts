import type { Database } from '../db/database.ts';
import type { Lease } from '../db/lease.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import { pause } from '../lib/worker.ts';
import { bringForward, readQueues } from './delivery-store.ts';
import type { EndpointQueue } from './endpoint-queue.ts';
import { endDraining } from './endpoint-store.ts';

const mostAtOnce = 32;
/** How many round trips are under way at once. */
const readers = 2;
const afterFailureMs = 250;
const mostBroughtForward = 2_000;

/** Reads from the database what endpoint queues want. */
export class QueueReader {
  readonly #toRead = new Set<EndpointQueue>();
  #underWay = 0;

  constructor(
    private readonly options: { readonly database: Database; readonly clock: Clock; readonly log: Logger },
    private readonly on: {
      /** A queue was read, or could not be. */
      read(queue: EndpointQueue): void;
      /** A queue's endpoint was changed by another. */
      changed(): void;
    },
  ) {}

  /** Has a queue read at the next `start`, if it wants anything: at most a number of new events. */
  add(queue: EndpointQueue, mostNew: number): void {
    if (queue.isLoading) return;
    if (queue.mustDrain || queue.wants(this.options.clock.now(), mostNew).length > 0) this.#toRead.add(queue);
  }

  remove(queue: EndpointQueue): void {
    this.#toRead.delete(queue);
  }

  /** Begins as many round trips as may be. */
  start(lease: Lease, mostNew: number): void {
    while (this.#toRead.size > 0 && this.#underWay < readers) {
      const queues = [...this.#toRead].slice(0, mostAtOnce);
      for (const queue of queues) this.#toRead.delete(queue);
      void this.#read(queues, lease, mostNew);
    }
  }

  /** Reads what queues want, in one round trip. Never rejects. */
  async #read(queues: readonly EndpointQueue[], { signal }: Lease, mostNew: number): Promise<void> {
    const { database, clock, log } = this.options;
    this.#underWay += 1;
    for (const queue of queues) queue.isLoading = true;
    try {
      for (const queue of queues) if (queue.mustDrain) await this.#drain(queue);
      const now = clock.now();
      const asked = queues.flatMap((queue) => queue.beginReading(now, mostNew).map((read) => ({ queue, read })));
      const found = await readQueues(
        database,
        asked.map(({ queue: { partnerId, versions }, read }) => ({ ...read, partnerId, without: versions })),
        now,
      );
      for (const [index, { queue, read }] of asked.entries()) queue.take(read, found[index] ?? []);
    } catch (error) {
      log.warn({ err: error }, 'the queues of webhooks could not be read');
      for (const queue of queues) queue.reread();
      await pause(afterFailureMs, signal);
    }
    this.#underWay -= 1;
    for (const queue of queues) {
      queue.isLoading = false;
      this.on.read(queue);
    }
  }

  /** Moves what waits to the front of the queue, and notes it when all is there. */
  async #drain(queue: EndpointQueue): Promise<void> {
    const { database } = this.options;
    const { endpoint } = queue;
    const moved = await database.write(bringForward(endpoint.partnerId, endpoint.fence, mostBroughtForward));
    if (moved >= mostBroughtForward) return;
    if ((await database.write(endDraining(endpoint))) > 0) {
      queue.adopt({ ...endpoint, draining: false, revision: endpoint.revision + 1n });
      queue.reread();
    } else this.on.changed();
  }
}
