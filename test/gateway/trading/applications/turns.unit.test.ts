import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Turns } from '../../../../src/gateway/trading/applications/image-checker.ts';

/** Takes all items in their turn; each uses as much as `cost` says. */
function takeAll(turns: Turns<string>, cost: (item: string) => number): string[] {
  const taken: string[] = [];
  for (let item = turns.peek(); item !== undefined; item = turns.peek()) {
    const partner = item.slice(0, 1);
    turns.remove(partner, item);
    taken.push(item);
    turns.charge(partner, cost(item));
  }
  return taken;
}

function lined(...items: readonly string[]): Turns<string> {
  const turns = new Turns<string>();
  for (const item of items) turns.add(item.slice(0, 1), item);
  return turns;
}

describe('turns', () => {
  it('go around the partners that wait, each in the order of its items', () => {
    const turns = lined('a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1');
    assert.deepEqual(
      takeAll(turns, () => 1),
      ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'],
    );
    assert.equal(turns.waiting, 0);
  });

  it('give each partner the same share of what is used', () => {
    const turns = lined('a1', 'a2', 'a3', 'b1', 'b2', 'b3', 'b4', 'b5', 'b6');
    const taken = takeAll(turns, (item) => (item.startsWith('a') ? 3 : 1));
    assert.deepEqual(taken, ['a1', 'b1', 'b2', 'b3', 'a2', 'b4', 'b5', 'b6', 'a3']);
  });

  it('are not saved up: who comes new is next, and then waits for its turn as all do', () => {
    const turns = lined('a1', 'a2', 'a3', 'a4', 'a5', 'a6');
    for (const item of ['a1', 'a2', 'a3']) {
      turns.remove('a', item);
      turns.charge('a', 10);
    }
    for (const item of ['b1', 'b2', 'b3']) turns.add('b', item);
    assert.deepEqual(
      takeAll(turns, () => 10),
      ['b1', 'a4', 'b2', 'a5', 'b3', 'a6'],
    );
  });

  it('pass over partners that may not come now, and leave their items in place', () => {
    const turns = lined('a1', 'a2', 'b1');
    assert.equal(
      turns.peek((partner) => partner !== 'a'),
      'b1',
    );
    turns.remove('b', 'b1');
    assert.equal(
      turns.peek((partner) => partner !== 'a'),
      undefined,
    );
    assert.equal(turns.peek(), 'a1');
  });

  it('turns of an item that was given up go to the next', () => {
    const turns = lined('a1', 'a2', 'b1');
    assert.equal(turns.remove('a', 'a1'), true);
    assert.equal(turns.remove('a', 'a1'), false);
    assert.deepEqual([turns.waiting, turns.waitingOf('a'), turns.peek()], [2, 1, 'a2']);
  });
});
