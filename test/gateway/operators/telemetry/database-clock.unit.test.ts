import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { DatabaseProbe, earlierTime, removalTime } from '../../../../src/gateway/operators/telemetry/database-clock.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import type { ClockAgreement } from '../../../../src/gateway/trading/broker/clock.ts';
import type { Logger } from '../../../../src/kit/log.ts';

describe('the time by which old rows are removed', () => {
  it('old rows are removed by the earlier of both clocks, and not at all if they are an hour apart', () => {
    const [now, hourMs] = [Date.UTC(2026, 2, 2), 3_600_000];
    for (const [aheadMs, expected] of [
      [-hourMs, undefined],
      [-hourMs + 1, now - hourMs + 1],
      [-1, now - 1],
      [0, now],
      [1, now],
      [hourMs - 1, now],
      [hourMs, undefined],
    ] as const) {
      assert.equal(earlierTime(now, aheadMs), expected, `the database is ${aheadMs} ms ahead`);
    }
  });
});

describe("a look at the database's clock", () => {
  function startProbe({ mock }: TestContext) {
    mock.method(performance, 'now', () => 0); // So each answer takes no time.
    const asked: { answer: (ahead: number) => void; fail: () => void }[] = [];
    const database = {
      refusesReads: false,
      readOfServer: () =>
        new Promise((resolve, reject) => {
          const answer = (aheadMs: number) => resolve([{ now: new Date(1_000 + aheadMs), version: '11' }]);
          asked.push({ answer, fail: () => reject(new Error('away')) });
        }),
    };
    const clock = { now: () => 500, realNow: () => 1_000 };
    const probe = new DatabaseProbe(database as unknown as Database, clock);
    return { probe, asked, database, clock };
  }

  it('callers at once share one look, and each later call is a look of its own, whatever came of the last', async (t) => {
    const { probe, asked } = startProbe(t);
    for (const outcome of ['an answer', 'an error', 'an error', 'an answer']) {
      const looks = Promise.all([probe.ask(), probe.ask()]);
      assert.equal(asked.length, 1, outcome);
      if (outcome === 'an answer') asked.shift()?.answer(70);
      else asked.shift()?.fail();
      await looks;
      const isThere = outcome === 'an answer';
      assert.deepEqual([probe.isReachable, probe.clockAheadMs], [isThere, isThere ? 70 : undefined], outcome);
    }
  });

  it('a database that does not answer for two seconds cannot be reached, until it answers a later look', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { probe, asked } = startProbe(t);
    for (const time of ['first', 'second']) {
      const look = probe.ask();
      t.mock.timers.tick(1_999);
      assert.equal(probe.isReachable, true, time);
      t.mock.timers.tick(1);
      await look;
      assert.equal(probe.isReachable, false, time);
      const late = asked.shift();
      const next = probe.ask();
      asked.shift()?.answer(20);
      await next;
      late?.answer(70);
      await new Promise(setImmediate);
      assert.deepEqual([probe.isReachable, probe.clockAheadMs], [true, 20], time);
    }
  });

  it('nothing is removed while a clock is doubted, which each worker says once each time it begins', async (t) => {
    const { asked, database, clock } = startProbe(t);
    const logged: string[] = [];
    const log = { error: ({ worker }: { worker: string }) => void logged.push(worker) } as unknown as Logger;
    const brokerClocks: { known: ClockAgreement } = { known: 'in_step' };
    const gate = { isOpen: false };
    const timeOf = removalTime({ database: database as unknown as Database, clock, brokerClocks, gate, log });
    const time = async (worker: string, aheadMs: number) => {
      const found = timeOf(worker);
      asked.shift()?.answer(aheadMs);
      return found;
    };
    assert.deepEqual([await time('a', 0), asked.length], [undefined, 0], 'the broker was not asked yet');
    gate.isOpen = true;
    assert.deepEqual([await time('a', 100), await time('a', -100)], [500, 400]);
    for (const round of [1, 2]) {
      for (let count = 0; count < 2; count += 1) {
        assert.equal(await time('a', 3_600_000), undefined);
        assert.equal(await time('b', -3_600_000), undefined);
        assert.equal(logged.length, round * 2, `round ${round}`);
      }
      assert.deepEqual([await time('a', 3_599_999), await time('b', 0)], [500, 500]);
    }
    brokerClocks.known = 'apart';
    assert.equal(await time('a', 0), undefined);
    assert.deepEqual(logged, ['a', 'b', 'a', 'b', 'a']);
  });
});
