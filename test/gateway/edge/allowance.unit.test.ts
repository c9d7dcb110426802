import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Allowance } from '../../../src/gateway/edge/bounds.ts';

describe('an allowance', () => {
  it('gives so much at once, and comes back with time up to the most', () => {
    const allowance = new Allowance(10, 2, 0);
    assert.equal(allowance.take(10, 0), true);
    assert.equal(allowance.take(1, 499), false);
    assert.equal(allowance.take(1, 500), true);
    assert.equal(allowance.take(10, 100_000), true);
    assert.equal(allowance.take(1, 100_000), false);
  });

  it('takes nothing when there is not enough', () => {
    const allowance = new Allowance(10, 0, 0);
    assert.equal(allowance.take(11, 0), false);
    assert.equal(allowance.take(10, 0), true);
  });

  it('can be lost, and then comes back', () => {
    const allowance = new Allowance(10, 1, 0);
    allowance.lose(100, 0);
    assert.equal(allowance.take(1, 0), false);
    assert.equal(allowance.take(1, 1_000), true);
  });

  it('keeps what it was given until it is used, also beyond the most', () => {
    const allowance = new Allowance(10, 1, 0);
    allowance.give(20);
    assert.equal(allowance.take(30, 60_000), true);
    assert.equal(allowance.take(1, 60_000), false);
  });
});
