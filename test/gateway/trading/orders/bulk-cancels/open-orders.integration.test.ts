import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  findOpenOrders,
  type OrderFilter,
} from '../../../../../src/gateway/trading/orders/bulk-cancels/open-orders.ts';
import { orders, type StoredOrder } from '../../../../../src/gateway/trading/orders/table.ts';
import { plainOrder } from '../../../../support/plain-order.ts';
import { openSettling, type Settling } from '../../../../support/settling.ts';

/** A page of one state's orders. */
const page = 1_000;

describe('the open orders that a bulk cancel finds', () => {
  let settling: Settling;
  before(async () => {
    settling = await openSettling();
  });
  after(() => settling.close());

  /** Stores so many orders of a new partner in each state, and returns the partner's id. */
  async function partnerWith(counts: Partial<Record<StoredOrder['state'], number>>): Promise<string> {
    const { database, ids, clock } = settling;
    const partnerId = await settling.newPartner();
    const rows = Object.entries(counts).flatMap(([state, count]) =>
      Array.from({ length: count }, () => ({
        ...{ ...plainOrder, partnerId, id: ids.object('ord'), state: state as StoredOrder['state'] },
        ...{ createdAt: clock.now(), updatedAt: clock.now() },
      })),
    );
    await database.write(orders.insert(...rows));
    return partnerId;
  }

  const find = (filter: Partial<OrderFilter>, most = 10_000) => {
    const whole = { partnerId: null, account: null, symbol: null, side: null, keyId: null, ...filter };
    return findOpenOrders(settling.database, whole, settling.clock.now(), most);
  };

  it('a bulk cancel finds all open orders, however many pages one state has and however few another', async () => {
    for (const counts of [
      { pending: page + 2, partially_filled: 1, filled: 3 },
      { sending: 1, pending: 1, partially_filled: page },
      { pending: page - 1, uncertain: page },
      { pending: 2 * page + 1 },
    ]) {
      const partnerId = await partnerWith(counts);
      const { filled: _, ...open } = { filled: 0, ...counts };
      const total = Object.values(open).reduce((sum, count) => sum + count, 0);
      for (const filter of [{ partnerId }, { partnerId, symbol: plainOrder.symbol }]) {
        const found = await find(filter);
        assert.equal(new Set(found.map(({ id }) => id)).size, total, JSON.stringify(counts));
      }
    }
  });

  it('open orders of an account are found also behind a page of orders that have ended', async () => {
    const partnerId = await partnerWith({ filled: page, pending: 1 });
    assert.equal((await find({ partnerId, account: plainOrder.account })).length, 1);
  });
});
