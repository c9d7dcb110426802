import { type EndpointHealth, healthAfter, longestProbeWaitMs, rowServesMs } from '../rules.ts';
import type { Attempt, Endpoint } from '../table.ts';
import type { LoadedDelivery, QueueRead } from './queue-store.ts';

/** A delivery that is about to be tried. */
export interface NextTry {
  readonly delivery: LoadedDelivery;
  readonly isProbe: boolean;
}

/** Attempts of a process in progress at once. */
const maxUnderWay = 1_024;
/** Above this number, attempts begin only for endpoints whose last attempt was delivered, because others may all hang. */
const maxUnproven = 768;
/** Above this number, every endpoint has only its first slots. */
const crowdedFrom = 512;
/** Concurrent attempts of one endpoint: at first, and at most if it answers slowly. */
export const firstSlots = 4;
export const maxSlots = 16;
/** A healthy endpoint gets the slots for this rate, but not fewer than at first. */
const deliveriesPerSecond = 200;
/** New events of an endpoint in memory. With fewer, most of a read is the cost of its statement. */
const readAheadCount = 64;
/** An endpoint with so many unrecorded attempts begins no more. */
const maxUnrecorded = 512;

/** The queue of an endpoint of this process: events, attempts in progress, health. Decides what is tried next. No I/O. */
export class EndpointQueue {
  isLoading = false;
  /** The start of its idle time, on a monotonic clock; undefined while it has work. */
  idleSince: number | undefined;
  #endpoint: Endpoint;
  #health: EndpointHealth;
  /** The parts of which the database may have more than is in memory. */
  readonly #unread = new Set<'new' | 'retries'>(['new', 'retries']);
  #new: LoadedDelivery[] = [];
  #retries: LoadedDelivery[] = [];
  #probe: LoadedDelivery | undefined;
  readonly #versions = new Set<bigint>();
  /** New events are read after this version. */
  #readUpTo = 0n;
  /** Whether the read in progress may lack older events, because `reread` was called after it began. */
  #mustReread = false;
  #rowServesUntil: number;
  readonly #underWay = new Set<NextTry>();
  #unrecorded = 0;
  /** Response time without queueing: a slowly growing minimum. Undefined unless the last attempt was delivered. */
  #answerMs: number | undefined;
  /** Whether it answered the last attempt, with a status that is about the event. */
  #isAnswering = false;
  /** The attempt that a later one could overtake. */
  #blockedBy: NextTry | undefined;

  /** `askedAt`: when the query for the row began, on a monotonic clock. */
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

  /** The health after all attempts that ended, recorded or not. */
  get health(): EndpointHealth {
    return this.#health;
  }

  get isPaused(): boolean {
    return this.#health.pausedAt !== null;
  }

  /** Whether a pause has ended, so that retries must be moved to the front before anything is read. */
  get mustDrain(): boolean {
    return this.#endpoint.draining && !this.isPaused;
  }

  /** Versions in memory, in progress or not yet recorded: not to be read again. */
  get versions(): ReadonlySet<bigint> {
    return this.#versions;
  }

