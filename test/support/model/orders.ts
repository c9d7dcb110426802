import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { fc } from '../properties.ts';
import type { ModelOrder } from './partner-model.ts';
import {
  ask,
  assertAnswer,
  boundMs,
  type Choice,
  type Command,
  idOf,
  outcomesOf,
  settledAs,
  type Whole,
} from './surroundings.ts';

/** The end of an order of each magic symbol, and the answer that places it. */
const ends: Readonly<Record<string, { state: string; part: number; status: number; code?: string }>> = {
  'SIM-REST': { state: 'pending', part: 0, status: 201 },
  'SIM-FILL': { state: 'filled', part: 1, status: 201 },
  'SIM-PARTS': { state: 'filled', part: 1, status: 201 },
  'SIM-HALF': { state: 'partially_filled', part: 0.5, status: 201 },
  'SIM-LAPSE': { state: 'expired', part: 0, status: 201 },
  'SIM-KILLED': { state: 'rejected', part: 0, status: 201 },
  'SIM-LOST': { state: 'pending', part: 0, status: 201 },
  'SIM-LOSTFILL': { state: 'filled', part: 1, status: 201 },
  'SIM-REJECT': { state: 'rejected', part: 0, status: 422, code: 'order_rejected' },
  'SIM-UNSENT': { state: 'refused', part: 0, status: 503, code: 'order_not_sent' },
};

/** Places an order with a new key: stored and sent once, or refused for the limit or a pause and not stored. */
function place(symbol: string, quantity: number, price_kobo: number, replica: number): Command {
  const body = { symbol, quantity, price_kobo };
  return {
    toString: () => `place ${quantity} ${symbol} at ${price_kobo}`,
    check: () => true,
    run: async (model, whole) => {
      const key = randomUUID();
      const before = whole.unclear();
      const answer = await send(whole, replica, key, body);
      if (model.forbids('buy', 0, symbol)) return assertAnswer(answer, { status: 503, code: 'trading_paused' });
      if (model.usedByOrders() + quantity * price_kobo > model.ordersLimitKobo) {
        return assertAnswer(answer, { status: 422, code: 'limit_exceeded' });
      }
      const end = ends[symbol];
      assert.ok(end !== undefined);
      const filled = Math.floor(quantity * end.part);
      const state = end.state === 'partially_filled' && filled === 0 ? 'pending' : end.state;
      const outcomes = outcomesOf('order', { ...end, state }, whole.unclear() > before);
      const outcome = await settledAs(whole, replica, '/v1/orders', answer, outcomes);
      const order: ModelOrder = {
        ...{ key, body, id: outcome.id, day: model.day, again: outcome.again, state: outcome.state },
        filled: outcome.state === 'refused' ? 0 : filled,
      };
      model.orders.push(order);
      await settled(whole, replica, order);
    },
  };
}

function send(whole: Whole, replica: number, idempotencyKey: string, order: object) {
  // The exchange ends other orders with their day.
  const fixed = { side: 'buy', type: 'limit', time_in_force: 'gtc' };
  const body = { account: whole.partner.accounts[0], ...fixed, ...order };
  return ask(whole, replica, 'POST', '/v1/orders', { idempotencyKey, body });
}

/** Waits until the order is as the model has it. */
function settled(whole: Whole, replica: number, { id, state, filled }: ModelOrder): Promise<void> {
  return eventually(async () => {
    const { body } = await ask(whole, replica, 'GET', `/v1/orders/${id}`);
    assert.deepEqual([body.state, body.filled_quantity], [state, filled], id);
  }, boundMs);
}

/** Sends the request of an order again: answered as the first time, or with the order as it is; another body is refused. */
function repeat([at = 0, replica = 0, change = 0]: Choice): Command {
  const isOther = change % 4 === 0;
  return {
    toString: () => `repeat ${at}${isOther ? ' with another quantity' : ''}`,
    check: ({ orders }) => orders.length > 0,
    run: async ({ orders }, whole) => {
      const order = orders[at % orders.length] as ModelOrder;
      const body = isOther ? { ...order.body, quantity: order.body.quantity + 1 } : order.body;
      const answer = await send(whole, replica, order.key, body);
      if (isOther) return assertAnswer(answer, { status: 409, code: 'duplicate_order' });
      assertAnswer(answer, ...order.again);
      assert.equal(idOf(answer), order.id);
      if (answer.status !== 200) return;
      assert.deepEqual([answer.body.state, answer.body.filled_quantity], [order.state, order.filled]);
    },
  };
}

/** Lets the exchange trade some of an open order. */
function fill([at = 0, replica = 0, share = 0]: Choice): Command {
  return {
    toString: () => `fill ${at}`,
    check: ({ openOrders }) => openOrders.length > 0,
    run: async ({ openOrders }, whole) => {
      const order = openOrders[at % openOrders.length] as ModelOrder;
      const left = order.body.quantity - order.filled;
      const quantity = 1 + (share % left);
      await whole.controls.fillOrder({ clientOrderId: order.id, quantity: BigInt(quantity) }, callTimeout);
      order.filled += quantity;
      order.state = order.filled === order.body.quantity ? 'filled' : 'partially_filled';
      await settled(whole, replica, order);
    },
  };
}

/** Lets the exchange end an open order. */
function expire([at = 0, replica = 0]: Choice): Command {
  return {
    toString: () => `expire ${at}`,
    check: ({ openOrders }) => openOrders.length > 0,
    run: async ({ openOrders }, whole) => {
      const order = openOrders[at % openOrders.length] as ModelOrder;
      await whole.controls.expireOrder({ clientOrderId: order.id }, callTimeout);
      order.state = 'expired';
      await settled(whole, replica, order);
    },
  };
}

/** Cancels an order: an open one ends, a cancelled one is shown, any other is answered that it is final. */
function cancel([at = 0, replica = 0]: Choice): Command {
  return {
    toString: () => `cancel ${at}`,
    check: ({ orders }) => orders.length > 0,
    run: async (model, whole) => {
      const order = model.orders[at % model.orders.length] as ModelOrder;
      const answer = await ask(whole, replica, 'DELETE', `/v1/orders/${order.id}`);
      if (!model.isOpen(order) && order.state !== 'cancelled') {
        return assertAnswer(answer, { status: 409, code: 'order_not_cancelable' });
      }
      assertAnswer(answer, { status: 200 });
      order.state = 'cancelled';
      assert.deepEqual([answer.body.state, answer.body.filled_quantity], ['cancelled', order.filled]);
    },
  };
}

const pick = fc.array(fc.nat(1_000), { minLength: 3, maxLength: 3 });
const placed = fc
  .tuple(
    fc.constantFrom(...Object.keys(ends)),
    fc.integer({ min: 1, max: 60 }),
    fc.integer({ min: 90, max: 110 }).map((tens) => 10 * tens),
    fc.nat(1),
  )
  .map(([symbol, quantity, price, replica]) => place(symbol, quantity, price, replica));

/** The commands of orders. Most of them need an order, so placing one is there several times. */
export const orderCommands = [
  ...[placed, placed, placed, placed],
  pick.map(repeat),
  ...[pick, pick].map((each) => each.map(fill)),
  pick.map(expire),
  pick.map(cancel),
];
