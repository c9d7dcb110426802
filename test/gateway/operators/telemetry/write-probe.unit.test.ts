import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { WriteProbe } from '../../../../src/gateway/operators/telemetry/write-probe.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import type { WriteObstacle } from '../../../../src/gateway/store/errors.ts';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import type { Logger } from '../../../../src/kit/log.ts';
import { UnavailableError } from '../../../../src/kit/refusal.ts';

/** The server's errors: a full disk, a read-only server, no right, no table, a lock that another has, and a syntax error. */
const errors = { full: 1021, readOnly: 1290, denied: 1142, missing: 1146, locked: 1205, other: 1064 };
type Refused = keyof typeof errors;

function refusal(what: Refused): Error {
  const cause = Object.assign(new Error(what), { errno: errors[what], sqlState: 'HY000' });
  return new UnavailableError({ cause });
}

function startProbe({ mock }: TestContext) {
  const clock = { ms: 100_000 };
  mock.method(performance, 'now', () => clock.ms);
  const warned: string[] = [];
  /** The answer to the next writes, and a refusal of a real write meanwhile. */
  const next: { answer: Refused | Promise<unknown> | undefined; meanwhile: WriteObstacle | undefined } = {
    answer: undefined,
    meanwhile: undefined,
  };
  const written: string[] = [];
  const database = {
    refusedWrite: undefined as WriteObstacle | undefined,
    forgetRefusedWrite() {
      database.refusedWrite = undefined;
    },
    async answer(what: string) {
      written.push(what);
      database.refusedWrite ??= next.meanwhile;
      if (typeof next.answer === 'string') throw refusal(next.answer);
      await next.answer;
    },
    write: ({ values }: Statement) => database.answer(`${values.length / 2} kept`),
    transaction: () => database.answer('one'),
  };
  const log = { warn: (_: unknown, message: string) => void warned.push(message) };
  const probe = new WriteProbe(database as unknown as Database, 'test', log as unknown as Logger);
  const begin = () => {
    const stop = new AbortController();
    const ended = probe.worker.run(stop.signal);
    stop.abort();
    return ended;
  };
  /** One check, and the trouble after it. */
  const check = async (answer?: Refused) => {
    next.answer = answer;
    await begin();
    return probe.trouble;
  };
  return { probe, database, clock, next, warned, written, begin, check };
}

describe('whether the database takes writes', () => {
  for (const [obstacle, doubtMs] of [
    ['disk-full', 10_000],
    ['read-only', 2_000],
    ['not-writer', 2_000],
  ] as const) {
    it(`a refused write (${obstacle}) is a trouble at once, and until checks went well for ${doubtMs} ms after the last one`, async (t) => {
      const { probe, database, clock, check, written } = startProbe(t);
      assert.equal(await check(), undefined);
      database.refusedWrite = obstacle;
      assert.equal(probe.trouble, obstacle, 'before any check');
      assert.equal(await check(), obstacle);
      clock.ms += doubtMs - 1;
      database.refusedWrite = obstacle;
      assert.equal(await check(), obstacle, 'another one');
      clock.ms += doubtMs;
      assert.equal(await check(), obstacle);
      clock.ms += 1;
      assert.deepEqual([await check(), await check()], [undefined, undefined]);
      assert.deepEqual(written, ['one', '4 kept', '4 kept', '4 kept', '4 kept', 'one'], 'more is stored in doubt');
    });
  }

  it('a check that the server refuses is a trouble until the next one that it takes', async (t) => {
    const { database, next, check } = startProbe(t);
    for (const [answer, trouble] of [
      ['full', 'disk-full'],
      ['readOnly', 'read-only'],
      ['full', 'disk-full'],
    ] as const) {
      database.refusedWrite = 'disk-full';
      next.meanwhile = 'disk-full';
      assert.equal(await check(answer), trouble);
      assert.equal(await check(answer), trouble, 'twice in a row');
      next.meanwhile = undefined;
      assert.equal(await check(), undefined);
    }
  });

  it('a write that is refused while a check goes well is a trouble', async (t) => {
    const { clock, next, check } = startProbe(t);
    next.meanwhile = 'disk-full';
    assert.equal(await check(), 'disk-full');
    next.meanwhile = undefined;
    clock.ms += 10_000;
    assert.equal(await check(), 'disk-full');
  });

  it('a check that shows nothing changes nothing, and a lock that another check has is a silence', async (t) => {
    const { database, check } = startProbe(t);
    assert.equal(await check('other'), undefined);
    await check('full');
    assert.equal(await check('other'), 'disk-full');
    assert.equal(await check('locked'), 'silent');
    database.refusedWrite = 'read-only';
    assert.equal(await check('other'), 'read-only', 'what is known now counts');
    assert.equal(await check('locked'), 'silent');
    assert.equal(await check(), undefined);
  });

  it('where the table cannot be written, a refused write counts for its time only, and one line says so', async (t) => {
    const { database, clock, warned, check } = startProbe(t);
    for (const denied of ['denied', 'missing'] as const) {
      assert.equal(await check(denied), undefined);
      database.refusedWrite = 'read-only';
      assert.equal(await check(denied), 'read-only');
      clock.ms += 2_001;
      assert.equal(await check(denied), undefined);
    }
    assert.equal(warned.length, 1);
  });

  it('a write without an answer for five seconds is a silence until a later one is answered', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { probe, next, begin, check } = startProbe(t);
    for (const time of ['first', 'second']) {
      let answer = () => {};
      next.answer = new Promise<void>((resolve) => {
        answer = resolve;
      });
      let isOver = false;
      const checking = begin().then(() => {
        isOver = true;
      });
      await new Promise(setImmediate);
      t.mock.timers.tick(4_999);
      await new Promise(setImmediate);
      assert.equal(probe.trouble, undefined, time);
      t.mock.timers.tick(1);
      await new Promise(setImmediate);
      assert.deepEqual([probe.trouble, isOver], ['silent', false], 'no other write begins meanwhile');
      answer();
      await checking;
      assert.equal(probe.trouble, 'silent', 'it took too long');
      assert.equal(await check(), undefined, time);
    }
  });
});
