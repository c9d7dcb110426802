import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Rate } from '../../src/limits/bucket.ts';
import { SharedBuckets } from '../../src/limits/shared-buckets.ts';
import type { Participant } from '../../src/limits/sharing.ts';

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

/** A time of its own and a board in it: replicas whose words take a while, who die, freeze and lose each other. */
class World {
  now = 0;
  readonly #events: { at: number; run: () => void }[] = [];
  readonly entries = new Map<string, { revision: number; text: string }>();
  #revision = 0;
  createdAt = -60_000;
  readonly replicas: Replica[] = [];
  messages = 0;

  constructor(readonly random: () => number) {}

  at(at: number, run: () => void): void {
    const event = { at: Math.max(at, this.now), run };
    const next = this.#events.findIndex((each) => each.at > event.at);
    this.#events.splice(next === -1 ? this.#events.length : next, 0, event);
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

  /** What the board does with a word, after its way there and before its way back. */
  ask<T>(replica: Replica, work: () => T): Promise<T> {
    this.messages += 1;
    const way = () => 0.1 + this.random() * 2;
    return new Promise((resolve) => {
      this.at(this.now + way(), () => {
        const answer = work();
        replica.later(way(), () => resolve(answer));
      });
    });
  }

  write(key: string, text: string, revision: number): number | undefined {
    if ((this.entries.get(key)?.revision ?? 0) !== revision) return undefined;
    this.#revision += 1;
    this.entries.set(key, { revision: this.#revision, text });
    return this.#revision;
  }
}

class Replica {
  isShared = true;
  losses = 0;
  lostAt = Number.NEGATIVE_INFINITY;
  readonly #offset: number;
  readonly #lead: number;
  #frozenUntil = 0;
  participant: Participant | undefined;
  readonly buckets: SharedBuckets;

  constructor(
    readonly world: World,
    readonly name: string,
  ) {
    this.#offset = world.random() * 1e6;
    this.#lead = world.random() * 3;
    world.replicas.push(this);
    const replica = this;
    const board = {
      replica: name,
      keptMs: 600_000,
      get replicas() {
        return world.replicas.length;
      },
      get createdAt() {
        return world.createdAt;
      },
      get serverTime() {
        return { atLeast: world.now - replica.#lead, atMost: world.now + 3 - replica.#lead };
      },
      readText: (key: string) =>
        world.ask(replica, () => {
          const { revision, text } = world.entries.get(key) ?? { revision: 0, text: undefined };
          return { revision, text };
        }),
      writeText: (key: string, text: string, revision: number) =>
        world.ask(replica, () => world.write(key, text, revision)),
      ask: async (others: readonly string[], key: string) => {
        for (const other of world.replicas.filter((each) => others.includes(each.name) && !each.isFrozen)) {
          await world.ask(replica, () => {});
          await other.participant?.asked(key);
        }
      },
    };
    this.buckets = new SharedBuckets(
      {
        board,
        get isShared() {
          return replica.isShared;
        },
        get losses() {
          return replica.losses;
        },
        get lostAt() {
          return replica.isShared ? replica.now : replica.lostAt;
        },
        isStarting: false,
        isFirst: false,
        started: async () => {},
        fail: (error) => {
          throw error;
        },
        add: (participant: Participant) => {
          this.participant = participant;
        },
      },
      { now: () => this.now, wait: (ms) => new Promise((resolve) => this.later(ms, () => resolve(undefined))) },
    );
  }

  get now(): number {
    return this.world.now + this.#offset;
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

  lose(): void {
    if (this.isShared) this.lostAt = this.now;
    this.losses += 1;
    this.isShared = false;
    this.participant?.lost();
  }

  async join(): Promise<void> {
    await this.participant?.writeOwn();
    await new Promise<void>((resolve) => this.later(1_500, resolve));
    await this.participant?.writeOwn();
    this.isShared = true;
  }
}

const usual: Rate = { perSecond: 20, burst: 40 };

/** Sends requests at random moments to replicas that are chosen by `pick`, and answers when those that passed did. */
function hammer(world: World, rate: Rate, perSecond: number, ms: number, pick: (now: number) => Replica | undefined) {
  const granted: number[] = [];
  const refused: number[] = [];
  const from = world.now;
  const one = async () => {
    const replica = pick(world.now);
    if (replica === undefined || replica.isFrozen) return;
    const isGranted = await replica.buckets.take('p', rate);
    (isGranted ? granted : refused).push(world.now);
  };
  for (let at = from; at < from + ms; at += (-Math.log(1 - world.random()) * 1_000) / perSecond) {
    world.at(at, () => void one());
  }
  return { granted, refused };
}

/**
 * Sends few requests, so that the bucket is full and replicas hold some of it, and now and then very many at once, twice
 * within a second.
 */
function surge(world: World, rate: Rate, ms: number, pick: () => Replica | undefined) {
  const from = world.now;
  const load = hammer(world, rate, rate.perSecond / 2, ms, pick);
  const waves: number[] = [];
  for (let at = from + 500; at < from + ms; at += 3_000 + world.random() * 2_000) waves.push(at);
  for (const at of waves.flatMap((first) => [first, first + 300 + world.random() * 600])) {
    world.at(at, () => {
      const wave = hammer(world, rate, 4_000, 60, pick);
      world.at(at + 1_000, () => load.granted.push(...wave.granted));
    });
  }
  return { ...load, waves };
}

/** The most that passed within any second. */
function mostInASecond(times: readonly number[]): number {
  const sorted = [...times].sort((one, other) => one - other);
  let first = 0;
  let most = 0;
  for (const [last, at] of sorted.entries()) {
    while ((sorted[first] ?? at) <= at - 1_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

function worldOf(seed: number, replicas: number): World {
  const world = new World(randomFrom(seed));
  for (let count = 0; count < replicas; count += 1) new Replica(world, `r${count}`);
  return world;
}

const oneOf = (world: World) => world.replicas[Math.floor(world.random() * world.replicas.length)];
const seeds = Array.from({ length: 12 }, (_, seed) => seed + 1);

describe('buckets that replicas draw from together', () => {
  it('let a burst pass at once, on one replica or spread over three, and not one request more', async () => {
    for (const pick of ['one', 'any'] as const) {
      const world = worldOf(1, 3);
      const answers: Promise<boolean>[] = [];
      for (let count = 0; count < 60; count += 1) {
        const replica = pick === 'one' ? world.replicas[0] : world.replicas[count % 3];
        answers.push(Promise.resolve(replica?.buckets.take('p', { perSecond: 1, burst: 40 }) ?? false));
      }
      await world.run(1_000);
      assert.equal((await Promise.all(answers)).filter(Boolean).length, 40, pick);
    }
  });

  it('let the rate pass in the seconds after a burst that used all there was, on the same replica and on another', async () => {
    for (const pick of ['same', 'other'] as const) {
      const world = worldOf(1, 3);
      const [one, other] = world.replicas;
      const wave = (at: number, replica: Replica | undefined) => {
        const answers: Promise<boolean>[] = [];
        world.at(at, () => {
          for (let count = 0; count < 70; count += 1)
            answers.push(Promise.resolve(replica?.buckets.take('p', usual) ?? false));
        });
        return async () => (await Promise.all(answers)).filter(Boolean).length;
      };
      const passed = [0, 1_010, 2_020].map((at) => wave(at, pick === 'same' || at === 0 ? one : other));
      await world.run(4_000);
      const [first, ...later] = await Promise.all(passed.map((count) => count()));
      assert.equal(first, 40, pick);
      for (const count of later) assert.ok(count >= 19 && count <= 21, `${later} passed, ${pick}`);
    }
  });

  it('let the burst pass that another replica holds and does not use', async () => {
    const world = worldOf(1, 2);
    const [one, other] = world.replicas;
    const busy = hammer(world, usual, 15, 3_000, () => one);
    await world.run(3_000);
    assert.deepEqual(busy.refused, []);
    await world.run(3_500);
    const burst = hammer(world, usual, 10_000, 10, () => other);
    await world.run(4_500);
    assert.ok(burst.granted.length >= 35, `${burst.granted.length} passed`);
  });

  it('let what a replica held pass on another at once when it ended in order', async () => {
    const world = worldOf(1, 2);
    const [ending, other] = world.replicas;
    for (let count = 0; count < 4; count += 1) world.at(count * 100, () => void ending?.buckets.take('p', usual));
    await world.run(400);
    await Promise.all([ending?.buckets.leave(), world.run(500)]);
    world.replicas.shift();
    const burst = hammer(world, usual, 10_000, 10, () => other);
    await world.run(600);
    assert.ok(burst.granted.length >= 36, `${burst.granted.length} passed`);
  });

  it('let what keeps below the rate pass, whichever replicas it comes to, and mostly without asking', async () => {
    for (const count of [1, 3]) {
      const world = worldOf(2, count);
      const { granted, refused } = hammer(world, usual, 16, 30_000, () => oneOf(world));
      await world.run(31_000);
      assert.deepEqual(refused, []);
      assert.ok(world.messages < granted.length * count, `${world.messages} messages for ${granted.length} requests`);
    }
  });

  it('never let more than a burst and a rate pass in any second, and nearly all of the rate', async () => {
    for (const seed of seeds) {
      const world = worldOf(seed, 1 + (seed % 3));
      const { granted } = hammer(world, usual, 60 + seed * 30, 20_000, () => oneOf(world));
      await world.run(21_000);
      assert.ok(mostInASecond(granted) <= 60, `${mostInASecond(granted)} in a second`);
      assert.ok(granted.length <= 40 + 20 * 20, `${granted.length} in all`);
      assert.ok(granted.length >= 0.93 * (40 + 20 * 20), `${granted.length} in all`);
    }
  });

  it('never let more pass when many come at once to a full bucket of which all hold some', async () => {
    for (const seed of seeds) {
      const world = worldOf(seed, 1 + (seed % 3));
      const { granted, waves } = surge(world, usual, 20_000, () => oneOf(world));
      await world.run(22_000);
      assert.ok(mostInASecond(granted) <= 60, `${mostInASecond(granted)} in a second, seed ${seed}`);
      assert.ok(granted.length >= waves.length * 20, `${granted.length} in all`);
    }
  });

  it('keep to it for a partner with a high rate, and ask seldom', async () => {
    const world = worldOf(3, 3);
    const rate = { perSecond: 500, burst: 1_000 };
    const { granted } = hammer(world, rate, 1_500, 5_000, () => oneOf(world));
    await world.run(6_000);
    assert.ok(mostInASecond(granted) <= 1_500, `${mostInASecond(granted)} in a second`);
    assert.ok(granted.length >= 0.93 * (1_000 + 500 * 5), `${granted.length} in all`);
  });

  it('never let more pass when replicas die or freeze, and the rest goes on', async () => {
    for (const seed of seeds) {
      const world = worldOf(seed, 3);
      const [dying, freezing] = world.replicas;
      const { granted, waves } = surge(world, usual, 20_000, () => oneOf(world));
      const steady = hammer(world, usual, 5 + seed * 3, 20_000, () => oneOf(world));
      world.at(5_000 + seed * 50, () => void dying?.freeze(1e9));
      // It stands still with what it holds, and goes on while many come.
      for (const at of waves) world.at(at - seed * 400, () => freezing?.freeze(seed * 400 + 10));
      await world.run(22_000);
      granted.push(...steady.granted);
      assert.ok(mostInASecond(granted) <= 60, `${mostInASecond(granted)} in a second, seed ${seed}`);
      assert.ok(granted.filter((at) => at > 10_000).length >= 100, `${granted.length} in all`);
    }
  });

  it('never let more pass while the board is away and after it is back, with its store or without', async () => {
    for (const seed of seeds) {
      const world = worldOf(seed, 3);
      const { granted, waves } = surge(world, usual, 30_000, () => oneOf(world));
      const [, lostAt = 0, , lostAgainAt = 0] = waves;
      for (const at of [lostAt + 20 + seed * 50, lostAgainAt - 20]) {
        world.at(at, () => {
          for (const replica of world.replicas) replica.lose();
        });
        world.at(at + 10 + seed * 400, () => {
          if (seed % 2 === 0) {
            world.entries.clear();
            world.createdAt = world.now;
          }
          for (const replica of world.replicas) replica.later(world.random() * 5, () => void replica.join());
        });
      }
      await world.run(32_000);
      assert.ok(mostInASecond(granted) <= 60, `${mostInASecond(granted)} in a second, seed ${seed}`);
      assert.ok(granted.filter((at) => at > lostAt && at < lostAgainAt).length >= 50, 'it went on');
    }
  });

  it('let steady requests pass while the board goes away and comes back', async () => {
    const world = worldOf(4, 3);
    const { refused } = hammer(world, usual, 8, 20_000, () => oneOf(world));
    world.at(8_000, () => {
      for (const replica of world.replicas) replica.lose();
    });
    world.at(12_000, () => {
      for (const replica of world.replicas) void replica.join();
    });
    await world.run(21_000);
    assert.ok(refused.length <= 1, `${refused.length} were refused`);
  });
});