  /** When the oldest event in memory became due; undefined if none waits. */
  get oldestDue(): number | undefined {
    const instants = [this.#new[0], this.#retries[0]].flatMap((first) => (first ? [first.dueAt ?? first.takenAt] : []));
    return instants.length === 0 ? undefined : Math.min(...instants);
  }

  /** Notes new events. Reading goes on after the last version, past unpurged rows. The poll finds events out of order. */
  grow(): void {
    this.#unread.add('new');
  }

  /** Notes that the database may have more than is in memory, also before the last version read. */
  reread(): void {
    this.#unread.add('new').add('retries');
    this.#readUpTo = 0n;
    this.#mustReread = true;
  }

  /** Adopts the row of a query that began at `askedAt`. Attempts may use it for `rowServesMs` from then. */
  refresh(endpoint: Endpoint, askedAt: number): void {
    this.adopt(endpoint);
    this.#rowServesUntil = askedAt + rowServesMs;
  }

  /** Adopts the row unless it is older than the present one, and drops events that must not be sent any more. */
  adopt(endpoint: Endpoint): void {
    if (endpoint.revision < this.#endpoint.revision) return;
    const isMoved = endpoint.generation !== this.#endpoint.generation;
    const wasStill = this.isPaused || this.#endpoint.heldAt !== null;
    this.#endpoint = endpoint;
    // Only this process knows the attempts that are not recorded yet.
    if (this.#unrecorded === 0 || isMoved) this.#health = endpoint;
    if (isMoved) {
      this.#answerMs = undefined;
      this.#isAnswering = false;
    }
    if (this.isPaused || endpoint.heldAt !== null) this.#forgetWaiting();
    if (isMoved || wasStill) this.reread();
  }

  /** The parts to read now, with at most `mostNew` new events. */
  wants(now: number, mostNew: number): readonly QueueRead[] {
    if (this.#endpoint.heldAt !== null || this.#unrecorded >= maxUnrecorded) return [];
    if (this.isPaused) {
      const { probeAt, probedVersion } = this.#health;
      const isDue = probeAt !== null && (probeAt <= now || probeAt > now + longestProbeWaitMs);
      const isProbing = this.#probe !== undefined || [...this.#underWay].some(({ isProbe }) => isProbe);
      return isDue && !isProbing && this.#unread.has('new') ? [{ part: 'probe', after: probedVersion, most: 1 }] : [];
    }
    // Retries from the pause must be at the front first, so that the oldest is sent first.
    if (this.#endpoint.draining || this.#endpoint.pausedAt !== null) return [];
    const slots = this.#slots(0);
    // An endpoint that may hang has enough events in memory for its next attempts.
    if (!this.#isAnswering && this.#underWay.size >= slots && this.#new.length >= slots) return [];
    const reads: QueueRead[] = [];
    const readAhead = Math.min(readAheadCount, mostNew);
    if (this.#unread.has('new') && this.#new.length * 2 <= readAhead) {
      reads.push({ part: 'new', after: this.#readUpTo, most: readAhead - this.#new.length });
    }
    if (this.#unread.has('retries') && this.#retries.length * 2 <= slots) {
      reads.push({ part: 'retries', after: 0n, most: slots - this.#retries.length });
    }
    return reads;
  }

  /** The same as `wants`, when the read begins. */
  beginReading(now: number, mostNew: number): readonly QueueRead[] {
    const reads = this.wants(now, mostNew);
    this.#mustReread = false;
    for (const { part } of reads) this.#unread.delete(part === 'retries' ? part : 'new');
    return reads;
  }

  take({ part, most }: QueueRead, deliveries: readonly LoadedDelivery[]): void {
    if (part !== 'probe' && deliveries.length >= most) this.#unread.add(part);
    // The endpoint may have been paused or held during the read.
    if (this.#endpoint.heldAt !== null || (part === 'probe') !== this.isPaused) return;
    for (const delivery of deliveries) {
      const { version } = delivery;
      if (this.#versions.has(version)) continue;
      this.#versions.add(version);
      if (part === 'probe') this.#probe = delivery;
      else if (part === 'retries') this.#retries.push(delivery);
      else {
        this.#new.push(delivery);
        if (version > this.#readUpTo && !this.#mustReread) this.#readUpTo = version;
      }
    }
  }

  /** The next attempt, if one may begin while `totalUnderWay` attempts of all endpoints are in progress. */
  next(totalUnderWay: number): NextTry | 'nothing' | 'no shared slot' {
    if (this.#blockedBy !== undefined || performance.now() > this.#rowServesUntil) return 'nothing';
    if (this.#endpoint.heldAt !== null || this.#unrecorded >= maxUnrecorded) return 'nothing';
    if (this.isPaused) {
      const probe = this.#probe;
      this.#probe = undefined;
      return probe === undefined ? 'nothing' : this.#begin({ delivery: probe, isProbe: true });
    }
    const slots = this.#slots(totalUnderWay);
    if (this.#underWay.size >= slots) return 'nothing';
    const retries = this.#retries.length === 0 ? 0 : this.#retriesUnderWay();
    // At least half of the slots are for new events.
    const mayRetry = this.#retries.length > 0 && retries < Math.max(1, Math.floor(slots / 2));
    if (this.#new.length === 0 && !mayRetry) return 'nothing';
    if (totalUnderWay >= (this.#answerMs === undefined ? maxUnproven : maxUnderWay)) return 'no shared slot';
    // A retry goes first if none is in progress, so that a stream of new events cannot starve retries.
    const isRetry = mayRetry && (this.#new.length === 0 || (retries === 0 && this.#underWay.size > 0));
    const delivery = isRetry ? this.#retries.shift() : this.#new.shift();
    return delivery === undefined ? 'nothing' : this.#begin({ delivery, isProbe: false });
  }

  /** Gives up an attempt that must not be made, because its event has become too old in memory. */
  drop(next: NextTry): void {
    this.#underWay.delete(next);
    this.#versions.delete(next.delivery.version);
    // Another event is the probe now.
    if (next.isProbe) this.#unread.add('new');
  }

  /** Begins nothing more until this attempt is unblocked, because a later one could arrive before it. */
  block(next: NextTry): void {
    this.#blockedBy = next;
  }

  /** Returns whether the attempt blocked others. */
  unblock(next: NextTry): boolean {
    if (this.#blockedBy !== next) return false;
    this.#blockedBy = undefined;
    return true;
  }

  /** Notes the end of an attempt to a generation of the endpoint. It is still to be recorded. */
  ended(next: NextTry, attempt: Attempt, generation: number): void {
    this.#underWay.delete(next);
    this.#unrecorded += 1;
    if (generation !== this.#endpoint.generation) return;
    const { outcome, durationMs } = attempt;
    this.#health = healthAfter(this.#health, attempt);
    this.#isAnswering = outcome !== 'endpoint-failed';
    if (!this.#isAnswering) this.#answerMs = undefined;
    if (outcome === 'delivered') this.#answerMs = Math.min(durationMs, (this.#answerMs ?? durationMs) * 1.02 + 0.1);
    if (this.isPaused) this.#forgetWaiting();
  }

  /** Notes that attempts were recorded, and adopts the endpoint's row after that. */
  recorded(versions: readonly bigint[], endpoint: Endpoint): void {
    for (const version of versions) this.#versions.delete(version);
    this.#unrecorded -= versions.length;
    this.adopt(endpoint.revision < this.#endpoint.revision ? this.#endpoint : endpoint);
  }

  /** The limit of concurrent attempts. Each failure in a row takes one away, so that an endpoint that hangs gets no more. */
  #slots(totalUnderWay: number): number {
    if (this.#answerMs === undefined) return firstSlots - this.#health.streak;
    const needed = Math.ceil((deliveriesPerSecond * this.#answerMs) / 1_000);
    return totalUnderWay < crowdedFrom ? Math.min(Math.max(needed, firstSlots), maxSlots) : firstSlots;
  }

  #retriesUnderWay(): number {
    return [...this.#underWay].filter(({ delivery, isProbe }) => delivery.queue === 2 && !isProbe).length;
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
