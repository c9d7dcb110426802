import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { slotsOfOne } from '../../../support/slots.ts';

describe('slots of a single replica without NATS', () => {
  it('are never more in use than the limit, by name, and come back once each', async () => {
    const slots = slotsOfOne();
    const first = await slots.acquire('documents.a', 2);
    const second = await slots.acquire('documents.a', 2);
    assert.notEqual(second, undefined);
    assert.equal(await slots.acquire('documents.a', 2), undefined);
    assert.notEqual(await slots.acquire('documents.b', 2), undefined);
    first?.release();
    first?.release();
    assert.notEqual(await slots.acquire('documents.a', 2), undefined);
    assert.equal(await slots.acquire('documents.a', 2), undefined);
  });
});
