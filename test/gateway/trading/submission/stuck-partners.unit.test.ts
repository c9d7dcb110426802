import assert from 'node:assert/strict';
import { it } from 'node:test';
import { StuckPartners } from '../../../../src/gateway/trading/submission/stuck-partners.ts';
import { UnavailableError } from '../../../../src/kit/refusal.ts';

it('a partner is left aside for 45 s after its last failure, and named once in the log until then', (t) => {
  let now = 1_000;
  t.mock.method(performance, 'now', () => now);
  const logged: object[] = [];
  const stuck = new StuckPartners({ error: (facts: object) => void logged.push(facts) } as never);
  const error = new Error('a row is damaged');
  stuck.note(
    'a',
    Array.from({ length: 11 }, (_, at) => `ord_${at}`),
    error,
  );
  now += 44_999;
  stuck.note('b', ['ord_b'], error);
  assert.deepEqual(stuck.all, ['a', 'b']);
  stuck.note('a', ['ord_1'], error);
  now += 44_999;
  assert.deepEqual(stuck.all, ['a', 'b'], 'it failed again');
  assert.equal(logged.length, 2);
  assert.deepEqual(logged[0], {
    err: error,
    partnerId: 'a',
    objectIds: Array.from({ length: 10 }, (_, at) => `ord_${at}`),
  });
  now += 1;
  stuck.note('b', [], error);
  assert.equal(logged.length, 3, 'it is named again after it was no longer left aside');
  assert.deepEqual(stuck.all, ['b']);
});

it('a database that is away is no fault of a partner, who is not left aside for it', () => {
  const stuck = new StuckPartners({ error: () => assert.fail('it is not logged') } as never);
  const away = new UnavailableError();
  assert.throws(() => stuck.note('a', [], away), away);
  assert.deepEqual(stuck.all, []);
});
