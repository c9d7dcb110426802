import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { casesOf } from '../../src/site/openapi/schemas.ts';

describe('the schemas of a message with fields that go with values of others', () => {
  const ofType = (...needed: string[]) => ({ other: 'type', needed, words: ['market', 'limit', 'stop'] });
  const cases = (...conditions: { other: string; needed: string[]; words: string[] }[]) =>
    casesOf(conditions).map((words) => Object.fromEntries(words));

  it('a message without such fields has one schema', () => {
    assert.deepEqual(cases(), [{}]);
  });

  it('a price of limit orders makes two schemas: limit orders, and all others', () => {
    assert.deepEqual(cases(ofType('limit')), [{ type: ['limit'] }, { type: ['market', 'stop'] }]);
  });

  it('two fields of limit orders make the same two schemas', () => {
    assert.deepEqual(cases(ofType('limit'), ofType('limit')), cases(ofType('limit')));
  });

  it('a price of limit orders and one of stop orders make three schemas', () => {
    assert.deepEqual(cases(ofType('limit'), ofType('stop')), [
      { type: ['limit'] },
      { type: ['stop'] },
      { type: ['market'] },
    ]);
  });

  it('a price of limit and stop orders makes two schemas', () => {
    assert.deepEqual(cases(ofType('limit', 'stop')), [{ type: ['limit', 'stop'] }, { type: ['market'] }]);
  });

  it('one price of limit and stop orders and another of stop orders make three schemas', () => {
    assert.deepEqual(cases(ofType('limit', 'stop'), ofType('stop')), [
      { type: ['limit'] },
      { type: ['stop'] },
      { type: ['market'] },
    ]);
  });

  it('fields that go with different ones make a schema for every pair', () => {
    const dated = { other: 'validity', needed: ['until'], words: ['day', 'until'] };
    assert.deepEqual(cases(ofType('limit'), dated), [
      { type: ['limit'], validity: ['until'] },
      { type: ['limit'], validity: ['day'] },
      { type: ['market', 'stop'], validity: ['until'] },
      { type: ['market', 'stop'], validity: ['day'] },
    ]);
  });
});
