import type { Lease } from '../db/lease.ts';
import { crash } from '../lib/crash.ts';
import { pause, Wakeup } from '../lib/worker.ts';
import { Attempts } from './attempts.ts';
import {
  bringForward,
  findProbe,
  findReady,
  findRetries,
  findWaiting,
  toDelivery,
  toWaiting,
} from './delivery-store.ts';
import type { DispatcherOptions } from './dispatcher.ts';
import {
  claimEndpoints,
  endDraining,
  findEndpoints,
  findWork,
  lockFree,
  lockHeld,
  releaseEndpoints,
  releaseUntil,
  type StoredEndpoint,
  saveSeen,
  toEndpoint,
} from './endpoint-store.ts';
import { Lane } from './lane.ts';
import { firstWindow } from './places.ts';
import { Recording } from './recording.ts';
import type { EndpointsAfter, Result } from './results.ts';
import { nextDue } from './rules.ts';
import { markUnmarkedWork } from './unmarked-work.ts';

/** How often queues are looked at when nobody says that they grew. */
const pollMs = 500;
/** How often endpoints are read whose work an earlier version queued without marking them. */
const usualMarkEveryMs = 60_000;
/** How long an endpoint without work is kept, so that its next event need not claim it. */
const idleMs = 30_000;
/** How many endpoints a process serves at once. */
const mostLanes = 2_000;
/** Beyond this many, one without work makes room for others soon. */
const crowdedFrom = 1_000;
const idleInCrowdMs = 400;
/** How many deliveries wait in memory, with their bodies; a few more where there are endpoints beyond a quarter of it. */
const mostWaiting = 4_096;
const mostClaimedAtOnce = 200;
const mostLoadedAtOnce = 32;
/** How many round trips of reading queues are under way at once. */
const loaders = 2;
const afterFailureMs = 250;
const mostBroughtForward = 2_000;
/** How long a stop waits for attempts that are under way. What is cut off is sent again. */
const stopWaitMs = 2_000;

