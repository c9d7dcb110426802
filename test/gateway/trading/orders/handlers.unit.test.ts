/** The operations on orders, over a database, a broker and an exchange's list that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Cursors } from '../../../../src/gateway/edge/paging.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { orderHandlers } from '../../../../src/gateway/trading/orders/handlers.ts';
import { orders, type StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import {
  CreateOrderRequestSchema,
  EstimateOrderRequestSchema,
  ListOrdersRequestSchema,
  OrderSide,
  OrderState,
  OrderType,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import type { KeyedDigest } from '../../../../src/kit/key-ring.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';
import { orderKind } from '../../../support/kinds.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { storedRow } from '../../../support/stored-row.ts';

const keys = onlyKey(Buffer.alloc(32, 1));
const callOf = (partnerId: string, more: object = {}) =>
  ({
    ...{ caller: { partnerId, keyId: 'key_a' }, origin: { partnerId }, reply: { replayed: false } },
    ...{ idempotencyKey: 'one', permission: 'the permission', log: 'the log' },
    ...more,
  }) as never;
const ofA = callOf('par_a');

type Parts = Parameters<typeof orderHandlers>[0];
const open = (parts: Partial<Record<keyof Parts, object>> = {}) =>
  orderHandlers({ cursors: new Cursors(keys), digestKeys: keys, kind: orderKind, ...parts } as unknown as Parts);

describe('an estimate', () => {
  const instrument = { lowerPriceKobo: 90n, upperPriceKobo: 110n };
  const list = [
    { symbol: 'OTHER', tickSizes: [{ fromPriceKobo: 0n, tickSizeKobo: 7n }], lotSize: 7n },
    { symbol: 'MTNN', tickSizes: [{ fromPriceKobo: 0n, tickSizeKobo: 5n }], lotSize: 10n },
  ];

  /** Asks for an estimate. Returns the answer or the error's code with its reason, and what was asked on the way. */
  async function estimate(
    request: MessageInitShape<typeof EstimateOrderRequestSchema>,
    { hasAccount = true, listed = list as object[] | null, total = '12.01' } = {},
  ) {
    const asked: string[] = [];
    const note = <T>(what: string, answer: T) => {
      asked.push(what);
      return answer;
    };
    const { estimateOrder } = open({
      database: {
        read: async ({ values }: Statement) => note(`account ${values}`, hasAccount ? [{ account: 'A1' }] : []),
      },
      contexts: { instrument: async (_: object, account: string) => note(`context ${account}`, instrument) },
      instruments: { listSoon: async () => note('list', listed ?? undefined) },
      broker: {
        estimateOrder: async (wanted: { quantity: bigint }) => {
          const fees = [{ name: 'VAT', amountKoboDecimal: '1.5' }];
          const sums = { amountKobo: wanted.quantity, commissionKoboDecimal: '1', statutoryFeesKoboDecimal: '2' };
          return note('broker', { ...sums, otherFeesKoboDecimal: '3', fees, totalKoboDecimal: total });
        },
      },
    });
    const usual = { account: 'A1', symbol: 'MTNN', side: OrderSide.BUY, type: OrderType.LIMIT };
    const message = create(EstimateOrderRequestSchema, {
      ...usual,
      quantity: 10n,
      priceKobo: 100n,
      ...request,
    } as never);
    const answer = await estimateOrder(message, ofA).catch(
      (error) => `${error.code} ${error.rejectReason ?? error.param}`,
    );
    return { answer, asked };
  }

  it('an estimate is asked of the broker for an order that the exchange may take, and its total is rounded against the partner', async () => {
    const buy = await estimate({});
    assert.deepEqual(buy.asked, ['account par_a,A1', 'context A1', 'list', 'broker']);
    const { totalKobo, amountKobo, fees, symbol } = buy.answer as unknown as Record<string, unknown>;
    assert.deepEqual([totalKobo, amountKobo, symbol], [13n, 10n, 'MTNN']);
    assert.deepEqual(
      (fees as { name: string }[]).map(({ name }) => name),
      ['VAT'],
    );
    const sell = await estimate({ side: OrderSide.SELL }, { total: '12.99' });
    assert.equal((sell.answer as { totalKobo?: bigint }).totalKobo, 12n);
  });

  it('an estimate is refused, and nothing is asked behind it, at the first reason that there is', async () => {
    const off = { priceKobo: 89n, quantity: 11n };
    assert.deepEqual(await estimate(off, { hasAccount: false }), {
      ...{ answer: 'unknown_account account', asked: ['account par_a,A1'] },
    });
    const band = ['account par_a,A1', 'context A1'];
    assert.deepEqual(await estimate(off), { answer: 'order_rejected price_outside_band', asked: band });
    assert.deepEqual(await estimate({ priceKobo: 101n }), {
      ...{ answer: 'order_rejected price_off_tick', asked: [...band, 'list'] },
    });
    assert.equal((await estimate({ quantity: 11n })).answer, 'order_rejected quantity_off_lot');
  });

  it('an estimate goes on without the list of instruments, and without the instrument in it', async () => {
    for (const listed of [null, [], [list[0] as object]]) {
      const { asked } = await estimate({ priceKobo: 101n, quantity: 11n }, { listed });
      assert.equal(asked.at(-1), 'broker');
    }
  });
});

