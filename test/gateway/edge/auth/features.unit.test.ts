import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { changedFeatureList, featureList, toFeatures } from '../../../../src/gateway/edge/auth/store.ts';
import { Feature } from '../../../../src/gen/marina/options/v1/options_pb.ts';

const { WITHDRAWALS } = Feature;
const word = featureList([WITHDRAWALS]);

describe('the features of a partner', () => {
  it('features of another version grant nothing here', () => {
    assert.deepEqual([...toFeatures({ features: `later,${word}` })], [WITHDRAWALS]);
    assert.deepEqual([...toFeatures({ features: 'later' })], []);
    assert.deepEqual([...toFeatures({ features: '' })], []);
  });

  for (const [name, before, features, after] of [
    ['stay when one of this version is added', 'later', [WITHDRAWALS], `${word},later`],
    ['stay when one of this version is taken away', `${word},later,much_later`, [], 'later,much_later'],
    ['stay when nothing else changes', `later,${word}`, [WITHDRAWALS], `${word},later`],
    ['are not invented', '', [WITHDRAWALS], word],
  ] as const) {
    it(`the features of another version ${name}`, () => {
      assert.equal(changedFeatureList([...features], { features: before }), after);
    });
  }
});
