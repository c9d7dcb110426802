import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { it } from 'node:test';
import { createLogger } from '../../src/kit/log.ts';
import { pause, periodic, Supervisor, Waiters, Wakeup } from '../../src/kit/worker.ts';
import { eventually } from '../support/eventually.ts';

it('work that fails only when its calls run out of time is failing all the while, and well when it goes on', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const breakOff: ((error: Error) => void)[] = [];
  const supervisor = new Supervisor(createLogger({ name: 'test', level: 'silent' }));
  const run = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      breakOff.push(reject);
      signal.addEventListener('abort', () => resolve());
    });
  supervisor.start({ name: 'reports', run });
  breakOff[0]?.(new Error('no answer'));
  await eventually(() => assert.equal(breakOff.length, 2, 'it is started again'));
  t.mock.timers.tick(10_000);
  assert.deepEqual(supervisor.failing, ['reports'], 'its call may still run out of time');
  t.mock.timers.tick(5_000);
  assert.deepEqual(supervisor.failing, []);
  t.mock.timers.reset();
  assert.ok(await supervisor.stop(1_000));
});

it('a worker that fails again and again rests longer each time, and as briefly as at first after it ran well for long', async (t) => {
  let clock = 0;
  t.mock.method(performance, 'now', () => clock);
  const rests: number[] = [];
  const destination = { write: (line: string) => void rests.push(JSON.parse(line).restartMs) };
  const supervisor = new Supervisor(createLogger({ name: 'test', level: 'error', destination }));
  /** How long each run lasts before it fails. */
  const runs = [0, 12_000, 12_001, 0];
  let count = 0;
  supervisor.start({
    name: 'reports',
    run: async (signal) => {
      const lastsMs = runs[count];
      count += 1;
      if (lastsMs === undefined) return pause(60_000, signal);
      clock += lastsMs;
      throw new Error('it failed');
    },
  });
  t.after(() => supervisor.stop(1_000));
  // Its bound is of the clock that the runs move on.
  await eventually(() => assert.equal(count, 5), 60_000);
  assert.deepEqual(rests, [100, 200, 100, 200]);
  assert.deepEqual(supervisor.failing, ['reports'], 'its last run has not shown yet that it is well');
  assert.ok(await supervisor.stop(1_000));
});

it('a worker that ends by itself is started again and not failing, and one that fails at a stop is no trouble', async () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const supervisor = new Supervisor(createLogger({ name: 'test', level: 'error', destination }));
  let runs = 0;
  supervisor.start({
    name: 'ends',
    run: async (signal) => {
      runs += 1;
      if (runs < 3) return;
      await pause(60_000, signal);
      throw new Error('it was stopped');
    },
  });
  await eventually(() => assert.equal(runs, 3));
  assert.equal(await supervisor.stop(1_000), true);
  assert.deepEqual([lines, supervisor.failing], [[], []]);
});

it('a stop waits for all workers, at most for its time, and says whether they ended', async () => {
  const supervisor = new Supervisor(createLogger({ name: 'test', level: 'silent' }));
  let end: () => void = () => {};
  supervisor.start({ name: 'quick', run: (signal) => pause(60_000, signal) });
  supervisor.start({ name: 'slow', run: () => new Promise((resolve) => (end = resolve)) });
  assert.equal(await supervisor.stop(5), false);
  end();
  assert.equal(await supervisor.stop(1_000), true);
});

it('a wake is kept for the next wait if nobody waits, counts once however often it came, and leaves no listener behind', async () => {
  const wakeup = new Wakeup();
  const { signal } = new AbortController();
  wakeup.wake();
  wakeup.wake();
  await wakeup.wait(60_000, signal);
  let isAwake = false;
  const waiting = wakeup.wait(60_000, signal).then(() => {
    isAwake = true;
  });
  await new Promise(setImmediate);
  assert.equal(isAwake, false, 'both wakes were for the wait before');
  wakeup.wake();
  await waiting;
  for (let times = 0; times < 3; times += 1) await wakeup.wait(1, signal);
  assert.equal(getEventListeners(signal, 'abort').length, 0);
  const stop = new AbortController();
  const stopped = wakeup.wait(60_000, stop.signal);
  stop.abort();
  await stopped;
  await wakeup.wait(60_000, stop.signal);
});

it('all who wait are woken at once, those who come later are not, and none leaves a listener behind', async () => {
  const waiters = new Waiters();
  const stop = new AbortController();
  for (let round = 0; round < 3; round += 1) {
    const both = [waiters.wait(60_000, stop.signal), waiters.wait(60_000)];
    waiters.wakeAll();
    let isAwake = false;
    const later = waiters.wait(60_000, stop.signal).then(() => {
      isAwake = true;
    });
    await Promise.all(both);
    assert.equal(isAwake, false);
    waiters.wakeAll();
    await later;
    await waiters.wait(1, stop.signal);
    assert.equal(getEventListeners(stop.signal, 'abort').length, 0);
  }
  const stopped = waiters.wait(60_000, stop.signal);
  stop.abort();
  await stopped;
  await waiters.wait(60_000, stop.signal);
});

it('periodic work is done until it is stopped, not after that, and a fault of it is the fault of its worker', async () => {
  const stop = new AbortController();
  let times = 0;
  const worker = periodic('work', 1, async () => {
    times += 1;
    if (times === 3) stop.abort();
  });
  await worker.run(stop.signal);
  await worker.run(stop.signal);
  assert.equal(times, 3);
  const failing = periodic('work', 1, async () => {
    throw new Error('a fault');
  });
  await assert.rejects(failing.run(new AbortController().signal), /a fault/);
});
