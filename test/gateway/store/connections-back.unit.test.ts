import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { Database } from '../../../src/gateway/store/database.ts';
import { CommitUnknownError } from '../../../src/gateway/store/errors.ts';
import type { OnConnection } from '../../../src/gateway/store/renewed-pool.ts';
import { type Decision, statement } from '../../../src/gateway/store/statement.ts';
import { frameOf } from '../../../src/gateway/store/transaction.ts';
import { UnavailableError } from '../../../src/kit/refusal.ts';

type Answer = Error | 'nothing' | unknown[];
type Asked = { sql: string } | string;

/** An error as the server answers it, and one of a connection that was lost. */
const answer = (errno: number) => Object.assign(new Error(`error ${errno}`), { errno, sqlState: 'HY000' });
const lost = () => Object.assign(new Error('the connection was lost'), { code: 'PROTOCOL_CONNECTION_LOST' });
const deadlock = 1213;

/** A database of connections that answer as the test says, and that count how they are given back. */
function startDatabase({ mock }: TestContext) {
  const clock = { ms: 100_000 };
  mock.method(performance, 'now', () => clock.ms);
  const asked: string[] = [];
  const back = { released: 0, destroyed: 0 };
  const state = {
    answerTo: (_: string): Answer => [],
    /** Where each new connection leads to. */
    place: 'here',
    served: 0,
  };
  const frames = new WeakMap<object, ReturnType<typeof frameOf>>();
  let threads = 0;
  const take = (_: unknown, done: OnConnection) => {
    threads += 1;
    const connection = {
      threadId: threads,
      release() {
        back.released += 1;
      },
      destroy() {
        back.destroyed += 1;
      },
      query(query: Asked, answered: (error: unknown, rows: unknown) => void) {
        const sql = (typeof query === 'string' ? query : query.sql).replaceAll(';\n', '; ');
        asked.push(sql);
        const found = state.answerTo(sql);
        if (found === 'nothing') return;
        setImmediate(() => (found instanceof Error ? answered(found, undefined) : answered(null, found)));
      },
    };
    frames.set(connection, frameOf({ isMariaDb: true, galeraNode: undefined, isOfGroup: false, place: state.place }));
    done(null, connection as never);
  };
  const connections = {
    ...{ pool: {}, sharedTransactions: {}, take, takeForTransactions: take, isCluster: () => false },
    frame: async (connection: object) => frames.get(connection),
    hosts: {
      noteServed() {
        state.served += 1;
      },
    },
  };
  const database = new Database(connections as never, 'sandbox', 4);
  return { database, clock, asked, back, state };
}

const read = statement('SELECT 1');
const write = statement('UPDATE orders');
const writing = (): Decision<string> => ({ writes: [write], result: 'done' });

describe('a connection of the database', () => {
  it('a connection is given back once whatever its work came to, and closed if nobody knows its state', async (t) => {
    const { database, asked, back, state } = startDatabase(t);
    for (const [failing, isReleased] of [
      [undefined, true],
      [answer(1064), true],
      [lost(), false],
      [answer(1053), false],
      [answer(1064), true],
    ] as const) {
      for (const work of [
        () => database.readAll([read]),
        () => database.write(write),
        () => database.writeAll([write]),
        () => database.transaction([read], writing),
      ]) {
        asked.splice(0);
        Object.assign(back, { released: 0, destroyed: 0 });
        state.served = 0;
        state.answerTo = (sql) => (failing !== undefined && sql !== 'ROLLBACK' ? failing : [[], [], []]);
        const ended = await work().then(
          () => undefined,
          (error) => error,
        );
        assert.equal(ended === undefined, failing === undefined, asked.join());
        assert.deepEqual(back, { released: Number(isReleased), destroyed: Number(!isReleased) }, asked.join());
        assert.equal(state.served, Number(failing === undefined));
        assert.deepEqual([database.load.inUse, database.load.waiting], [0, 0]);
      }
    }
  });

  it('a connection on which a refused transaction could not be rolled back is closed', async (t) => {
    const { database, asked, back, state } = startDatabase(t);
    const refuse = () => {
      throw new TypeError('refused');
    };
    await assert.rejects(database.transaction([read], refuse), TypeError);
    assert.deepEqual([asked.splice(0), back.destroyed], [['START TRANSACTION; SELECT 1', 'ROLLBACK'], 0]);
    state.answerTo = (sql) => (sql === 'ROLLBACK' ? lost() : []);
    await assert.rejects(database.transaction([read], refuse), TypeError);
    assert.equal(back.destroyed, 1);
  });

  it('why the server took no write is known from any write, until it is forgotten', async (t) => {
    const { database, state } = startDatabase(t);
    for (const [errno, obstacle] of [
      [1021, 'disk-full'],
      [1290, 'read-only'],
    ] as const) {
      state.answerTo = (sql) => (sql === 'ROLLBACK' ? [] : answer(errno));
      await assert.rejects(database.write(write), UnavailableError);
      state.answerTo = () => answer(1064);
      await assert.rejects(database.write(write));
      assert.equal(database.refusedWrite, obstacle);
      database.forgetRefusedWrite();
      assert.equal(database.refusedWrite, undefined);
    }
  });
});

