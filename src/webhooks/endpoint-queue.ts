import type { LoadedDelivery, QueueRead } from './delivery-store.ts';
import { type Health, healthAfter, longestProbeWaitMs, rowServesMs } from './rules.ts';
import type { Attempt, Endpoint } from './table.ts';

/** A delivery that is about to be tried. */
export interface NextTry {
  readonly delivery: LoadedDelivery;
  readonly isProbe: boolean;
}

/** How many attempts of a process are under way at once, at most. */
const mostUnderWay = 1_024;
/** Beyond this many, attempts begin only for endpoints whose last attempt was delivered: others may all hang. */
const mostUnproven = 768;
/** Beyond this many, every endpoint has only its first slots. */
const crowdedFrom = 512;
/** How many attempts of one endpoint are under way at once: at first, and at most when it takes its time to answer. */
export const firstSlots = 4;
export const mostSlots = 16;
/** An endpoint that answers has as many slots as so many deliveries a second take, and no less than at first. */
const deliveriesPerSecond = 200;
/** How many new events wait in memory for each slot. */
const readAheadPerSlot = 4;
/** How many attempts of an endpoint may have ended without being recorded before no more are begun. */
const mostUnrecorded = 512;

/**
 * The queue of an endpoint this process sends to: what waits in memory, what is under way, and how the endpoint fares. It
 * decides what is tried next and does nothing itself.
 */
export class EndpointQueue {
  /** Whether it is being read from the database. */
  isLoading = false;
  /** Since when there was nothing to do, on a monotonic clock; undefined while there is. */
  idleSince: number | undefined;
  #endpoint: Endpoint;
  #health: Health;
  /** The parts of which the database may have more than is in memory. */
  readonly #unread = new Set<'new' | 'retries'>(['new', 'retries']);
  #new: LoadedDelivery[] = [];
  #retries: LoadedDelivery[] = [];
  #probe: LoadedDelivery | undefined;
  readonly #versions = new Set<bigint>();
  /** The version after which new events are read. */
  #readUpTo = 0n;
  #rowServesUntil: number;
  readonly #underWay = new Set<NextTry>();
  #unrecorded = 0;
  /**
   * How long it takes to answer when it has nothing else to do, by the shortest time of late, which is slowly forgotten. What
   * an answer waits for others is not in it. Undefined unless the last attempt was delivered.
   */
  #answerMs: number | undefined;
  /** The attempt that a later one could overtake. */
  #blockedBy: NextTry | undefined;

  /** `askedAt`: when the row was asked for, on a monotonic clock. */
  constructor(endpoint: Endpoint, askedAt: number) {
    this.#endpoint = endpoint;
    this.#health = endpoint;
    this.#rowServesUntil = askedAt + rowServesMs;
  }

  get partnerId(): string {
    return this.#endpoint.partnerId;
  }

  get endpoint(): Endpoint {
    return this.#endpoint;
  }

  /** The health by all attempts that ended, recorded or not. */
  get health(): Health {
    return this.#health;
  }

  get isPaused(): boolean {
    return this.#health.pausedAt !== null;
  }

  /** Whether a pause has ended, so that what waits must be moved to the front before anything is read. */
  get mustDrain(): boolean {
    return this.#endpoint.draining && !this.isPaused;
  }

  /** Versions that wait in memory, are under way or are not recorded yet: not to be read again. */
  get versions(): ReadonlySet<bigint> {
    return this.#versions;
  }