describe('a request for an order', () => {
  const request = { account: 'A1', symbol: 'MTNN', side: OrderSide.BUY, type: OrderType.LIMIT, quantity: 10n };
  const message = (more: object = {}) => create(CreateOrderRequestSchema, { ...request, ...more } as never);

  async function submitted(more: object, replayed = false) {
    let given: { digest: KeyedDigest; idempotencyKey: string; keyId: string; log(): unknown } | undefined;
    const call = { reply: { replayed: false } };
    const { createOrder } = open({
      submitter: {
        submit: async (_: unknown, wanted: typeof given) => {
          given = wanted;
          return { row: { ...plainOrder, id: 'ord_a', partnerId: 'par_a' }, replayed };
        },
      },
    });
    const answer = await createOrder(message(more), callOf('par_a', call));
    assert.ok(given !== undefined);
    assert.deepEqual([given.idempotencyKey, given.keyId, given.log()], ['one', 'key_a', 'the log']);
    return { digest: given.digest.current, id: answer.id, replayed: call.reply.replayed };
  }

  it('a request for an order is the same as another one if all its fields are, and says whether it came again', async () => {
    const first = await submitted({ priceKobo: 100n });
    assert.deepEqual([first.id, first.replayed], ['ord_a', false]);
    const again = await submitted({ priceKobo: 100n }, true);
    assert.deepEqual([again.digest, again.replayed], [first.digest, true]);
    for (const more of [{ priceKobo: 101n }, {}, { priceKobo: 100n, clientReference: 'x' }, { quantity: 11n }]) {
      assert.notDeepEqual((await submitted(more)).digest, first.digest, JSON.stringify(Object.keys(more)));
    }
  });
});

describe('the list of orders', () => {
  const all = Array.from(
    { length: 5 },
    (_, at): StoredOrder => ({ ...plainOrder, id: `ord_${at}`, partnerId: 'par_a' }),
  );

  /** Lists over five orders. Notes the values of each statement. */
  function listed() {
    const values: unknown[][] = [];
    const read = async (query: Statement): Promise<SqlRow[]> => {
      values.push([...query.values]);
      const before = query.sql.includes('id < ?') ? String(query.values.at(-1)) : 'z';
      const rows = all.filter(({ id }) => id < before).reverse();
      return rows.slice(0, Number(/LIMIT (\d+)/.exec(query.sql)?.[1])).map((row) => storedRow(orders, row));
    };
    const { listOrders } = open({ database: { read } });
    const list = (request: MessageInitShape<typeof ListOrdersRequestSchema>, call = ofA) =>
      listOrders(create(ListOrdersRequestSchema, request as never), call);
    return { list, values };
  }

  it('the list of orders shows each order once over pages, newest first, and filters by the values that are given', async () => {
    const { list, values } = listed();
    const filters = { state: OrderState.PENDING, symbol: 'MTNN', account: 'A1', clientReference: 'mine' };
    const seen: (string | undefined)[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await list({ ...filters, limit: 2, cursor } as never);
      seen.push(...(page.data ?? []).map(({ id }) => id));
      if (!page.hasMore) break;
      cursor = page.nextCursor;
    }
    assert.deepEqual(seen, ['ord_4', 'ord_3', 'ord_2', 'ord_1', 'ord_0']);
    assert.deepEqual(values[0]?.map(String).sort(), ['A1', 'MTNN', 'mine', 'par_a', 'pending']);
    await list({});
    assert.deepEqual(values.at(-1), ['par_a']);
  });

  it('the list of orders goes on only for the partner and the filters for which a page was made', async () => {
    const { list } = listed();
    const { nextCursor: cursor } = await list({ symbol: 'MTNN', limit: 1 } as never);
    assert.equal((await list({ symbol: 'MTNN', limit: 2, cursor } as never)).data?.[0]?.id, 'ord_3', 'another limit');
    for (const [request, call] of [
      [{ symbol: 'UBA', cursor }, ofA],
      [{ cursor }, ofA],
      [{ symbol: 'MTNN', account: 'A1', cursor }, ofA],
      [{ symbol: 'MTNN', cursor }, callOf('par_b')],
    ] as const) {
      await assert.rejects(list(request as never, call), { code: 'invalid_request', param: 'cursor' });
    }
  });
});

describe('an order that is asked for', () => {
  it('an order that is asked for is found for its partner alone, to be shown and to be cancelled', async () => {
    const row = storedRow(orders, { ...plainOrder, id: 'ord_a', partnerId: 'par_a' });
    const answer = ({ values }: Statement) => {
      const given = values.flat(3);
      return given.includes('par_a') && given.includes('ord_a') ? [row] : [];
    };
    const cancelled: string[] = [];
    const canceller = {
      cancel: async (order: StoredOrder) => {
        cancelled.push(order.id);
        return { ...order, state: 'cancelled' };
      },
    };
    const database = {
      read: async (query: Statement) => answer(query),
      readAll: async (queries: readonly Statement[]) => queries.map(answer),
    };
    const { getOrder, cancelOrder } = open({ database, canceller });
    assert.equal((await getOrder({ id: 'ord_a' } as never, ofA)).id, 'ord_a');
    assert.equal((await cancelOrder({ id: 'ord_a' } as never, ofA)).state, OrderState.CANCELLED);
    for (const [id, call] of [
      ['ord_b', ofA],
      ['ord_a', callOf('par_b')],
      [undefined, ofA],
    ] as const) {
      await assert.rejects(getOrder({ id } as never, call) as Promise<unknown>, { code: 'order_not_found' });
      await assert.rejects(cancelOrder({ id } as never, call) as Promise<unknown>, { code: 'order_not_found' });
    }
    assert.deepEqual(cancelled, ['ord_a']);
  });
});
