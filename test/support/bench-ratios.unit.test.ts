import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compare } from '../bench/support/ratios.ts';

/** How fast a shared machine was in each of eight rounds. */
const machine = [1, 0.8, 1.1, 0.6, 0.95, 1.05, 0.7, 1];
/** The chance that is left within a round. */
const chance = [1.01, 0.99, 1.02, 0.98, 1, 1.015, 0.985, 1.005];

const rounds = (factor: number) => machine.map((speed, index) => 500 * speed * factor * (chance[index] ?? 1));
const theirs = machine.map((speed) => 500 * speed);

describe('what the bench says of two versions', () => {
  it('a change of 5 % is seen, however fast the machine was in each round', () => {
    assert.equal(compare(rounds(1.05), theirs).verdict, 'more');
    assert.equal(compare(rounds(0.95), theirs).verdict, 'less');
  });

  it('two versions that do the same are the same', () => {
    assert.equal(compare(rounds(1), theirs).verdict, 'same');
    assert.equal(compare(Array(7).fill(0), Array(7).fill(0)).verdict, 'same');
  });

  it('a difference that chance explains is not called a change', () => {
    assert.equal(compare([520, 430, 570, 410, 660, 480, 530, 600], Array(8).fill(500)).verdict, 'unclear');
  });

  it('one disturbed round of 16 does not decide', () => {
    const twice = [...rounds(1.05), ...rounds(1.05)];
    const disturbed = twice.map((value, index) => (index === 3 ? value * 0.4 : value));
    assert.equal(compare(disturbed, [...theirs, ...theirs]).verdict, 'more');
  });

  it('fewer than seven rounds prove nothing', () => {
    assert.equal(compare(Array(6).fill(600), Array(6).fill(500)).verdict, 'unclear');
    assert.equal(compare(Array(7).fill(600), Array(7).fill(500)).verdict, 'more');
  });

  it('the interval is that of the signed-rank test', () => {
    // Of 36 averages of two, one is left out at each end: published tables give 1 for 8 values and 1 % a side.
    const { least, low, median, high, most } = compare([1, 2, 4, 8, 16, 32, 64, 128], Array(8).fill(1));
    assert.deepEqual([least, median, most], [1, 12, 128]);
    assert.deepEqual([low.toFixed(2), high.toFixed(2)], ['1.41', '90.51']);
  });
});
