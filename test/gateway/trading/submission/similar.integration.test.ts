import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { isOptimismWrong } from '../../../../src/gateway/store/errors.ts';
import { existsFact } from '../../../../src/gateway/store/facts.ts';
import { guard, type SqlRow } from '../../../../src/gateway/store/statement.ts';
import { similarAllocations } from '../../../../src/gateway/trading/allocations/kind.ts';
import { allocations, type StoredAllocation } from '../../../../src/gateway/trading/allocations/table.ts';
import { similarOrders } from '../../../../src/gateway/trading/orders/kind.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { farAheadMs } from '../../../../src/gateway/trading/submission/rules.ts';
import { findSimilarUnsettled, noSimilar } from '../../../../src/gateway/trading/submission/similar.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { openSettling, type Settling } from '../../../support/settling.ts';

describe('an order like one whose outcome is unknown', () => {
  let settling: Settling;
  let partnerId: string;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    partnerId = await settling.newPartner();
  });

  /** Returns the answers about a similar order: of a query, of a guard, and of what is read under the lock. */
  async function answers(order: Partial<StoredOrder>, now = settling.clock.realNow()): Promise<string[]> {
    const query = findSimilarUnsettled(similarOrders({ ...plainOrder, partnerId, ...order }), now);
    const found = await settling.database.read(query);
    const refused = await settling.database.write(guard(existsFact(query, false).expected?.guards ?? [])).then(
      () => 'stored',
      (error: unknown) => (isOptimismWrong(error) ? 'refused' : `failed with ${error}`),
    );
    const { reads, value } = noSimilar('order', similarOrders({ ...plainOrder, partnerId, ...order }), {
      realNow: () => now,
    }).fact;
    const isHeldBack = value((await settling.database.readAll(reads)) as SqlRow[][]);
    return [found.length > 0 ? 'refused' : 'stored', refused, isHeldBack ? 'refused' : 'stored'];
  }

  const limit = {};
  const market = { type: 'market', priceKobo: null } as const;
  const cases: readonly [name: string, unknown: Partial<StoredOrder>, asked: Partial<StoredOrder>, answer: string][] = [
    ['is refused', limit, limit, 'refused'],
    ['is refused when both are market orders', market, market, 'refused'],
    ['is stored when one is a market order', limit, market, 'stored'],
    ['is stored when the other is a market order', market, limit, 'stored'],
    ['is stored at another price', limit, { priceKobo: 1_001n }, 'stored'],
    ['is stored for another account', limit, { account: 'A2' }, 'stored'],
    ['is stored for another symbol', limit, { symbol: 'SIM-FILL' }, 'stored'],
    ['is stored on the other side', limit, { side: 'sell' }, 'stored'],
    ['is stored for another quantity', limit, { quantity: 101n }, 'stored'],
    ['is refused with another reference of the partner', limit, { clientReference: 'other' }, 'refused'],
    ['is refused with another time in force', limit, { timeInForce: 'gtc' }, 'refused'],
    ['is stored once that one is known to be pending', { state: 'pending' }, limit, 'stored'],
    ['is stored once that one is refused', { state: 'refused' }, limit, 'stored'],
  ];
  for (const [name, unknown, asked, answer] of cases) {
    it(name, async () => {
      await settling.storeOrder({ partnerId, ...unknown });
      assert.deepEqual(await answers(asked), [answer, answer, answer]);
    });
  }

  it("is stored for another partner, and while the other's sender may still send it", async () => {
    await settling.storeOrder({ partnerId: await settling.newPartner() });
    assert.deepEqual(await answers({}), ['stored', 'stored', 'stored'], "another partner's order is like it");
    const { checkAt } = await settling.storeOrder({ partnerId, state: 'sending' });
    assert.ok(checkAt !== null);
    assert.deepEqual(await answers({}, checkAt - 1), ['stored', 'stored', 'stored'], 'its sender has 1 ms left');
    assert.deepEqual(await answers({}, checkAt), ['refused', 'refused', 'refused'], "its sender's time is over");
  });

  it('a similar order is refused when the time of the first of two senders is over, whichever of them is stored first', async () => {
    const { checkAt } = await settling.storeOrder({ partnerId, state: 'sending' });
    assert.ok(checkAt !== null);
    await settling.storeOrder({ partnerId, state: 'sending', checkAt: checkAt + 5_000 });
    await settling.storeOrder({ partnerId, state: 'sending', checkAt: checkAt + 1_000 });
    assert.deepEqual(await answers({}, checkAt - 1), ['stored', 'stored', 'stored']);
    assert.deepEqual(await answers({}, checkAt), ['refused', 'refused', 'refused']);
  });

  it('is refused by an optimistic transaction that reaches the server after the end of the sender', async () => {
    const { checkAt } = await settling.storeOrder({ partnerId, state: 'sending' });
    assert.ok(checkAt !== null && checkAt < Date.now(), "the test's clock is behind the server's");
    const { expected } = noSimilar('order', similarOrders({ ...plainOrder, partnerId }), settling.clock).fact;
    await assert.rejects(settling.database.write(guard(expected?.guards ?? [])), isOptimismWrong);
  });

  it('is refused when the earlier one was stored by a clock that was ahead', async () => {
    const notAfter = settling.clock.realNow() + farAheadMs + 1;
    await settling.storeOrder({ partnerId, state: 'sending', notAfter, checkAt: notAfter - 1 });
    assert.deepEqual(await answers({}), ['refused', 'refused', 'refused']);
  });
});

describe('an allocation like one whose outcome is unknown', () => {
  let settling: Settling;
  let partnerId: string;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());
  beforeEach(async () => {
    partnerId = await settling.newPartner();
  });

  async function store(fields: Partial<StoredAllocation>): Promise<StoredAllocation> {
    const { id: _, ...order } = plainOrder;
    const row: StoredAllocation = {
      ...order,
      id: settling.ids.object('alc'),
      partnerId,
      state: 'uncertain',
      amountKobo: 1_000n,
      brokerReference: null,
      evidence: '',
      checkAt: settling.clock.realNow() + 1_000,
      ...fields,
    };
    await settling.database.write(allocations.insert(row));
    return row;
  }

  async function answer(account: string, amountKobo: bigint, now = settling.clock.realNow()): Promise<string> {
    const asked = { partnerId, account, amountKobo } as StoredAllocation;
    const found = await settling.database.read(findSimilarUnsettled(similarAllocations(asked), now));
    return found.length > 0 ? 'refused' : 'stored';
  }

  it('is refused for the same account and amount alone', async () => {
    await store({});
    assert.equal(await answer('A1', 1_000n), 'refused');
    assert.equal(await answer('A2', 1_000n), 'stored');
    assert.equal(await answer('A1', 1_001n), 'stored');
  });

  it('is stored once that one is known, for another partner, and while its sender may still send it', async () => {
    for (const state of ['booked', 'rejected', 'refused'] as const) await store({ state, checkAt: null });
    await store({ partnerId: await settling.newPartner() });
    const { checkAt } = await store({ state: 'sending' });
    assert.ok(checkAt !== null);
    assert.equal(await answer('A1', 1_000n, checkAt - 1), 'stored', 'its sender has 1 ms left');
    assert.equal(await answer('A1', 1_000n, checkAt), 'refused', "its sender's time is over");
  });
});