/** The sending of events by one process while it holds its lease. */
export class Dispatch {
  readonly #lanes = new Map<string, Lane>();
  /** Lanes that may have something to begin, in the order of their turns. */
  readonly #turns = new Set<Lane>();
  readonly #toLoad = new Set<Lane>();
  readonly #woken = new Set<string>();
  readonly #look = new Wakeup();
  readonly #load = new Wakeup();
  readonly #recording: Recording;
  readonly #attempts: Attempts;
  #loadsUnderWay = 0;
  #isPumping = false;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly options: DispatcherOptions,
    private readonly lease: Lease,
  ) {
    const { database, clock, log } = options;
    this.#attempts = new Attempts({
      ...options,
      onEnded: (lane, result) => {
        this.#recording.add(result);
        this.#takeTurn(lane);
      },
      onAhead: (lane) => this.#takeTurn(lane),
    });
    this.#recording = new Recording({
      database,
      clock,
      log,
      onRecorded: (results, endpoints) => this.#recorded(results, endpoints),
    });
  }

  async run(): Promise<void> {
    const { signal } = this.lease;
    const stopped = new AbortController();
    const recording = this.#recording.run(stopped.signal);
    try {
      await Promise.all([
        this.#keepOn('look', () => this.#lookOnce(signal)),
        this.#keepOn('load', () => this.#loadOnce(signal)),
        this.#keepOn('mark', () => this.#markOnce(signal)),
      ]);
    } finally {
      const end = performance.now() + stopWaitMs;
      while (this.#attempts.load.underWay > 0 && performance.now() < end) await pause(20, stopped.signal);
      stopped.abort();
      await recording;
      // Others may go on at once; where this fails they wait until the lease has run out.
      await this.#release([...this.#lanes.values()]).catch(() => undefined);
    }
  }

  wake(partnerIds: readonly string[]): readonly string[] {
    const others: string[] = [];
    for (const partnerId of partnerIds) {
      const lane = this.#lanes.get(partnerId);
      if (lane !== undefined) {
        lane.grow();
        this.#wantLoad(lane);
      } else {
        // Where there are more than can be served, the look at the queues finds them.
        if (this.#woken.size < mostLanes) this.#woken.add(partnerId);
        others.push(partnerId);
      }
    }
    if (others.length > 0) this.#look.wake();
    return others;
  }

  /** Looks at the queues and at the endpoints' rows now. */
  lookAgain(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
    this.#look.wake();
  }

  get lagMs(): number {
    const now = this.options.clock.now();
    let oldest = now;
    for (const { oldestDue } of this.#lanes.values()) oldest = Math.min(oldest, oldestDue ?? now);
    return now - oldest;
  }

  /** How many deliveries each endpoint may have waiting in memory, so that all together stay within bounds. */
  get #share(): number {
    return Math.max(firstWindow, Math.floor(mostWaiting / Math.max(1, this.#lanes.size)));
  }

  #stir(lane: Lane): void {
    lane.stir();
    this.#wantLoad(lane);
  }

  #wantLoad(lane: Lane): void {
    if (lane.wants(this.options.clock.now(), this.#share) === undefined) return;
    this.#toLoad.add(lane);
    this.#load.wake();
  }

  /** Does a step again and again while the lease is held. One that fails is tried again: the database comes back. */
  async #keepOn(step: string, once: () => Promise<void>): Promise<void> {
    const { signal } = this.lease;
    while (!signal.aborted) {
      try {
        await once();
      } catch (error) {
        this.options.log.warn({ err: error, step }, 'webhooks wait for the database');
        await pause(afterFailureMs, signal);
      }
    }
  }

  /** Claims endpoints that have work, looks for those nobody told of, and gives back those without. */
  async #lookOnce(signal: AbortSignal): Promise<void> {
    const { database, clock } = this.options;
    await this.#look.wait(Math.max(0, this.#lookedAt + pollMs - performance.now()), signal);
    if (signal.aborted) return;
    const wanted = [...this.#woken];
    this.#woken.clear();
    if (performance.now() - this.#lookedAt >= pollMs) {
      this.#lookedAt = performance.now();
      const held = [...this.#lanes.keys()];
      const [work = [], rows = []] = await database.readAll([
        findWork(this.lease, clock.now(), mostLanes),
        findEndpoints(held.length > 0 ? held : ['']),
      ]);
      const endpoints = new Map(rows.map((row) => [String(row.partner_id), toEndpoint(row)]));
      for (const partnerId of held) this.#refresh(partnerId, endpoints.get(partnerId), this.#lookedAt);
      await this.#saySeen([...endpoints.values()]);
      for (const row of work) {
        const partnerId = String(row.partner_id);
        const lane = this.#lanes.get(partnerId);
        if (lane === undefined) wanted.push(partnerId);
        else this.#stir(lane);
      }
      await this.#releaseIdle();
    }
    await this.#claim([...new Set(wanted)].filter((partnerId) => !this.#lanes.has(partnerId)));
  }

  /** Marks work that an earlier version left unmarked: at the start, and then once a minute while such a version may run. */
  async #markOnce(signal: AbortSignal): Promise<void> {
    const { database, clock, markEveryMs = usualMarkEveryMs } = this.options;
    await markUnmarkedWork(database, clock.now(), signal);
    await pause(markEveryMs, signal);
  }

  /** Tells operators' calls that wait for it that their changes are in force here. */
  async #saySeen(endpoints: readonly StoredEndpoint[]): Promise<void> {
    const changed = endpoints.filter(({ changedRevision, seenRevision }) => changedRevision > seenRevision);
    const seen = changed.flatMap(({ partnerId }) => this.#lanes.get(partnerId)?.endpoint ?? []);
    if (seen.length > 0) await this.options.database.write(saveSeen(seen));
  }

  async #claim(partnerIds: readonly string[]): Promise<void> {
    const room = mostLanes - this.#lanes.size;
    for (let first = 0; first < Math.min(partnerIds.length, room); first += mostClaimedAtOnce) {
      const some = partnerIds.slice(first, Math.min(first + mostClaimedAtOnce, room));
      const askedAt = performance.now();
      const claimed = await this.options.database.transaction<StoredEndpoint[]>(
        [lockFree(some, this.lease)],
        ([rows = []]) => {
          if (rows.length === 0) return { writes: [], result: [] };
          const endpoints = rows.map(toEndpoint).map((endpoint) => ({ ...endpoint, fence: endpoint.fence + 1n }));
          const ids = endpoints.map(({ partnerId }) => partnerId);
          return { writes: [claimEndpoints(ids, this.lease)], result: endpoints };
        },
      );
      crash('delivery.claimed');
      for (const endpoint of claimed) {
        const lane = new Lane(endpoint, askedAt);
        this.#lanes.set(endpoint.partnerId, lane);
        this.#afterChange(lane);
        this.#wantLoad(lane);
      }
    }
  }

  /** Takes an endpoint's row as it is now; one that is another's by now is let go. */
  #refresh(partnerId: string, endpoint: StoredEndpoint | undefined, askedAt: number): void {
    const lane = this.#lanes.get(partnerId);
    if (lane === undefined) return;
    if (endpoint === undefined || endpoint.fence !== lane.endpoint.fence) {
      this.#forget(lane);
      return;
    }
    lane.adopt(endpoint);
    lane.confirm(askedAt);
    this.#afterChange(lane);
  }

  #forget(lane: Lane): void {
    this.#lanes.delete(lane.partnerId);
    this.#turns.delete(lane);
    this.#toLoad.delete(lane);
  }

  /** A pause that ended has all that waits moved to the front, before anything else is read. */
  #afterChange(lane: Lane): void {
    if (lane.endpoint.draining && !lane.isPaused) this.#toLoad.add(lane);
    this.#takeTurn(lane);
  }

  /** Has a lane begin what it may soon; one that was let go begins nothing. */
  #takeTurn(lane: Lane): void {
    if (this.#lanes.get(lane.partnerId) !== lane) return;
    this.#turns.add(lane);
    this.#pumpSoon();
  }

  async #releaseIdle(): Promise<void> {
    const now = performance.now();
    const keptMs = this.#lanes.size < crowdedFrom ? idleMs : idleInCrowdMs;
    const idle: Lane[] = [];
    for (const lane of this.#lanes.values()) {
      if (!lane.isEmpty || lane.isLoading || lane.endpoint.draining) lane.idleSince = undefined;
      else lane.idleSince ??= now;
      if (lane.idleSince !== undefined && now - lane.idleSince > keptMs) idle.push(lane);
    }
    for (let first = 0; first < idle.length; first += mostClaimedAtOnce) {
      await this.#releaseUntilDue(idle.slice(first, first + mostClaimedAtOnce));
    }
  }

  /** Gives endpoints back and notes when there will be something to do for them. */
  async #releaseUntilDue(lanes: readonly Lane[]): Promise<void> {
    for (const lane of lanes) this.#forget(lane);
    const { database, clock } = this.options;
    const ids = lanes.map(({ partnerId }) => partnerId);
    await database.transaction([lockHeld(ids, this.lease), findWaiting(ids)], ([rows = [], waiting = []]) => {
      const waitingOf = new Map(waiting.map((row) => [String(row.partner_id), toWaiting(row)]));
      const writes = rows.map(toEndpoint).map((endpoint) => {
        const found = waitingOf.get(endpoint.partnerId) ?? { isReady: false, retryAt: null };
        return releaseUntil(endpoint.partnerId, nextDue(endpoint, found, clock.now()));
      });
      return { writes, result: undefined };
    });
  }

  async #release(lanes: readonly Lane[]): Promise<void> {
    for (const lane of lanes) this.#forget(lane);
    const ids = lanes.map(({ partnerId }) => partnerId);
    if (ids.length > 0) await this.options.database.write(releaseEndpoints(ids, this.lease));
  }

  /** Has queues read, a few round trips at the same time. */
  async #loadOnce(signal: AbortSignal): Promise<void> {
    if (this.#toLoad.size === 0 || this.#loadsUnderWay >= loaders) await this.#load.wait(pollMs, signal);
    if (this.#loadsUnderWay >= loaders) return;
    const lanes = [...this.#toLoad].slice(0, mostLoadedAtOnce);
    for (const lane of lanes) this.#toLoad.delete(lane);
    // One that is being read asks again by itself when that is done.
    const free = lanes.filter(({ isLoading }) => !isLoading);
    if (free.length === 0) return;
    this.#loadsUnderWay += 1;
    void this.#read(free)
      .catch((error: unknown) => {
        this.options.log.warn({ err: error }, 'the queues of webhooks could not be read');
        return pause(afterFailureMs, signal);
      })
      .then(() => {
        this.#loadsUnderWay -= 1;
        this.#load.wake();
      });
  }

  /** Reads what lanes want, in one round trip. */
  async #read(lanes: readonly Lane[]): Promise<void> {
    const { database, clock } = this.options;
    for (const lane of lanes) if (lane.endpoint.draining && !lane.isPaused) await this.#drain(lane);
    const now = clock.now();
    const asked = lanes.flatMap((lane) => {
      const wish = lane.wants(now, this.#share);
      return wish === undefined ? [] : [{ lane, wish }];
    });
    if (asked.length === 0) return;
    for (const { lane, wish } of asked) {
      lane.isLoading = true;
      lane.mayHaveMore = {
        fresh: wish.kind === 'waiting' && wish.fresh === 0 && lane.mayHaveMore.fresh,
        retries: wish.kind === 'waiting' && wish.retries === 0 && lane.mayHaveMore.retries,
      };
    }
    try {
      const sets = await database.readAll(
        asked.flatMap(({ lane, wish }) => {
          const { partnerId, known, readUpTo } = lane;
          return wish.kind === 'probe'
            ? [findProbe(partnerId, lane.health.probedVersion, now), findProbe(partnerId, 0n, now)]
            : [
                findReady(partnerId, { after: readUpTo, without: known }, now, wish.fresh),
                findRetries(partnerId, known, now, wish.retries),
              ];
        }),
      );
      for (const [index, { lane, wish }] of asked.entries()) {
        const [first = [], second = []] = [sets[2 * index], sets[2 * index + 1]];
        if (wish.kind === 'probe') {
          // After the last one that waits, the oldest comes again.
          lane.take((first.length > 0 ? first : second).map(toDelivery), true);
        } else {
          if (wish.fresh > 0 && first.length >= wish.fresh) lane.mayHaveMore.fresh = true;
          if (wish.retries > 0 && second.length >= wish.retries) lane.mayHaveMore.retries = true;
          lane.take([...first, ...second].map(toDelivery), false);
        }
      }
    } catch (error) {
      for (const { lane } of asked) lane.stir();
      throw error;
    } finally {
      for (const { lane } of asked) {
        lane.isLoading = false;
        this.#takeTurn(lane);
      }
    }
  }

  /** Moves what waits to the front of the queue, and notes it when all is there. */
  async #drain(lane: Lane): Promise<void> {
    const { database } = this.options;
    const { endpoint } = lane;
    const { partnerId, fence, revision } = endpoint;
    const moved = await database.write(bringForward(partnerId, fence, mostBroughtForward));
    if (moved >= mostBroughtForward) this.#toLoad.add(lane);
    else if ((await database.write(endDraining(endpoint))) > 0) {
      lane.adopt({ ...endpoint, draining: false, revision: revision + 1n });
      lane.stir();
    } else this.lookAgain();
  }

  #pumpSoon(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    setImmediate(() => {
      this.#isPumping = false;
      this.#pump();
    });
  }

  /** Begins as many attempts as may be, one of each endpoint in turn. */
  #pump(): void {
    for (let hasBegun = true; hasBegun; ) {
      hasBegun = false;
      for (const lane of this.#turns) {
        // Asked before each, because a process may be frozen between any two of them.
        if (!this.lease.isHeld()) return;
        const next = lane.next(this.#attempts.load);
        if (next === 'no shared place') continue;
        if (next === 'nothing') {
          this.#turns.delete(lane);
          this.#wantLoad(lane);
          continue;
        }
        hasBegun = true;
        this.#attempts.begin(lane, next);
      }
    }
    for (const lane of this.#turns) this.#wantLoad(lane);
  }

  #recorded(results: readonly Result[], endpoints: EndpointsAfter): void {
    const versionsOf = new Map<string, bigint[]>();
    for (const { partnerId, version } of results) {
      const versions = versionsOf.get(partnerId);
      if (versions === undefined) versionsOf.set(partnerId, [version]);
      else versions.push(version);
    }
    for (const [partnerId, versions] of versionsOf) {
      const lane = this.#lanes.get(partnerId);
      if (lane === undefined) continue;
      const endpoint = endpoints.get(partnerId);
      if (endpoint === undefined || endpoint.fence !== lane.endpoint.fence) {
        this.#forget(lane);
        continue;
      }
      lane.recorded(versions, endpoint);
      this.#afterChange(lane);
    }
  }
}