  /** The instant since which the oldest in memory could be sent; undefined when nothing waits. */
  get oldestDue(): number | undefined {
    const instants = [this.#new[0], this.#retries[0]].flatMap((first) => (first ? [first.dueAt ?? first.takenAt] : []));
    return instants.length === 0 ? undefined : Math.min(...instants);
  }

  /**
   * Notes that new events were queued. They are read from where reading stopped: from the start, each reading would pass
   * what was sent a moment ago and the server has not cleared away yet. The next poll finds one that came out of order.
   */
  grow(): void {
    this.#unread.add('new');
  }

  /** Notes that the database may have more than is in memory, before what was read too. */
  reread(): void {
    this.#unread.add('new').add('retries');
    this.#readUpTo = 0n;
  }

  /** Takes the endpoint's row as it was asked for at an instant: attempts may be made by it for a while from then. */
  refresh(endpoint: Endpoint, askedAt: number): void {
    this.adopt(endpoint);
    this.#rowServesUntil = askedAt + rowServesMs;
  }

  /** Takes the endpoint's row, unless it is older than the one it has, and forgets what must not be sent any more. */
  adopt(endpoint: Endpoint): void {
    if (endpoint.revision < this.#endpoint.revision) return;
    const isMoved = endpoint.generation !== this.#endpoint.generation;
    const wasStill = this.isPaused || this.#endpoint.heldAt !== null;
    this.#endpoint = endpoint;
    // Attempts that are not recorded yet are known here only.
    if (this.#unrecorded === 0 || isMoved) this.#health = endpoint;
    if (isMoved) this.#answerMs = undefined;
    if (this.isPaused || endpoint.heldAt !== null) this.#forgetWaiting();
    if (isMoved || wasStill) this.reread();
  }

  /** What is to be read for it now, at most a number of new events. */
  wants(now: number, mostNew: number): readonly QueueRead[] {
    if (this.#endpoint.heldAt !== null || this.#unrecorded >= mostUnrecorded) return [];
    if (this.isPaused) {
      const { probeAt, probedVersion } = this.#health;
      const isDue = probeAt !== null && (probeAt <= now || probeAt > now + longestProbeWaitMs);
      const isProbing = this.#probe !== undefined || [...this.#underWay].some(({ isProbe }) => isProbe);
      return isDue && !isProbing && this.#unread.has('new') ? [{ part: 'probe', after: probedVersion, most: 1 }] : [];
    }
    // What waited while it was paused must be at the front first, or it would not come oldest first.
    if (this.#endpoint.draining || this.#endpoint.pausedAt !== null) return [];
    const slots = this.#slots(0);
    const reads: QueueRead[] = [];
    const readAhead = Math.min(slots * readAheadPerSlot, mostNew);
    if (this.#unread.has('new') && this.#new.length * 2 <= readAhead) {
      reads.push({ part: 'new', after: this.#readUpTo, most: readAhead - this.#new.length });
    }
    if (this.#unread.has('retries') && this.#retries.length * 2 <= slots) {
      reads.push({ part: 'retries', after: 0n, most: slots - this.#retries.length });
    }
    return reads;
  }

  /** The same, when it is about to be read. */
  beginReading(now: number, mostNew: number): readonly QueueRead[] {
    const reads = this.wants(now, mostNew);
    for (const { part } of reads) this.#unread.delete(part === 'retries' ? part : 'new');
    return reads;
  }

  /** Takes what was read. */
  take({ part, most }: QueueRead, deliveries: readonly LoadedDelivery[]): void {
    if (part !== 'probe' && deliveries.length >= most) this.#unread.add(part);
    // The endpoint may have been paused, or held, since this was asked for.
    if (this.#endpoint.heldAt !== null || (part === 'probe') !== this.isPaused) return;
    for (const delivery of deliveries) {
      const { version } = delivery;
      if (this.#versions.has(version)) continue;
      this.#versions.add(version);
      if (part === 'probe') this.#probe = delivery;
      else if (part === 'retries') this.#retries.push(delivery);
      else {
        this.#new.push(delivery);
        if (version > this.#readUpTo) this.#readUpTo = version;
      }
    }
  }

  /** What is tried next, if anything may be, while so many attempts of all endpoints are under way. */
  next(totalUnderWay: number): NextTry | 'nothing' | 'no shared slot' {
    if (this.#blockedBy !== undefined || performance.now() > this.#rowServesUntil) return 'nothing';
    if (this.#endpoint.heldAt !== null || this.#unrecorded >= mostUnrecorded) return 'nothing';
    if (this.isPaused) {
      const probe = this.#probe;
      this.#probe = undefined;
      return probe === undefined ? 'nothing' : this.#begin({ delivery: probe, isProbe: true });
    }
    const slots = this.#slots(totalUnderWay);
    const retries = [...this.#underWay].filter(({ delivery, isProbe }) => delivery.queue === 2 && !isProbe).length;
    // At least half of the slots are for new events.
    const mayRetry = this.#retries.length > 0 && retries < Math.max(1, Math.floor(slots / 2));
    if (this.#underWay.size >= slots || (this.#new.length === 0 && !mayRetry)) return 'nothing';
    if (totalUnderWay >= (this.#answerMs === undefined ? mostUnproven : mostUnderWay)) return 'no shared slot';
    // A retry goes first when none is under way, so that a stream of new events does not keep retries back for ever.
    const isRetry = mayRetry && (this.#new.length === 0 || (retries === 0 && this.#underWay.size > 0));
    const delivery = isRetry ? this.#retries.shift() : this.#new.shift();
    return delivery === undefined ? 'nothing' : this.#begin({ delivery, isProbe: false });
  }

  /** Begins nothing more until an attempt is unblocked: a later one could arrive before it. */
  block(next: NextTry): void {
    this.#blockedBy = next;
  }

  /** Answers whether the attempt blocked others. */
  unblock(next: NextTry): boolean {
    if (this.#blockedBy !== next) return false;
    this.#blockedBy = undefined;
    return true;
  }

  /** Takes the end of an attempt, made to a generation of the endpoint, which is still to be recorded. */
  ended(next: NextTry, attempt: Attempt, generation: number): void {
    this.#underWay.delete(next);
    this.#unrecorded += 1;
    if (generation !== this.#endpoint.generation) return;
    const { outcome, durationMs } = attempt;
    this.#health = healthAfter(this.#health, attempt);
    if (outcome === 'endpoint-failed') this.#answerMs = undefined;
    if (outcome === 'delivered') this.#answerMs = Math.min(durationMs, (this.#answerMs ?? durationMs) * 1.02 + 0.1);
    if (this.isPaused) this.#forgetWaiting();
  }

  /** Takes that attempts were recorded, and the endpoint's row as it is since. */
  recorded(versions: readonly bigint[], endpoint: Endpoint): void {
    for (const version of versions) this.#versions.delete(version);
    this.#unrecorded -= versions.length;
    this.adopt(endpoint.revision < this.#endpoint.revision ? this.#endpoint : endpoint);
  }

  /** How many attempts may be under way. Each failure in a row takes one slot, so that an endpoint that hangs gets no more. */
  #slots(totalUnderWay: number): number {
    if (this.#answerMs === undefined) return firstSlots - this.#health.streak;
    const needed = Math.ceil((deliveriesPerSecond * this.#answerMs) / 1_000);
    return totalUnderWay < crowdedFrom ? Math.min(Math.max(needed, firstSlots), mostSlots) : firstSlots;
  }

  #begin(next: NextTry): NextTry {
    this.#underWay.add(next);
    return next;
  }

  #forgetWaiting(): void {
    const waiting = [...this.#new, ...this.#retries];
    this.#new = [];
    this.#retries = [];
    if (this.#probe !== undefined && (!this.isPaused || this.#endpoint.heldAt !== null)) {
      waiting.push(this.#probe);
      this.#probe = undefined;
    }
    for (const { version } of waiting) this.#versions.delete(version);
    this.reread();
  }
}
