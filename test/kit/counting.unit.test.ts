import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { atMost } from '../../src/kit/at-most.ts';
import { Counts } from '../../src/kit/counts.ts';
import { chunksOf, groupBy } from '../../src/kit/group.ts';
import { remember } from '../../src/kit/remember.ts';

describe('the counts of open items', () => {
  it('each open item counts until it is given back, which counts once, and a name without items is forgotten', () => {
    const counts = new Counts();
    const given = ['a', 'a', 'b'].map((name) => counts.add(name));
    assert.deepEqual([counts.of('a'), counts.of('b'), counts.of('c'), counts.total], [2, 1, 0, 3]);
    for (let times = 0; times < 3; times += 1) given[0]?.();
    assert.deepEqual([counts.of('a'), counts.of('b'), counts.total], [1, 1, 2]);
    const later = counts.add('a');
    given[1]?.();
    given[1]?.();
    assert.deepEqual([counts.of('a'), counts.total], [1, 2], 'a later item is not given back for an earlier one');
    for (const giveBack of [later, given[2], later]) giveBack?.();
    assert.deepEqual([counts.of('a'), counts.of('b'), counts.total], [0, 0, 0]);
  });
});

describe('a map of the latest values', () => {
  it('the map holds so many values, drops the one that was used longest ago, and takes one that comes again for a new one', () => {
    const values = new Map<string, number>();
    for (const [key, value] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ] as const)
      remember(values, key, value, 3);
    remember(values, 'a', 4, 3);
    assert.deepEqual(
      [...values],
      [
        ['b', 2],
        ['c', 3],
        ['a', 4],
      ],
      'nothing is dropped for a key that it has',
    );
    remember(values, 'd', 5, 3);
    assert.deepEqual(
      [...values],
      [
        ['c', 3],
        ['a', 4],
        ['d', 5],
      ],
    );
  });
});

describe('items in groups and in chunks', () => {
  it('groups are in the order of their first items, and so are the items in each', () => {
    const groups = groupBy(['b1', 'a1', 'b2', 'c1', 'a2'], ([letter]) => letter);
    assert.deepEqual(
      [...groups],
      [
        ['b', ['b1', 'b2']],
        ['a', ['a1', 'a2']],
        ['c', ['c1']],
      ],
    );
  });

  it('chunks have all items once, and as many as may be together but for the last', () => {
    for (const [count, sizes] of [
      [0, []],
      [1, [1]],
      [2, [2]],
      [3, [2, 1]],
      [4, [2, 2]],
    ] as const) {
      const items = Array.from({ length: count }, (_, at) => at);
      const chunks = [...chunksOf(items, 2)];
      assert.deepEqual([chunks.map(({ length }) => length), chunks.flat()], [sizes, items]);
    }
  });
});

describe('a wait that is bounded', () => {
  it('the wait ends with what is waited for, or with its time, and a failure before that is its own', async (t) => {
    const timers = () => process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length;
    const before = timers();
    await atMost(60_000, Promise.resolve());
    await assert.rejects(atMost(60_000, Promise.reject(new Error('it failed'))), /it failed/);
    assert.equal(timers(), before, 'no timer is left');
    t.mock.timers.enable({ apis: ['setTimeout'] });
    assert.equal(await atMost(1_000, Promise.resolve()), true);
    let isOver: boolean | undefined;
    const waiting = atMost(1_000, new Promise(() => {})).then((came) => {
      isOver = !came;
    });
    t.mock.timers.tick(999);
    await Promise.resolve();
    assert.equal(isOver, undefined);
    t.mock.timers.tick(1);
    await waiting;
    assert.equal(isOver, true);
  });
});
