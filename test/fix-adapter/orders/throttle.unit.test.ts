import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Throttle, type ThrottleClock, withTurns } from '../../../src/fix-adapter/orders/throttle.ts';
import type { Outgoing } from '../../../src/fix-adapter/session/types.ts';
import { fc } from '../../support/properties.ts';

/** A clock that goes on when everything waits, and hardly at all with each look at it. */
class TestClock implements ThrottleClock {
  #now = 0;
  readonly #timers: { readonly at: number; readonly done: () => void }[] = [];

  now(): number {
    this.#now += 0.000_01;
    return this.#now;
  }

  wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#timers.push({ at: this.#now + Math.max(0, ms), done });
      signal.addEventListener('abort', done, { once: true });
    });
  }

  /** Goes on until nothing waits any more. */
  async run(): Promise<void> {
    for (;;) {
      // Whatever follows from the last timer is done first.
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
      this.#timers.sort((one, other) => one.at - other.at);
      const next = this.#timers.shift();
      if (next === undefined) return;
      this.#now = Math.max(this.#now, next.at);
      next.done();
    }
  }
}

const signal = new AbortController().signal;

/** The most messages in any closed window. */
function mostIn(sent: readonly number[], windowMs: number): number {
  return Math.max(0, ...sent.map((from) => sent.filter((at) => at >= from && at <= from + windowMs).length));
}

describe('the throttle', () => {
  it('never lets more messages be sent in any window, however they come and however long each takes to be written', async () => {
    const arrival = fc.record({
      at: fc.integer({ min: 0, max: 5_000 }),
      withinMs: fc.integer({ min: 0, max: 6_000 }),
      writeMs: fc.integer({ min: 0, max: 2_500 }),
      isWritten: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 100, max: 2_000 }),
        fc.array(arrival, { maxLength: 40 }),
        async (messages, windowMs, arrivals) => {
          const clock = new TestClock();
          const throttle = new Throttle({ messages, windowMs }, signal, clock);
          const sent: number[] = [];
          for (const { at, withinMs, writeMs, isWritten } of arrivals) {
            void clock.wait(at, signal).then(async () => {
              const cameAt = clock.now();
              const hasTurn = await throttle.take(withinMs);
              assert.ok(clock.now() <= cameAt + withinMs + 5, 'nobody waits longer than he said');
              if (!hasTurn) return;
              await clock.wait(writeMs, signal);
              throttle.settled(isWritten);
              if (isWritten) sent.push(clock.now());
            });
          }
          await clock.run();
          assert.ok(mostIn(sent, windowMs) <= messages, `${sent} within ${windowMs}`);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('gives every turn that the window has room for, in the order in which they were asked for', async () => {
    const clock = new TestClock();
    const throttle = new Throttle({ messages: 5, windowMs: 1_000 }, signal, clock);
    const sent: [nth: number, at: number][] = [];
    for (let nth = 0; nth < 12; nth += 1) {
      void throttle.take(10_000).then((hasTurn) => {
        assert.ok(hasTurn);
        throttle.settled(true);
        sent.push([nth, Math.round(clock.now())]);
      });
    }
    await clock.run();
    const expected = [0, 0, 0, 0, 0, 1_001, 1_001, 1_001, 1_001, 1_001, 2_002, 2_002];
    assert.deepEqual(
      sent,
      expected.map((at, nth) => [nth, at]),
    );
  });

  it('refuses at once what could not come in time, also behind others that wait', async () => {
    const clock = new TestClock();
    const throttle = new Throttle({ messages: 2, windowMs: 1_000 }, signal, clock);
    for (let count = 0; count < 2; count += 1) {
      assert.equal(await throttle.take(0), true);
      throttle.settled(true);
    }
    assert.equal(await throttle.take(1_000), false);
    const waiting = [throttle.take(1_001), throttle.take(1_001)];
    assert.equal(await throttle.take(2_001), false, 'two are before it');
    await clock.run();
    assert.deepEqual(await Promise.all(waiting), [true, true]);
  });

  it('gives a turn back when its message was not written, and when nobody says what became of it', async () => {
    const clock = new TestClock();
    const throttle = new Throttle({ messages: 1, windowMs: 1_000 }, signal, clock);
    assert.equal(await throttle.take(0), true);
    throttle.settled(false);
    assert.equal(await throttle.take(0), true);
    const later = throttle.take(60_000);
    await clock.run();
    assert.equal(await later, true);
    assert.ok(clock.now() >= 30_000);
  });

  it('a throttle that has served those who waited serves later ones too, and so it does after some gave up', async () => {
    const clock = new TestClock();
    const throttle = new Throttle({ messages: 1, windowMs: 1_000 }, signal, clock);
    const answers = async (...within: readonly number[]) => {
      const asked = within.map(async (withinMs) => {
        const hasTurn = await throttle.take(withinMs);
        if (hasTurn) throttle.settled(true);
        return hasTurn;
      });
      await clock.run();
      return Promise.all(asked);
    };
    for (let round = 0; round < 2; round += 1) assert.deepEqual(await answers(9_000, 9_000, 9_000), [true, true, true]);
    const later = clock.now() + 1_002;
    void clock.wait(1_002, signal);
    await clock.run();
    assert.ok(clock.now() >= later && (await throttle.take(0)), 'a turn whose message is on its way');
    assert.deepEqual(await answers(2_000, 3_000), [false, false]);
    throttle.settled(false);
    assert.deepEqual(await answers(9_000, 9_000), [true, true]);
  });

  it('refuses everybody when the process stops', async () => {
    const stopping = new AbortController();
    const clock = new TestClock();
    const throttle = new Throttle({ messages: 1, windowMs: 1_000 }, stopping.signal, clock);
    assert.equal(await throttle.take(0), true);
    const waiting = throttle.take(60_000);
    await Promise.resolve();
    stopping.abort();
    assert.equal(await waiting, false);
    assert.equal(await throttle.take(60_000), false);
  });

  it('is told what became of each message that goes through the session', () => {
    const settled: boolean[] = [];
    const outcomes: string[] = [];
    let outcome: Parameters<Outgoing['settled']>[0] = 'written';
    const session = { isUp: true, send: (message: Outgoing) => message.settled(outcome) };
    const throttled = withTurns(session, { settled: (wasWritten) => void settled.push(wasWritten) });
    for (outcome of ['written', 'unwritten', 'unrecorded', 'unknown', 'refused'] as const) {
      throttled.send({ type: 'D', fields: [], settled: (one) => void outcomes.push(one) });
    }
    assert.deepEqual(settled, [true, false, false, false, false]);
    assert.deepEqual(outcomes, ['written', 'unwritten', 'unrecorded', 'unknown', 'refused']);
    assert.equal(throttled.isUp, true);
  });
});
