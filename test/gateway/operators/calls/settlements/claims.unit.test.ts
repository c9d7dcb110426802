import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  enteredBefore,
  isOfAnother,
  type Namesake,
} from '../../../../../src/gateway/operators/calls/settlements/claims.ts';

const dayMs = 86_400_000;
/** Midnight in Lagos. */
const midnight = Date.UTC(2026, 2, 2, 23);

const order = (change: Partial<Namesake> = {}): Namesake => ({
  ...{ id: 'ord_own', account: 'ABC1', symbol: 'GTCO', side: 'buy', createdAt: midnight },
  ...change,
});

describe("the exchange's id of an order", () => {
  it('the id of an order is taken by a like order of the same day in Lagos, and by no other', () => {
    const cases: readonly [string, Partial<Namesake>, boolean][] = [
      ['a like order of the same instant', {}, true],
      ['one of the last instant of the day', { createdAt: midnight + dayMs - 1 }, true],
      ['one of the first instant of the next day', { createdAt: midnight + dayMs }, false],
      ['one of the last instant of the day before', { createdAt: midnight - 1 }, false],
      ['one of the week before', { createdAt: midnight - 7 * dayMs }, false],
      ['one of the year before', { createdAt: midnight - 365 * dayMs }, false],
      ['one of another account', { account: 'ABC2' }, false],
      ['one of another symbol', { symbol: 'DANGCEM' }, false],
      ['one of the other side', { side: 'sell' }, false],
      ['the order itself', { id: 'ord_own' }, false],
    ];
    for (const [name, change, isTaken] of cases) {
      const other = order({ id: 'ord_other', ...change });
      assert.equal(isOfAnother(order(), [other]) !== undefined, isTaken, name);
      // From the side of the other one it is the same.
      assert.equal(isOfAnother(other, [order()]) !== undefined, isTaken, `seen from ${name}`);
    }
  });

  it('the id of an order is compared with each order that has it, not only with the newest', () => {
    const old = order({ id: 'ord_old', createdAt: midnight - dayMs });
    const like = order({ id: 'ord_like' });
    for (const namesakes of [
      [old, like],
      [like, old],
      [order(), old, like],
    ]) {
      assert.equal(isOfAnother(order(), namesakes), 'the exchange has ord_like under this id');
    }
    assert.equal(isOfAnother(order(), [order(), old]), undefined);
    assert.equal(isOfAnother(order(), []), undefined);
  });
});

describe('a trade of a settlement', () => {
  const before = [
    { exchangeTradeId: 'T-1', proposal: 'prp_1' },
    { exchangeTradeId: 'T-2', proposal: 'prp_2' },
  ];
  it('a trade was entered before if its id was and it names no step of the history', () => {
    const problem = (...trades: [step: number, id: string][]) =>
      enteredBefore(
        trades.map(([step, exchangeTradeId]) => ({ step, exchangeTradeId })),
        before,
      );
    assert.equal(problem([0, 'T-3'], [3, 'T-1']), undefined);
    assert.match(problem([0, 'T-3'], [0, 'T-2']) ?? '', /^prp_2 has settled the trade T-2 of it/);
    assert.equal(enteredBefore([{ step: 0, exchangeTradeId: 'T-1' }], []), undefined);
  });
});
