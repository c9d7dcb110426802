import { randomUUID } from 'node:crypto';
import { chunksOf, groupBy } from '../../../kit/group.ts';
import { pause, Wakeup, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { type Lease, underLease } from '../../store/lease.ts';
import { Attempts, type AttemptsOptions, type MadeAttempt } from './attempt/attempts.ts';
import { EndpointQueue, firstSlots } from './plan/endpoint-queue.ts';
import { claimEndpoints, endDraining, findWork, releaseEndpoints, saveSeen } from './plan/endpoint-store.ts';
import { bringForward, readQueues } from './plan/queue-store.ts';
import { AttemptRecorder } from './record/recorder.ts';
import { dispatcherLeasePrefix, type Endpoint, endpoints } from './table.ts';

/** How often the database is polled for work without a notification. */
const pollMs = 500;
/** How often all endpoints are scanned for work that is not marked as due. */
const usualFullScanMs = 60_000;
/**
 * How long a process keeps an endpoint without events. If an event comes within this time, the process need not take the
 * endpoint again.
 */
const idleMs = 30_000;
/** Endpoints that a process serves at once. */
const maxQueues = 2_000;
/** Above this number, idle endpoints make room for others at the next poll. */
const crowdedFrom = 1_000;
const idleInCrowdMs = 400;
/**
 * New events in memory, with their bodies. There can be more of them if there are more endpoints than a quarter of this number.
 */
const maxInMemory = 4_096;
/** Endpoints claimed or released in one transaction. */
const maxAtOnce = 200;
/** Queues read in one round trip, and concurrent round trips. */
const maxReadAtOnce = 32;
const maxReaders = 2;
const maxBroughtForward = 2_000;
const afterFailureMs = 250;
/** How long a stop waits for attempts in progress. One that is cut off is sent again. */
const stopWaitMs = 2_000;

export interface DispatcherOptions extends AttemptsOptions {
  readonly database: Database;
  readonly holder: string;
  /** How often all endpoints are scanned, in milliseconds; by default 60 s. Tests shorten it. */
  readonly fullScanMs?: number;
}

/**
 * Sends the events in endpoints' queues. Only one process at a time serves an endpoint: the first process that found work for
 * it. So one process decides about the endpoint's order, slots and pauses. Each process holds one lease. The rows of its
 * endpoints contain the name of this lease. If it dies, they are free when the lease runs out. `plan/` says what is sent next,
 * `attempt/` makes one POST, `record/` stores its outcome.
 */
export class Dispatcher {
  readonly worker: Worker;
  readonly #queues = new Map<string, EndpointQueue>();
  /** Queues that may have something to begin or to read, in the order of their turns. */
  readonly #turns = new Set<EndpointQueue>();
  readonly #notified = new Set<string>();
  readonly #pollNow = new Wakeup();
  readonly #toRead = new Set<EndpointQueue>();
  #readers = 0;
  readonly #attempts: Attempts;
  readonly #recorder: AttemptRecorder;
  #lease: Lease | undefined;
  #isTurnPlanned = false;
  #polledAt = Number.NEGATIVE_INFINITY;
  #scannedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: DispatcherOptions) {
    const { database, holder } = options;
    // A lease's name has at most 40 characters.
    const leaseName = `${dispatcherLeasePrefix}${randomUUID().replaceAll('-', '').slice(0, 24)}`;
    this.worker = { ...underLease(database, leaseName, holder, (lease) => this.#run(lease)), name: 'dispatcher' };
    this.#recorder = new AttemptRecorder(options, (attempts, endpoints) => this.#recorded(attempts, endpoints));
    this.#attempts = new Attempts(options, {
      ended: (queue, attempt) => {
        this.#recorder.add(attempt);
        this.#takeTurn(queue);
      },
      unblocked: (queue) => this.#takeTurn(queue),
    });
  }

  /** Notes that endpoints have events to send. Returns those that this process does not serve. */
  wake(partnerIds: readonly string[]): readonly string[] {
    const others = partnerIds.filter((partnerId) => !this.#queues.has(partnerId));
    for (const partnerId of partnerIds) {
      const queue = this.#queues.get(partnerId);
      queue?.grow();
      if (queue !== undefined) this.#takeTurn(queue);
      // The poll finds the others.
      else if (this.#notified.size < maxQueues) this.#notified.add(partnerId);
    }
    if (others.length > 0) this.#pollNow.wake();
    return others;
  }

  /** Notes that an endpoint was changed: all rows are read now. */
  changed(): void {
    this.#polledAt = Number.NEGATIVE_INFINITY;
    this.#pollNow.wake();
  }

  /** The time since the oldest event in memory became due, in business milliseconds; 0 if none waits. */
  get lagMs(): number {
    const now = this.options.clock.now();
    return now - Math.min(now, ...[...this.#queues.values()].map(({ oldestDue }) => oldestDue ?? now));
  }

  async #run(lease: Lease): Promise<void> {
    const stopped = new AbortController();
    const recording = this.#recorder.run(stopped.signal);
    this.#lease = lease;
    this.#scannedAt = Number.NEGATIVE_INFINITY;
    this.changed();
    try {
      while (!lease.signal.aborted) {
        try {
          await this.#poll(lease);
        } catch (error) {
          this.options.log.warn({ err: error }, 'webhooks wait for the database');
          await pause(afterFailureMs, lease.signal);
        }
      }
    } finally {
      const end = performance.now() + stopWaitMs;
      while (this.#attempts.underWay > 0 && performance.now() < end) await pause(20, stopped.signal);
      stopped.abort();
      await recording;
      // If this fails, other processes wait until the lease has run out.
      await this.#release([...this.#queues.values()], lease).catch(() => undefined);
      for (const queue of this.#queues.values()) this.#forget(queue);
    }
  }

  /** Claims endpoints that have work: notified ones at once, others at each poll. */
  async #poll(lease: Lease): Promise<void> {
    await this.#pollNow.wait(Math.max(0, this.#polledAt + pollMs - performance.now()), lease.signal);
    if (lease.signal.aborted) return;
    const wanted = new Set(this.#notified);
    this.#notified.clear();
    if (performance.now() - this.#polledAt >= pollMs) {
      for (const partnerId of await this.#refresh(lease)) wanted.add(partnerId);
      await this.#release(this.#idle(), lease);
    }
    const free = [...wanted].filter((partnerId) => !this.#queues.has(partnerId));
    for (const some of chunksOf(free.slice(0, Math.max(0, maxQueues - this.#queues.size)), maxAtOnce)) {
      const askedAt = performance.now();
      const claimed = await claimEndpoints(this.options.database, some, lease, this.options.clock.now());
      for (const endpoint of claimed) {
        const queue = new EndpointQueue(endpoint, askedAt);
        this.#queues.set(endpoint.partnerId, queue);
        this.#takeTurn(queue);
      }
    }
  }

  /** Reads the rows of its endpoints, and returns the partners whose endpoints have work. */
  async #refresh(lease: Lease): Promise<readonly string[]> {
    const { database, clock, fullScanMs = usualFullScanMs } = this.options;
    const askedAt = performance.now();
    this.#polledAt = askedAt;
    const isFullScan = askedAt - this.#scannedAt >= fullScanMs;
    const [work = [], rows = []] = await database.readAll([
      findWork(lease, clock.now(), maxQueues, isFullScan),
      endpoints.find({ partnerId: ['', ...this.#queues.keys()] }),
    ]);
    if (isFullScan) this.#scannedAt = askedAt;
    const rowsOf = new Map(rows.map(endpoints.all.read).map((endpoint) => [endpoint.partnerId, endpoint]));
    const partnerIds = work.map((row) => String(row.partner_id));
    for (const partnerId of partnerIds) this.#queues.get(partnerId)?.reread();
    for (const queue of this.#queues.values()) {
      const endpoint = rowsOf.get(queue.partnerId);
      // Another process sends to it now.
      if (endpoint === undefined || endpoint.fence !== queue.endpoint.fence) this.#forget(queue);
      else {
        queue.refresh(endpoint, askedAt);
        this.#takeTurn(queue);
      }
    }
    // Operators' calls wait until their changes are in force here.
    const rowsHere = [...this.#queues.values()].map(({ endpoint }) => endpoint);
    const changed = rowsHere.filter(({ changedRevision, seenRevision }) => changedRevision > seenRevision);
    if (changed.length > 0) await database.write(saveSeen(changed));
    return partnerIds;
  }

  #idle(): EndpointQueue[] {
    const now = performance.now();
    const keptMs = this.#queues.size < crowdedFrom ? idleMs : idleInCrowdMs;
    return [...this.#queues.values()].filter((queue) => {
      const isIdle = queue.versions.size === 0 && !queue.isLoading && !queue.endpoint.draining;
      queue.idleSince = isIdle ? (queue.idleSince ?? now) : undefined;
      return queue.idleSince !== undefined && now - queue.idleSince > keptMs;
    });
  }

  async #release(queues: readonly EndpointQueue[], lease: Lease): Promise<void> {
    const { database, clock } = this.options;
    for (const some of chunksOf(queues, maxAtOnce)) {
      for (const queue of some) this.#forget(queue);
      const partnerIds = some.map(({ partnerId }) => partnerId);
      await releaseEndpoints(database, partnerIds, lease, clock.now());
    }
  }

  #forget(queue: EndpointQueue): void {
    this.#queues.delete(queue.partnerId);
    this.#turns.delete(queue);
    this.#toRead.delete(queue);
  }

  /** Plans a turn of the queue, unless the queue was released. */
  #takeTurn(queue: EndpointQueue): void {
    if (this.#queues.get(queue.partnerId) !== queue) return;
    this.#turns.add(queue);
    if (this.#isTurnPlanned) return;
    this.#isTurnPlanned = true;
    setImmediate(() => {
      this.#isTurnPlanned = false;
      if (this.#lease !== undefined) this.#takeTurns(this.#lease);
    });
  }

  /** Begins attempts of one endpoint after another up to the limits, and starts reading queues that are nearly empty. */
  #takeTurns(lease: Lease): void {
    const maxNew = Math.max(firstSlots, Math.floor(maxInMemory / Math.max(1, this.#queues.size)));
    const now = this.options.clock.now();
    const wantsRead = (queue: EndpointQueue) => {
      if (queue.isLoading) return;
      if (queue.mustDrain || queue.wants(now, maxNew).length > 0) this.#toRead.add(queue);
    };
    for (let hasBegun = true; hasBegun; ) {
      hasBegun = false;
      for (const queue of this.#turns) {
        // Checked before each attempt, because the process may be frozen at any moment.
        if (lease.signal.aborted || !lease.isHeld()) return;
        const next = queue.next(this.#attempts.underWay);
        if (next === 'no shared slot') continue;
        if (next === 'nothing') {
          this.#turns.delete(queue);
          wantsRead(queue);
          continue;
        }
        hasBegun = true;
        this.#attempts.begin(queue, next);
      }
    }
    for (const queue of this.#turns) wantsRead(queue);
    while (this.#toRead.size > 0 && this.#readers < maxReaders) {
      const queues = [...this.#toRead].slice(0, maxReadAtOnce);
      for (const queue of queues) this.#toRead.delete(queue);
      void this.#read(queues, lease, maxNew);
    }
  }

  /** Reads queues in one round trip. Never rejects. */
  async #read(queues: readonly EndpointQueue[], { signal }: Lease, mostNew: number): Promise<void> {
    const { database, clock, log } = this.options;
    this.#readers += 1;
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
    this.#readers -= 1;
    for (const queue of queues) {
      queue.isLoading = false;
      this.#takeTurn(queue);
    }
  }

  /** Moves retries to the front of the queue. When all of them are moved, it stores that the move is finished. */
  async #drain(queue: EndpointQueue): Promise<void> {
    const { database } = this.options;
    const { endpoint } = queue;
    const moved = await database.write(bringForward(endpoint.partnerId, endpoint.fence, maxBroughtForward));
    if (moved >= maxBroughtForward) return;
    if ((await database.write(endDraining(endpoint))) > 0) {
      queue.adopt({ ...endpoint, draining: false, revision: endpoint.revision + 1n });
      queue.reread();
    } else this.changed();
  }

  #recorded(attempts: readonly MadeAttempt[], endpoints: ReadonlyMap<string, Endpoint>): void {
    for (const [partnerId, own] of groupBy(attempts, (attempt) => attempt.partnerId)) {
      const queue = this.#queues.get(partnerId);
      const endpoint = endpoints.get(partnerId);
      if (queue === undefined) continue;
      if (endpoint === undefined || endpoint.fence !== queue.endpoint.fence) this.#forget(queue);
      else {
        // Attempts from before the last claim do not count for this queue.
        const made = own.filter(({ fence }) => fence === endpoint.fence);
        queue.recorded(
          made.map(({ version }) => version),
          endpoint,
        );
        this.#takeTurn(queue);
      }
    }
  }
}
