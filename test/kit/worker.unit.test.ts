import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createLogger } from '../../src/kit/log.ts';
import { Supervisor } from '../../src/kit/worker.ts';
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
