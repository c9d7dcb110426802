import type { Delivery } from './delivery-store.ts';
import type { StoredEndpoint } from './endpoint-store.ts';
import {
  answerMsAfter,
  firstWindow,
  hasOwnPlace,
  hasRetryPlace,
  hasSharedPlace,
  type LaneLoad,
  placesOf,
  type TotalLoad,
  windowAfter,
} from './places.ts';
import { type EndedAttempt, type Health, healthAfter, longestProbeWaitMs, rowServesMs } from './rules.ts';

/** How many attempts of an endpoint may have ended without being recorded before no more are begun. */
const mostUnrecorded = 512;
/** How long an endpoint whose secret cannot be opened is left alone. */
const restMs = 60_000;
/** How many deliveries wait in memory for each place. */
const readyPerPlace = 4;

/** A delivery that is about to be tried. */
export interface NextTry {
  readonly delivery: Delivery;
  readonly isProbe: boolean;
}

/**
 * An endpoint this process sends to: what waits for it in memory, how much is under way, and how it fares. It decides
 * what is tried next and does nothing itself.
 */
export class Lane {
  /** Whether there may be more in the database than is in memory: to be sent at once, or again. */
  mayHaveMore = { fresh: true, retries: true };
  /** Whether its queue is being read. */
  isLoading = false;
  /** Since when there was nothing to do, on a clock that never goes back; undefined while there is. */
  idleSince: number | undefined;
  #endpoint: StoredEndpoint;
  #health: Health;
  #fresh: Delivery[] = [];
  #retries: Delivery[] = [];
  #probe: Delivery | undefined;
  /** Versions that wait here, are under way or are not recorded yet: not to be read again. */
  readonly #known = new Set<bigint>();
  #readUpTo = 0n;
  #restsUntil = 0;
  #rowServesUntil: number;
  #window = firstWindow;
  /** How long it takes for an answer; nothing is known of a new one. */
  #answerMs = Number.POSITIVE_INFINITY;
  #underWay = 0;
  #retriesUnderWay = 0;
  #probesUnderWay = 0;
  #unrecorded = 0;
  #isProven = false;
  /** An attempt that others would overtake. */
  #ahead: NextTry | undefined;

  /** `askedAt`: when the row was asked for, on a clock that never goes back. */
  constructor(endpoint: StoredEndpoint, askedAt: number) {
    this.#endpoint = endpoint;
    this.#health = endpoint.health;
    this.#rowServesUntil = askedAt + rowServesMs;
  }

  get partnerId(): string {
    return this.#endpoint.partnerId;
  }

  get endpoint(): StoredEndpoint {
    return this.#endpoint;
  }

  get health(): Health {
    return this.#health;
  }

