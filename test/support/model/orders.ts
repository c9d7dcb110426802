import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { RejectReason } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { fc } from '../properties.ts';
import type { ModelOrder, OrderBody, PartnerModel } from './partner-model.ts';
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

/** How an order ends, and the answer that places it. */
export interface OrderEnd {
  readonly state: string;
  /** The part of it that trades. */
  readonly part: number;
  readonly status: number;
  readonly code?: string;
  /** Why it is rejected. */
  readonly rejectReason?: string;
}

/** The end of an order of each magic symbol. */
export const magicEnds: Readonly<Record<string, OrderEnd>> = {
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
function place(body: OrderBody, replica: number): Command {
  return {
    toString: () => `place ${textOf(body)}`,
    check: () => true,
    run: async (model, whole) => {
      const end = magicEnds[body.symbol];
      assert.ok(end !== undefined);
      await placeFor(model, whole, { replica, body, end });
    },
  };
}

/** An order as a script shows it. */
export const textOf = ({ side, quantity, symbol, price_kobo }: OrderBody) =>
  `${side} ${quantity} ${symbol} at ${price_kobo ?? 'the market'}`;

/** Places an order that must end in a way, unless the limit or a stop refuses it. */
export async function placeFor(
  model: PartnerModel,
  whole: Whole,
  { replica, body, end }: { readonly replica: number; readonly body: OrderBody; readonly end: OrderEnd },
): Promise<void> {
  const { side, symbol, quantity } = body;
  const key = randomUUID();
  const before = whole.unclear();
  const answer = await send(whole, replica, key, body);
  if (model.forbids(side, 0, symbol)) return assertAnswer(answer, { status: 503, code: 'trading_paused' });
  if (model.usedByOrders() + model.valueOf(body) > model.ordersLimitKobo) {
    return assertAnswer(answer, { status: 422, code: 'limit_exceeded' });
  }
  const filled = Math.floor(quantity * end.part);
  const state = end.state === 'partially_filled' && filled === 0 ? 'pending' : end.state;
  const outcomes = outcomesOf('order', { ...end, state }, whole.unclear() > before);
  const outcome = await settledAs(whole, replica, '/v1/orders', answer, outcomes);
  const order: ModelOrder = {
    ...{ key, body, id: outcome.id, day: model.day, again: outcome.again, state: outcome.state },
    filled: outcome.state === 'refused' ? 0 : filled,
  };
  model.orders.push(order);
  await settled(whole, replica, order, order.state === 'rejected' ? end.rejectReason : undefined);
}

function send(whole: Whole, replica: number, idempotencyKey: string, order: OrderBody) {
  // The exchange ends other orders with their day.
  const type = order.price_kobo === null ? 'market' : 'limit';
  const body = { account: whole.partner.accounts[0], type, time_in_force: 'gtc', ...order };
  return ask(whole, replica, 'POST', '/v1/orders', { idempotencyKey, body });
}

/** Waits until the order is as the model has it. */
function settled(
  whole: Whole,
  replica: number,
  { id, state, filled }: ModelOrder,
  rejectReason?: string,
): Promise<void> {
  return eventually(async () => {
    const { body } = await ask(whole, replica, 'GET', `/v1/orders/${id}`);
    const seen = [body.state, body.filled_quantity, body.reject_reason];
    assert.deepEqual(seen, [state, filled, rejectReason ?? body.reject_reason], id);
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

/** Lets the exchange reject an order of which nothing has traded. */
function reject([at = 0, replica = 0]: Choice): Command {
  const untraded = ({ openOrders }: PartnerModel) => openOrders.filter(({ filled }) => filled === 0);
  return {
    toString: () => `reject ${at}`,
    check: (model) => untraded(model as PartnerModel).length > 0,
    run: async (model, whole) => {
      const all = untraded(model);
      const order = all[at % all.length] as ModelOrder;
      const rejectReason = RejectReason.SYMBOL_NOT_TRADABLE;
      await whole.controls.rejectOrder({ clientOrderId: order.id, rejectReason }, callTimeout);
      order.state = 'rejected';
      await settled(whole, replica, order, 'symbol_not_tradable');
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
/** A price within the band of the day, or none. */
export const price = fc.option(
  fc.integer({ min: 90, max: 110 }).map((tens) => 10 * tens),
  { freq: 5 },
);
const placed = fc
  .tuple(fc.constantFrom(...Object.keys(magicEnds)), fc.integer({ min: 1, max: 60 }), price, fc.nat(1))
  .map(([symbol, quantity, price_kobo, replica]) => place({ side: 'buy', symbol, quantity, price_kobo }, replica));

/** The commands of orders. Most of them need an order, so placing one is there several times. */
export const orderCommands = [
  ...[placed, placed, placed, placed],
  pick.map(repeat),
  ...[pick, pick].map((each) => each.map(fill)),
  pick.map(expire),
  pick.map(reject),
  pick.map(cancel),
];
