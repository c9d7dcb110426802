import { UntrustedEntryError } from '../../src/gateway/edge/limits/sealed-entry.ts';
import type { Rate } from '../../src/gateway/edge/limits/shared-buckets.ts';
import { SharedBuckets } from '../../src/gateway/edge/limits/shared-buckets.ts';
import { SharedSlots } from '../../src/gateway/edge/limits/shared-slots.ts';
import { Sharing, type SharingParts } from '../../src/gateway/edge/limits/sharing.ts';
import { createLogger } from '../../src/kit/log.ts';

type Nats = SharingParts['nats'];
type Store = SharingParts['store'];

const log = createLogger({ name: 'model', level: 'silent' });
const timeoutMs = 500;

/** Numbers that look random and are the same in every run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A time of its own and a NATS in it: messages take a while, and replicas die, freeze and lose each other. */
export class World {
  now = -2_000;
  /** When the store was made. */
  createdAt = -60_000;
  messages = 0;
  isUp = true;
  readonly entries = new Map<string, { revision: number; value: unknown }>();
  readonly replicas: Replica[] = [];
  readonly random: () => number;
  #revision = 0;
  readonly #events: { at: number; run: () => void }[] = [];

  private constructor(seed: number) {
    this.random = randomFrom(seed);
  }

  /** A world at time 0, in which so many replicas count together. */
  static async of(seed: number, replicas: number): Promise<World> {
    const world = new World(seed);
    for (let count = 0; count < replicas; count += 1) new Replica(world, `r${count}`);
    await world.run(0);
    world.messages = 0;
    return world;
  }

  at(at: number, run: () => void): void {
    const event = { at: Math.max(at, this.now), run };
    const next = this.#events.findLastIndex((each) => each.at <= event.at);
    this.#events.splice(next + 1, 0, event);
  }

  async run(untilMs: number): Promise<void> {
    await new Promise(setImmediate);
    for (let next = this.#events[0]; next !== undefined && next.at <= untilMs; next = this.#events[0]) {
      this.#events.shift();
      this.now = next.at;
      next.run();
      await new Promise(setImmediate);
    }
    this.now = untilMs;
  }

  /** How long a message takes. */
  way(): number {
    return 0.1 + this.random() * 2;
  }

