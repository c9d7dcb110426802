import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { sleep } from '../../clients/typescript/src/sleep.ts';

describe('a wait of the client for TypeScript', () => {
  it('a wait leaves nothing at the signal of its program, whether it ends by itself or is stopped', async () => {
    const stopped = new AbortController();
    const { signal } = stopped;
    for (let wait = 0; wait < 20; wait += 1) await sleep(0, signal);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    const waiting = sleep(60_000, signal);
    assert.equal(getEventListeners(signal, 'abort').length, 1);
    stopped.abort(new Error('enough'));
    await assert.rejects(waiting, /^Error: enough$/);
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    await assert.rejects(sleep(0, signal), /^Error: enough$/);
  });
});
