import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LocalSlots } from '../../src/limits/slots.ts';

describe('places within one process', () => {
  it('are no more than there are, by name, and come back once each', async () => {
    const slots = new LocalSlots();
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
