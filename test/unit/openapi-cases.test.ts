import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { casesOf } from '../../src/site/openapi/schemas.ts';

describe('the schemas of a message with fields that go with values of others', () => {
  const ofType = (word: string) => ({ other: 'type', word, words: ['market', 'limit', 'stop'] });
  const cases = (...conditions: { other: string; word: string; words: string[] }[]) =>
    casesOf(conditions).map((words) => Object.fromEntries(words));

  it('are one if no field does', () => {
    assert.deepEqual(cases(), [{}]);
  });

  it('are two for a price of limit orders: limit orders, and all others', () => {
    assert.deepEqual(cases(ofType('limit')), [{ type: ['limit'] }, { type: ['market', 'stop'] }]);
  });

  it('are the same for two fields of limit orders', () => {
    assert.deepEqual(cases(ofType('limit'), ofType('limit')), cases(ofType('limit')));
  });

  it('are three for a price of limit orders and another of stop orders', () => {
    assert.deepEqual(cases(ofType('limit'), ofType('stop')), [
      { type: ['limit'] },
      { type: ['stop'] },
      { type: ['market'] },
    ]);
  });

  it('have every pair for fields that go with different ones', () => {
    const dated = { other: 'validity', word: 'until', words: ['day', 'until'] };
    assert.deepEqual(cases(ofType('limit'), dated), [
      { type: ['limit'], validity: ['until'] },
      { type: ['limit'], validity: ['day'] },
      { type: ['market', 'stop'], validity: ['until'] },
      { type: ['market', 'stop'], validity: ['day'] },
    ]);
  });
});