describe('a transaction that the server undoes', () => {
  it('a deadlock is tried four times in all, and one more that succeeds is an answer like any other', async (t) => {
    const { database, asked, state } = startDatabase(t);
    for (const failures of [3, 4]) {
      for (const work of [
        () => database.transaction([read], writing),
        () => database.writeAll([write]),
        () => database.write(write),
      ]) {
        let left = failures;
        asked.splice(0);
        state.answerTo = (sql) => {
          if (sql === 'ROLLBACK' || !sql.includes('UPDATE')) return [];
          left -= 1;
          return left >= 0 ? answer(deadlock) : [];
        };
        if (failures === 3) await work();
        else await assert.rejects(work(), UnavailableError);
        const tries = asked.filter((sql) => sql.includes('UPDATE')).length;
        assert.equal(tries, 4);
        assert.equal(database.load.inUse, 0);
      }
    }
  });

  it('no try begins after eight seconds, because waits for locks are long', async (t) => {
    const { database, clock, asked, state } = startDatabase(t);
    for (const [stepMs, tries] of [
      [8_000, 2],
      [8_001, 1],
    ] as const) {
      asked.splice(0);
      state.answerTo = (sql) => {
        if (sql === 'ROLLBACK') return [];
        clock.ms += stepMs;
        return answer(deadlock);
      };
      await assert.rejects(database.write(write), UnavailableError);
      assert.equal(asked.filter((sql) => sql !== 'ROLLBACK').length, tries);
    }
  });

  it('a COMMIT whose answer is lost is never tried again, and is unknown only if it could have changed something', async (t) => {
    const { database, asked, state, back } = startDatabase(t);
    state.answerTo = (sql) => (sql.includes('COMMIT') ? lost() : []);
    for (const [writes, isUnknown] of [
      [[write], true],
      [[], false],
    ] as const) {
      asked.splice(0);
      const failed = await database.transaction([read], () => ({ writes, result: undefined })).catch((error) => error);
      assert.equal(failed.cause instanceof CommitUnknownError, isUnknown);
      assert.equal(asked.length, 2, 'it is neither tried again nor rolled back');
    }
    assert.deepEqual(back, { released: 0, destroyed: 2 });
  });

  it('a statement that gets no answer for ten seconds is ended at the server, if that is still the same one', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { database, asked, back, state } = startDatabase(t);
    for (const [now, isEnded] of [
      ['here', true],
      ['elsewhere', false],
      ['here', true],
    ] as const) {
      state.place = 'here';
      asked.splice(0);
      Object.assign(back, { released: 0, destroyed: 0 });
      state.answerTo = (sql) => (sql.startsWith('KILL') ? [] : 'nothing');
      const failed = database.write(write).catch((error) => error);
      for (let turns = 0; turns < 5; turns += 1) await new Promise(setImmediate);
      state.place = now;
      t.mock.timers.tick(10_000);
      assert.ok((await failed) instanceof UnavailableError);
      for (let turns = 0; turns < 5; turns += 1) await new Promise(setImmediate);
      assert.deepEqual(
        asked.slice(1).map((sql) => sql.split(' ')[0]),
        isEnded ? ['KILL'] : [],
      );
      assert.deepEqual(back, { released: 1, destroyed: 1 }, 'the one that ends it is given back');
      assert.deepEqual([database.load.inUse, database.load.waiting], [0, 0]);
    }
  });
});
