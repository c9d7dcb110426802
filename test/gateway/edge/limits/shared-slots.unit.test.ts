import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Slot } from '../../../../src/gateway/edge/limits/shared-slots.ts';
import { type Replica, World } from '../../../support/limits-model.ts';

const name = 'requests.p';

/** Acquires slots on all replicas and gives them back, again and again, and counts how many are in use. */
class Hands {
  /** How many slots are in use. */
  inUse = 0;
  /** The most that were in use since it was last asked. */
  #most = 0;

  constructor(
    private readonly world: World,
    public limit: number,
    count: number,
    pick: () => Replica | undefined,
  ) {
    for (let hand = 0; hand < count; hand += 1) this.#again(pick);
  }

  takeMost(): number {
    const most = this.#most;
    this.#most = this.inUse;
    return most;
  }

  #again(pick: () => Replica | undefined): void {
    const { world } = this;
    const replica = pick();
    const next = () => this.#again(pick);
    if (replica === undefined || replica.isFrozen) {
      world.at(world.now + 10, next);
      return;
    }
    void replica.slots.acquire(name, this.limit).then((slot) => {
      if (slot === undefined) return replica.later(world.random() * 30, next);
      this.inUse += 1;
      this.#most = Math.max(this.#most, this.inUse);
      replica.later(world.random() * 60, () => {
        this.inUse -= 1;
        slot.release();
        next();
      });
    });
  }
}

const seeds = Array.from({ length: 7 }, (_, seed) => seed + 1);

describe('slots that replicas share', () => {
  it('are never more in use than the limit, and all of them are used', async () => {
    for (const seed of seeds) {
      const limit = 1 + (seed % 7);
      const world = await World.of(seed, 1 + (seed % 3));
      const hands = new Hands(world, limit, limit * 3, () => world.oneReplica());
      await world.run(3_000);
      assert.equal(hands.takeMost(), limit, `seed ${seed}`);
    }
  });

  it("slots of a replica that died are the others' after five seconds and not before, and never are too many in use", async () => {
    for (const seed of seeds) {
      const limit = 2 + (seed % 6);
      const world = await World.of(seed, 3);
      const hands = new Hands(world, limit, limit * 3, () => world.oneReplica());
      await world.run(1_000);
      world.replicas[0]?.freeze(1e9);
      await world.run(5_000);
      assert.ok(hands.takeMost() <= limit, `seed ${seed}`);
      const lost = world.replicas.shift();
      await world.run(10_000);
      hands.takeMost();
      await world.run(12_000);
      const held = (await lost?.slots.used(name)) ?? 0;
      assert.equal(hands.takeMost() - held, limit, `seed ${seed}`);
    }
  });

  it('slots in use are written again before the store deletes what nobody writes any more', async () => {
    const world = await World.of(1, 2);
    const acquired = world.replicas[0]?.slots.acquire(name, 4);
    await world.run(1_000);
    assert.notEqual(await acquired, undefined);
    const [first, ...others] = [...world.entries.values()].map(({ revision }) => revision);
    assert.deepEqual(others, []);
    await world.run(190_000);
    assert.deepEqual(
      [...world.entries.values()].map(({ revision }) => revision),
      [first],
    );
    await world.run(210_000);
    const [{ revision, value }] = [...world.entries.values()] as [{ revision: number; value: unknown }];
    assert.ok(revision > (first ?? 0), 'it was not written again');
    assert.deepEqual(value, { r0: 1 });
  });

  it("are each replica's share while NATS is away, and no more than the limit when it is back", async () => {
    for (const seed of seeds) {
      const limit = 1 + (seed % 7);
      const world = await World.of(seed, 3);
      const hands = new Hands(world, limit, limit * 3, () => world.oneReplica());
      await world.run(1_000);
      assert.equal(hands.takeMost(), limit, `seed ${seed}`);
      world.stopNats();
      await world.run(1_100);
      const shares = 3 * Math.max(1, Math.floor(limit / 3));
      hands.takeMost();
      await world.run(3_000);
      assert.equal(hands.takeMost(), shares, `the shares of ${limit}, seed ${seed}`);
      world.startNats({ empty: seed % 2 === 0 });
      await world.run(5_500);
      hands.takeMost();
      await world.run(8_000);
      assert.equal(hands.takeMost(), limit, `seed ${seed}`);
    }
  });

  it('slots that a replica took by share alone count against what the others take when it is back', async () => {
    for (const seed of seeds) {
      const world = await World.of(seed, 2);
      const [alone, other] = world.replicas;
      const own = await Promise.all([alone?.slots.acquire(name, 4), alone?.slots.acquire(name, 4), world.run(50)]);
      alone?.connect(false);
      const ofOther = Promise.all([1, 2, 3, 4].map(() => other?.slots.acquire(name, 4)));
      // It is taken for dead.
      await world.run(7_000);
      await Promise.all([ofOther, world.run(7_010)]);
      const more = Promise.all([1, 2, 3, 4].map(() => other?.slots.acquire(name, 4)));
      await world.run(7_100);
      const got = [...(await ofOther), ...(await more)].filter((slot) => slot !== undefined);
      assert.equal(got.length, 4, `seed ${seed}`);
      alone?.connect(true);
      await world.run(10_000);
      for (const slot of got.slice(0, 2)) slot?.release();
      const tries = Promise.all([alone?.slots.acquire(name, 4), other?.slots.acquire(name, 4)]);
      await world.run(10_100);
      assert.deepEqual(await tries, [undefined, undefined], `six were in use and four are, seed ${seed}`);
      own[0]?.release();
      const next = other?.slots.acquire(name, 4);
      await world.run(10_200);
      assert.notEqual(await next, undefined, `seed ${seed}`);
    }
  });

  for (const [demand, perReplica] of [
    ['each replica has no more requests than the limit', (limit: number) => limit],
    ['each replica has many', () => 12],
  ] as const) {
    it(`are never more in use than a limit that was lowered, once as many were given back, also if ${demand}`, async () => {
      for (const seed of seeds.slice(0, 4)) {
        const limit = 1 + (seed % 4);
        const world = await World.of(seed, 1 + (seed % 3));
        const all = world.replicas.map((replica) => new Hands(world, 36, perReplica(limit), () => replica));
        await world.run(1_000);
        for (const hands of all) hands.limit = limit;
        await world.run(1_500);
        for (let now = world.now; now < 3_500; now += 1) {
          await world.run(now);
          const inUse = all.reduce((sum, hands) => sum + hands.inUse, 0);
          assert.ok(inUse <= limit, `${inUse} of ${limit} in use at ${now}, seed ${seed}`);
        }
      }
    });
  }

  it('are given out by the limit of each request, however many a replica had reserved under an earlier limit', async () => {
    for (const seed of seeds) {
      const world = await World.of(seed, 1);
      const [replica] = world.replicas;
      assert.ok(replica !== undefined);
      const inUse: Slot[] = [];
      for (let step = 0; step < 60; step += 1) {
        // An operator changes the limit, and a few requests end and begin.
        const limit = 1 + Math.floor(world.random() * 10);
        for (const slot of inUse.splice(0, Math.floor(world.random() * 6))) slot.release();
        for (let request = 0; request < 4; request += 1) {
          const asking: Promise<Slot | undefined> = replica.slots.acquire(name, limit);
          await world.run(world.now + 20);
          const slot = await asking;
          assert.equal(slot !== undefined, inUse.length < limit, `${inUse.length} of ${limit} in use, seed ${seed}`);
          if (slot !== undefined) inUse.push(slot);
        }
      }
    }
  });
});
