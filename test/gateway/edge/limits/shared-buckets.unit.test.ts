import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Rate } from '../../../../src/gateway/edge/limits/shared-buckets.ts';
import { hammer, mostBeyond, mostInASecond, type Replica, surge, World } from '../../../support/limits-model.ts';

const usual: Rate = { perSecond: 20, burst: 40 };
const seeds = Array.from({ length: 12 }, (_, seed) => seed + 1);

describe('buckets that replicas draw from together', () => {
  it('let a burst pass at once, on one replica or spread over three, and not one request more', async () => {
    for (const pick of ['one', 'any'] as const) {
      const world = await World.of(1, 3);
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
      const world = await World.of(1, 3);
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
    const world = await World.of(1, 2);
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
    const world = await World.of(1, 2);
    const [ending, other] = world.replicas;
    for (let count = 0; count < 4; count += 1) world.at(count * 100, () => void ending?.buckets.take('p', usual));
    await world.run(400);
    await Promise.all([ending?.leave(), world.run(500)]);
    const burst = hammer(world, usual, 10_000, 10, () => other);
    await world.run(600);
    assert.ok(burst.granted.length >= 36, `${burst.granted.length} passed`);
  });

  it('let what keeps below the rate pass, whichever replicas it comes to, and mostly without asking', async () => {
    for (const count of [1, 3]) {
      const world = await World.of(2, count);
      const { granted, refused } = hammer(world, usual, 16, 30_000, () => world.oneReplica());
      await world.run(31_000);
      assert.deepEqual(refused, []);
      assert.ok(world.messages < granted.length * count, `${world.messages} messages for ${granted.length} requests`);
    }
  });

  it('never let more than a burst and a rate pass in any second, and nearly all of the rate', async () => {
    for (const seed of seeds) {
      const world = await World.of(seed, 1 + (seed % 3));
      const { granted } = hammer(world, usual, 60 + seed * 30, 20_000, () => world.oneReplica());
      await world.run(21_000);
      assert.ok(mostInASecond(granted) <= 60, `${mostInASecond(granted)} in a second`);
      assert.ok(granted.length <= 40 + 20 * 20, `${granted.length} in all`);
      assert.ok(granted.length >= 0.93 * (40 + 20 * 20), `${granted.length} in all`);
    }
  });

  it('never let more pass when many come at once to a full bucket of which all hold some', async () => {
    for (const seed of seeds) {
      const world = await World.of(seed, 1 + (seed % 3));
      const { granted, waves } = surge(world, usual, 20_000, () => world.oneReplica());
      await world.run(22_000);
      assert.ok(mostInASecond(granted) <= 60, `${mostInASecond(granted)} in a second, seed ${seed}`);
      assert.ok(granted.length >= waves.length * 20, `${granted.length} in all`);
    }
  });

  it('keep to it for a partner with a high rate, and ask seldom', async () => {
    const world = await World.of(3, 3);
    const rate = { perSecond: 500, burst: 1_000 };
    const { granted } = hammer(world, rate, 1_500, 5_000, () => world.oneReplica());
    await world.run(6_000);
    assert.ok(mostInASecond(granted) <= 1_500, `${mostInASecond(granted)} in a second`);
    assert.ok(granted.length >= 0.93 * (1_000 + 500 * 5), `${granted.length} in all`);
  });

  it('never let more pass when replicas die or freeze, and the rest goes on', async () => {
    for (const seed of seeds) {
      const world = await World.of(seed, 3);
      const [dying, freezing] = world.replicas;
      const { granted, waves } = surge(world, usual, 20_000, () => world.oneReplica());
      const steady = hammer(world, usual, 5 + seed * 3, 20_000, () => world.oneReplica());
      world.at(5_000 + seed * 50, () => void dying?.freeze(1e9));
      // It stands still with what it holds, and goes on while many come.
      for (const at of waves) world.at(at - seed * 400, () => freezing?.freeze(seed * 400 + 10));
      await world.run(22_000);
      granted.push(...steady.granted);
      assert.ok(mostInASecond(granted) <= 60, `${mostInASecond(granted)} in a second, seed ${seed}`);
      assert.ok(granted.filter((at) => at > 10_000).length >= 100, `${granted.length} in all`);
    }
  });

  it('never let more pass while NATS is away and after it is back, with its store or without', async () => {
    // The first five are those in which tokens passed twice that a share gave while the others joined.
    for (const seed of [163, 259, 511, 792, 1_015, ...seeds]) {
      const world = await World.of(seed, 3);
      const { granted, waves } = surge(world, usual, 30_000, () => world.oneReplica());
      const [, lostAt = 0, , lostAgainAt = 0] = waves;
      const step = 1 + ((seed - 1) % seeds.length);
      for (const at of [lostAt + 20 + step * 50, lostAgainAt - 20]) {
        world.at(at, () => world.stopNats());
        world.at(at + 10 + step * 400, () => world.startNats({ empty: seed % 2 === 0 }));
      }
      await world.run(32_000);
      assert.ok(mostInASecond(granted) <= 60, `${mostInASecond(granted)} in a second, seed ${seed}`);
      assert.ok(mostBeyond(granted, usual) <= 5, `${mostBeyond(granted, usual)} passed twice, seed ${seed}`);
      assert.ok(granted.filter((at) => at > lostAt && at < lostAgainAt).length >= 50, 'it went on');
    }
  });

  it('let steady requests pass while NATS goes away and comes back', async () => {
    const world = await World.of(4, 3);
    const { refused, waitsMs } = hammer(world, usual, 8, 20_000, () => world.oneReplica());
    world.at(8_000, () => world.stopNats());
    world.at(12_000, () => world.startNats({ empty: false }));
    await world.run(21_000);
    assert.ok(refused.length <= 1, `${refused.length} were refused`);
    assert.ok(Math.max(...waitsMs) <= 500, `one waited ${Math.max(...waitsMs)} ms`);
  });

  it('keep no request waiting for more than a second while NATS hangs, not even while replicas join again', async () => {
    for (const seed of seeds) {
      const world = await World.of(seed, 3);
      const { granted, waitsMs } = hammer(world, usual, 12, 14_000, () => world.oneReplica());
      world.at(1_000, () => world.stopNats());
      world.at(2_000, () => world.startNats({ empty: false }));
      // Replicas begin their last write about 1.3 s after they found NATS again.
      world.at(3_250 + seed * 25, () => {
        world.isUp = false;
      });
      world.at(8_000, () => {
        world.isUp = true;
      });
      await world.run(15_000);
      assert.ok(Math.max(...waitsMs) <= 1_100, `one waited ${Math.max(...waitsMs)} ms, seed ${seed}`);
      assert.ok(
        granted.filter((at) => at > 3_600 && at < 8_000).length >= 30,
        `${granted.length} passed, seed ${seed}`,
      );
      assert.ok(mostInASecond(granted) <= 60);
    }
  });
});
