import assert from 'node:assert/strict';
import { it } from 'node:test';
import { underServerLock } from '../../../src/gateway/store/server-lock.ts';

/** A connection with a lock of the server. `manage` takes every error for one of the database, as it does. */
function connection({ taken = 1 as unknown, held = 1 as unknown } = {}) {
  const asked: string[] = [];
  const state = { held, isAway: false };
  const manager = {
    async query(sql: string, values: readonly unknown[] = []) {
      const [, what = ''] = /(GET_LOCK|IS_USED_LOCK|RELEASE_LOCK)/.exec(sql) ?? [];
      asked.push(what);
      if (state.isAway) throw new Error('the connection is lost');
      if (what === 'GET_LOCK') assert.deepEqual(values, ['archive', 3]);
      return [{ taken, held: state.held }];
    },
  };
  const manage = async (work: (by: typeof manager) => Promise<unknown>) => {
    try {
      return await work(manager);
    } catch {
      throw new Error('taken for an error of the database');
    }
  };
  return { asked, state, database: { manage } as never };
}

it('work under a lock of the server is done while the lock is held, and the lock is given back however it ends', async () => {
  const done = connection();
  assert.equal(
    await underServerLock(done.database, 'archive', 3, async (isHeld) => ((await isHeld()) ? 'done' : 'lost')),
    'done',
  );
  assert.deepEqual(done.asked, ['GET_LOCK', 'IS_USED_LOCK', 'RELEASE_LOCK']);
  const failed = connection();
  const error = new Error('of the work');
  await assert.rejects(
    underServerLock(failed.database, 'archive', 3, () => Promise.reject(error)),
    error,
  );
  assert.deepEqual(failed.asked, ['GET_LOCK', 'RELEASE_LOCK']);
  const empty = connection();
  assert.equal(await underServerLock(empty.database, 'archive', 3, async () => undefined), undefined);
});

it('work under a lock that another process has is not begun', async () => {
  for (const taken of [0, null]) {
    const { database, asked } = connection({ taken });
    let isBegun = false;
    const work = async () => {
      isBegun = true;
      return 'done';
    };
    assert.equal(await underServerLock(database, 'archive', 3, work), undefined);
    assert.deepEqual([isBegun, asked], [false, ['GET_LOCK']]);
  }
});

it('a lock is not held when its connection has another, or is lost, and its work keeps its result', async () => {
  for (const held of [0, null]) {
    const { database } = connection({ held });
    assert.equal(await underServerLock(database, 'archive', 3, (isHeld) => isHeld()), false);
  }
  const { database, state } = connection();
  const result = await underServerLock(database, 'archive', 3, (isHeld) => {
    state.isAway = true;
    return isHeld();
  });
  assert.equal(result, false);
});

it('the connection of a lock is used every twenty seconds while the work goes on, and not after it', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { database, asked } = connection();
  await underServerLock(database, 'archive', 3, async () => {
    t.mock.timers.tick(40_000);
  });
  t.mock.timers.tick(40_000);
  assert.deepEqual(asked, ['GET_LOCK', 'IS_USED_LOCK', 'IS_USED_LOCK', 'RELEASE_LOCK']);
});