  /** Versions that are not to be read again. */
  get known(): readonly bigint[] {
    return [...this.#known];
  }

  /** The version after which new events are read; those before it have been. */
  get readUpTo(): bigint {
    return this.#readUpTo;
  }

  get isPaused(): boolean {
    return this.#health.pausedAt !== null;
  }

  /** Whether nothing of it is in memory. */
  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  /** The instant since which the oldest in memory could be sent; undefined when nothing waits. */
  get oldestDue(): number | undefined {
    const [fresh, retry] = [this.#fresh[0]?.dueSince, this.#retries[0]?.dueSince];
    return fresh === undefined ? retry : Math.min(fresh, retry ?? fresh);
  }

  /** Takes that the database may have more for it than is in memory, before what was read too. */
  stir(): void {
    this.mayHaveMore = { fresh: true, retries: true };
    this.#readUpTo = 0n;
  }

  /**
   * Takes that new events have come. They are read from where reading stopped: from the start, each reading would pass
   * what was sent a moment ago and the server has not cleared away yet. One that came out of order is found by the next
   * look at all.
   */
  grow(): void {
    this.mayHaveMore.fresh = true;
  }

  /** Takes that the row it has is at least as new as one that was asked for at an instant: it serves on from then. */
  confirm(askedAt: number): void {
    this.#rowServesUntil = askedAt + rowServesMs;
  }

  /**
   * Takes the endpoint's row, unless it was read before the one it has. What waits here is forgotten when it must not be
   * sent any more.
   */
  adopt(endpoint: StoredEndpoint): void {
    if (endpoint.revision < this.#endpoint.revision) return;
    const isMoved = endpoint.generation !== this.#endpoint.generation;
    const wasStill = this.isPaused || this.#endpoint.heldAt !== null;
    this.#endpoint = endpoint;
    // Attempts that are not recorded yet are known here only.
    if (this.#unrecorded === 0) this.#health = endpoint.health;
    if (isMoved) {
      this.#window = firstWindow;
      this.#answerMs = Number.POSITIVE_INFINITY;
      this.#isProven = false;
      this.#health = endpoint.health;
    }
    if (this.isPaused || endpoint.heldAt !== null) this.#forgetWaiting();
    if (isMoved || wasStill) this.stir();
  }

  /** What is to be read for it now, and how much, at most its share; undefined when nothing is. */
  wants(
    now: number,
    share: number,
  ): { kind: 'probe' } | { kind: 'waiting'; fresh: number; retries: number } | undefined {
    const { fresh: mayHaveFresh, retries: mayHaveRetries } = this.mayHaveMore;
    if (this.isLoading || this.#endpoint.heldAt !== null || performance.now() < this.#restsUntil) return undefined;
    if (this.#unrecorded >= mostUnrecorded) return undefined;
    // What is to be moved to the front must be there before anything is read, or it would not come oldest first. That it
    // is to be moved is stored with the attempt that ended the pause.
    const isResumed = this.#endpoint.draining || this.#endpoint.health.pausedAt !== null;
    if (isResumed && !this.isPaused) return undefined;
    if (this.isPaused) {
      const { probeAt } = this.#health;
      const isDue = probeAt !== null && (probeAt <= now || probeAt > now + longestProbeWaitMs);
      const isFree = this.#probe === undefined && this.#probesUnderWay === 0;
      return isDue && isFree && mayHaveFresh ? { kind: 'probe' } : undefined;
    }
    const places = placesOf(this.#load());
    const most = Math.min(places * readyPerPlace, share);
    const fresh = mayHaveFresh && this.#fresh.length * 2 <= most ? most - this.#fresh.length : 0;
    const retries = mayHaveRetries && this.#retries.length * 2 <= places ? places - this.#retries.length : 0;
    return fresh + retries > 0 ? { kind: 'waiting', fresh, retries } : undefined;
  }

  /** Takes what was read. */
  take(deliveries: readonly Delivery[], isProbe: boolean): void {
    // The endpoint may have been paused, or held, since it was asked for.
    if (this.#endpoint.heldAt !== null || isProbe !== this.isPaused) return;
    for (const delivery of deliveries) {
      if (this.#known.has(delivery.version)) continue;
      this.#known.add(delivery.version);
      if (isProbe) this.#probe = delivery;
      else if (delivery.isRetry) this.#retries.push(delivery);
      else {
        this.#fresh.push(delivery);
        if (delivery.version > this.#readUpTo) this.#readUpTo = delivery.version;
      }
    }
  }

  /** What is tried next, if anything may be: it counts as under way from here on. */
  next(total: TotalLoad): NextTry | 'nothing' | 'no shared place' {
    const load = this.#load();
    if (this.#ahead !== undefined || performance.now() > this.#rowServesUntil) return 'nothing';
    if (this.#endpoint.heldAt !== null || this.#unrecorded >= mostUnrecorded) return 'nothing';
    if (this.isPaused) {
      const probe = this.#probe;
      if (probe === undefined) return 'nothing';
      this.#probe = undefined;
      this.#probesUnderWay += 1;
      this.#underWay += 1;
      return { delivery: probe, isProbe: true };
    }
    const mayRetry = this.#retries.length > 0 && hasRetryPlace(load, total);
    if (!hasOwnPlace(load, total) || (this.#fresh.length === 0 && !mayRetry)) return 'nothing';
    if (!hasSharedPlace(load, total)) return 'no shared place';
    // A retry goes first where none is under way, so that a stream of new events does not keep retries back for ever.
    const isRetry = mayRetry && (this.#fresh.length === 0 || load.retriesUnderWay === 0) && load.underWay > 0;
    const delivery = isRetry || this.#fresh.length === 0 ? this.#retries.shift() : this.#fresh.shift();
    if (delivery === undefined) return 'nothing';
    this.#underWay += 1;
    if (delivery.isRetry) this.#retriesUnderWay += 1;
    return { delivery, isProbe: false };
  }

  /** Takes that an attempt goes ahead: until told otherwise, no other is begun, or it could arrive first. */
  letAhead(next: NextTry): void {
    this.#ahead = next;
  }

  /** Takes that an attempt is ahead of all others, or was waited for long enough. Answers whether it was waited for. */
  isAhead(next: NextTry): boolean {
    if (this.#ahead !== next) return false;
    this.#ahead = undefined;
    return true;
  }

  /** Takes the end of an attempt, which is still to be recorded. */
  end({ delivery, isProbe }: NextTry, attempt: EndedAttempt & { durationMs: number }, generation: number): void {
    this.#underWay -= 1;
    if (isProbe) this.#probesUnderWay -= 1;
    else if (delivery.isRetry) this.#retriesUnderWay -= 1;
    this.#unrecorded += 1;
    if (generation !== this.#endpoint.generation) return;
    this.#health = healthAfter(this.#health, attempt);
    if (attempt.outcome !== 'event-failed') {
      this.#isProven = attempt.outcome === 'delivered';
      if (this.#isProven) this.#answerMs = answerMsAfter(this.#answerMs, attempt.durationMs);
      this.#window = windowAfter(this.#window, this.#isProven);
    }
    if (this.isPaused) this.#forgetWaiting();
  }

  /** Takes that attempts were recorded, and the endpoint's row as it is since. */
  recorded(versions: readonly bigint[], endpoint: StoredEndpoint): void {
    for (const version of versions) this.#known.delete(version);
    this.#unrecorded -= versions.length;
    this.adopt(endpoint.revision < this.#endpoint.revision ? this.#endpoint : endpoint);
  }

  /** Takes that a delivery is not tried after all. It stays known, so that it is not read again and again. */
  pass({ delivery, isProbe }: NextTry): void {
    this.#underWay -= 1;
    if (isProbe) this.#probesUnderWay -= 1;
    else if (delivery.isRetry) this.#retriesUnderWay -= 1;
  }

  /** Stops for a while, because nothing can be sent to it now, and forgets what was about to be. */
  rest({ delivery }: NextTry): void {
    this.#restsUntil = performance.now() + restMs;
    this.#known.delete(delivery.version);
    this.#forgetWaiting();
  }

  #load(): LaneLoad {
    return {
      window: this.#window,
      answerMs: this.#answerMs,
      underWay: this.#underWay,
      retriesUnderWay: this.#retriesUnderWay,
      isProven: this.#isProven,
    };
  }

  #forgetWaiting(): void {
    for (const { version } of [...this.#fresh, ...this.#retries]) this.#known.delete(version);
    this.#fresh = [];
    this.#retries = [];
    if (this.#probe !== undefined && (!this.isPaused || this.#endpoint.heldAt !== null)) {
      this.#known.delete(this.#probe.version);
      this.#probe = undefined;
    }
    this.stir();
  }
}
