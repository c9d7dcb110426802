import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type Affected,
  isInForce,
  type OpenStop,
  stopOf,
  stopSentence,
} from '../../../../src/gateway/trading/stops/rules.ts';

const now = 1_000_000;
const buy: Affected = { action: 'buy', partnerId: 'par_a', account: 'ACC1', symbol: 'GTCO' };
const withdraw: Affected = { action: 'withdraw', partnerId: 'par_a', account: 'ACC1' };

function stop(fields: Partial<OpenStop>): OpenStop {
  return { id: 'stp_a', target: 'everything', value: '', actions: 'buy', endsAt: null, ...fields };
}

describe('what a stop forbids', () => {
  const table: [string, Partial<OpenStop>, Affected, boolean][] = [
    ['its action for everybody', {}, buy, true],
    ['no other action', { actions: 'sell,fund,withdraw,apply' }, buy, false],
    ['each of its actions', { actions: 'sell,buy' }, buy, true],
    ['its partner', { target: 'partner', value: 'par_a' }, buy, true],
    ['no other partner', { target: 'partner', value: 'par_b' }, buy, false],
    ['its account', { target: 'account', value: 'ACC1' }, buy, true],
    ['no account whose name goes on', { target: 'account', value: 'ACC11' }, buy, false],
    ['no account whose name begins like it', { target: 'account', value: 'ACC' }, buy, false],
    ['its symbol', { target: 'symbol', value: 'GTCO' }, buy, true],
    ['no other symbol', { target: 'symbol', value: 'GTC' }, buy, false],
    ['no withdrawal by a symbol', { target: 'symbol', value: 'GTCO', actions: 'withdraw' }, withdraw, false],
    ['a withdrawal of its account', { target: 'account', value: 'ACC1', actions: 'withdraw' }, withdraw, true],
    ['nothing of a partner by an account of its name', { target: 'account', value: 'par_a' }, buy, false],
    ['something a millisecond before its end', { endsAt: now + 1 }, buy, true],
    ['nothing at its end', { endsAt: now }, buy, false],
    ['nothing after its end', { endsAt: now - 1 }, buy, false],
  ];
  for (const [what, fields, affected, isForbidden] of table) {
    it(`is ${what}`, () => {
      const one = stop(fields);
      assert.equal(stopOf([one], affected, now), isForbidden ? one : undefined);
    });
  }

  it('a stop is found behind those that forbid something else', () => {
    const [over, other, right] = [stop({ endsAt: now }), stop({ actions: 'sell' }), stop({ id: 'stp_b' })];
    assert.equal(stopOf([over, other, right], buy, now), right);
  });

  it('a stop without an end holds until somebody ends it', () => {
    assert.equal(isInForce(stop({}), Number.MAX_SAFE_INTEGER), true);
  });

  it('a partner is told in a sentence what is stopped', () => {
    assert.equal(
      stopSentence(stop({ target: 'account' }), withdraw),
      'Withdrawals of this account are stopped. Cancels, estimates and reads still work.',
    );
    assert.match(stopSentence(stop({ target: 'symbol' }), buy), /^Orders to buy in this symbol are stopped\./);
  });
});