  write(key: string, value: unknown, revision: number): number | undefined {
    if ((this.entries.get(key)?.revision ?? 0) !== revision) return undefined;
    this.#revision += 1;
    this.entries.set(key, { revision: this.#revision, value: JSON.parse(JSON.stringify(value)) });
    return this.#revision;
  }

  /** NATS goes away. */
  stopNats(): void {
    this.isUp = false;
    for (const replica of this.replicas) replica.later(0, () => replica.connect(false));
  }

  /** It is back, with what it had or empty, and all replicas find it within 150 ms, as clients do that try every 100 to 150 ms. */
  startNats({ empty }: { empty: boolean }): void {
    this.isUp = true;
    if (empty) {
      this.entries.clear();
      this.createdAt = this.now;
    }
    for (const replica of this.replicas) replica.later(this.random() * 150, () => replica.connect(true));
  }

  oneReplica(): Replica | undefined {
    return this.replicas[Math.floor(this.random() * this.replicas.length)];
  }
}

export class Replica {
  readonly sharing: Sharing;
  readonly buckets: SharedBuckets;
  readonly slots: SharedSlots;
  readonly #offset: number;
  readonly #lead: number;
  readonly #subscriptions = new Map<string, Parameters<Nats['subscribe']>[1]>();
  readonly #watchers: ((isConnected: boolean) => void)[] = [];
  #isConnected = false;
  #frozenUntil = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly world: World,
    readonly name: string,
  ) {
    this.#offset = 1e6 + world.random() * 1e6;
    this.#lead = world.random() * 3;
    world.replicas.push(this);
    const time = {
      now: () => this.world.now + this.#offset,
      wait: (ms: number) => new Promise<void>((resolve) => this.later(ms, resolve)),
    };
    const distrust = () => {};
    const parts = { nats: this.#nats(), store: this.#store(), distrust, log, prefix: '', replica: name };
    this.sharing = new Sharing(parts, undefined, time);
    this.buckets = new SharedBuckets(this.sharing);
    this.slots = new SharedSlots(this.sharing);
    this.sharing.start();
    this.connect(true);
  }

  get isFrozen(): boolean {
    return this.world.now < this.#frozenUntil;
  }

  freeze(ms: number): void {
    this.#frozenUntil = this.world.now + ms;
  }

  later(ms: number, run: () => void): void {
    this.world.at(this.world.now + ms, () => (this.isFrozen ? this.world.at(this.#frozenUntil, run) : run()));
  }

  connect(isConnected: boolean): void {
    this.#isConnected = isConnected;
    for (const watch of this.#watchers) watch(isConnected);
  }

  /** Ends in order. */
  async leave(): Promise<void> {
    await this.sharing.close();
    this.#subscriptions.clear();
    this.world.replicas.splice(this.world.replicas.indexOf(this), 1);
  }

  /** Publishes a message to all replicas, with itself. */
  sendToAll(subject: string, text: string): void {
    const { isUp, replicas } = this.world;
    if (this.#isConnected && isUp) for (const each of replicas) each.#receive(subject, text, () => {});
  }

  #nats(): Nats {
    const { world } = this;
    return {
      subscribe: (subject, receive) => void this.#subscriptions.set(subject, receive),
      onChange: (watcher) => void this.#watchers.push(watcher),
      publish: (subject, text = '') => this.sendToAll(subject, text),
      ask: (subject, text) => {
        world.messages += 1;
        return new Promise((resolve) => {
          this.later(250, resolve);
          const target = world.replicas.find((each) => each.#subscriptions.has(subject));
          if (target === undefined) this.later(world.way(), resolve);
          else target.#receive(subject, text, () => this.later(world.way(), resolve));
        });
      },
      flush: async () => {},
    };
  }

  #receive(subject: string, text: string, respond: () => void): void {
    const message = { respond } as unknown as Parameters<Parameters<Nats['subscribe']>[1]>[1];
    this.later(this.world.way(), () => this.#isConnected && this.#subscriptions.get(subject)?.(text, message));
  }

  #store(): Store {
    const { world } = this;
    const replica = this;
    return {
      get createdAt() {
        return world.createdAt;
      },
      get now() {
        return { atLeast: world.now - replica.#lead, atMost: world.now + 3 - replica.#lead };
      },
      open: () => this.#request(() => world.now - world.createdAt),
      readClock: () => this.#request(() => world.now),
      read: (key) => this.#request(() => world.entries.get(key) ?? { revision: 0, value: undefined }),
      untrusted: (reason, revision) => new UntrustedEntryError(reason, revision),
      write: (key, { value, revision }) => this.#request(() => world.write(key, value, revision)),
    };
  }

  /** Carries a request out in the store, after its way there and before its way back. */
  #request<T>(work: () => T): Promise<T> {
    const { world } = this;
    world.messages += 1;
    return new Promise((resolve, reject) => {
      this.later(timeoutMs, () => reject(new Error('timeout')));
      world.at(world.now + world.way(), () => {
        if (!world.isUp || !this.#isConnected) return;
        const answer = work();
        this.later(world.way(), () => resolve(answer));
      });
    });
  }
}

/** When requests passed, when they were refused, and how long they waited for that. */
export interface Load {
  readonly granted: number[];
  readonly refused: number[];
  readonly waitsMs: number[];
}

/** Sends requests at random moments to replicas that are chosen by `pick`. */
export function hammer(
  world: World,
  rate: Rate,
  perSecond: number,
  ms: number,
  pick: () => Replica | undefined,
  load: Load = { granted: [], refused: [], waitsMs: [] },
): Load {
  const one = async () => {
    const replica = pick();
    if (replica === undefined || replica.isFrozen) return;
    const sentAt = world.now;
    const isGranted = await replica.buckets.take('p', rate);
    load.waitsMs.push(world.now - sentAt);
    (isGranted ? load.granted : load.refused).push(world.now);
  };
  for (let at = world.now; at < world.now + ms; at += (-Math.log(1 - world.random()) * 1_000) / perSecond) {
    world.at(at, () => void one());
  }
  return load;
}

/**
 * Sends few requests, so that the bucket is full and replicas hold some of it, and now and then very many at once, twice
 * within a second. Answers with when the first of them were sent, too.
 */
export function surge(world: World, rate: Rate, ms: number, pick: () => Replica | undefined) {
  const from = world.now;
  const load = hammer(world, rate, rate.perSecond / 2, ms, pick);
  const waves: number[] = [];
  for (let at = from + 500; at < from + ms; at += 3_000 + world.random() * 2_000) waves.push(at);
  for (const at of waves.flatMap((first) => [first, first + 300 + world.random() * 600])) {
    world.at(at, () => void hammer(world, rate, 4_000, 60, pick, load));
  }
  return { ...load, waves };
}

/** The most that passed within any second. */
export function mostInASecond(times: readonly number[]): number {
  const sorted = times.toSorted((one, other) => one - other);
  let first = 0;
  let most = 0;
  for (const [last, at] of sorted.entries()) {
    while ((sorted[first] ?? at) <= at - 1_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** How many passed at most, over any time, beyond what one bucket would have let pass. */
export function mostBeyond(times: readonly number[], { perSecond, burst }: Rate): number {
  let level = burst;
  let before = Number.NEGATIVE_INFINITY;
  let most = 0;
  for (const at of times.toSorted((one, other) => one - other)) {
    level = Math.min(burst, level + ((at - before) * perSecond) / 1_000) - 1;
    before = at;
    most = Math.max(most, -level);
  }
  return most;
}
