import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { eventually } from '../eventually.ts';
import { callTimeout } from '../gateway.ts';
import { fc } from '../properties.ts';
import { correctionCommands } from './corrections.ts';
import type { ModelOrder, PartnerModel } from './partner-model.ts';
import {
  ask,
  assertAnswer,
  type Choice,
  type Command,
  disturb,
  idOf,
  limitOrders,
  passMidnight,
  pause,
  restart,
  type Whole,
} from './surroundings.ts';
import { assertWithdrawals, withdrawalCommands } from './withdrawals.ts';

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

/** The end of an allocation by the last digits of its amount. */
const magicAmounts: Readonly<Record<number, { state: string; status: number; code?: string }>> = {
  999003: { state: 'rejected', status: 422, code: 'allocation_rejected' },
  999006: { state: 'booked', status: 201 },
  999007: { state: 'rejected', status: 201 },
};

/** Places an order with a new key: stored and sent once, or refused for the limit or a pause and not stored. */
function place(symbol: string, quantity: number, price_kobo: number, replica: number): Command {
  const body = { symbol, quantity, price_kobo };
  return {
    toString: () => `place ${quantity} ${symbol} at ${price_kobo}`,
    check: () => true,
    run: async (model, whole) => {
      const key = randomUUID();
      const answer = await send(whole, replica, key, body);
      if (model.isPaused) return assertAnswer(answer, { status: 503, code: 'trading_paused' });
      if (model.usedByOrders() + quantity * price_kobo > model.ordersLimitKobo) {
        return assertAnswer(answer, { status: 422, code: 'limit_exceeded' });
      }
      const end = ends[symbol];
      assert.ok(end !== undefined);
      assertAnswer(answer, end);
      const id = idOf(answer);
      const filled = Math.floor(quantity * end.part);
      const again = end.status === 201 ? { status: 200 } : end;
      const state = end.state === 'partially_filled' && filled === 0 ? 'pending' : end.state;
      const { day } = model;
      model.orders.push({ key, body, id, day, again: { status: again.status, code: end.code }, state, filled });
      await settled(whole, replica, model.orders.at(-1) as ModelOrder);
    },
  };
}

function send(whole: Whole, replica: number, idempotencyKey: string, order: object) {
  // The exchange ends other orders with their day.
  const fixed = { side: 'buy', type: 'limit', time_in_force: 'gtc' };
  const body = { account: whole.partner.account, ...fixed, ...order };
  return ask(whole, replica, 'POST', '/v1/orders', { idempotencyKey, body });
}

/** Waits until the order is as the model has it. */
function settled(whole: Whole, replica: number, { id, state, filled }: ModelOrder): Promise<void> {
  return eventually(async () => {
    const { body } = await ask(whole, replica, 'GET', `/v1/orders/${id}`);
    assert.deepEqual([body.state, body.filled_quantity], [state, filled], id);
  });
}

/** Sends the request of an order again: answered as the first time, or with the order as it is; another body is refused. */
function repeat([at = 0, replica = 0, change = 0]: Choice): Command {
  return {
    toString: () => `repeat ${at}${change === 0 ? ' with another quantity' : ''}`,
    check: ({ orders }) => orders.length > 0,
    run: async ({ orders }, whole) => {
      const order = orders[at % orders.length] as ModelOrder;
      const isOther = change === 0;
      const body = isOther ? { ...order.body, quantity: order.body.quantity + 1 } : order.body;
      const answer = await send(whole, replica, order.key, body);
      if (isOther) return assertAnswer(answer, { status: 409, code: 'duplicate_order' });
      assertAnswer(answer, order.again);
      if (order.again.status === 200) {
        assert.deepEqual(
          [answer.body.id, answer.body.state, answer.body.filled_quantity],
          [order.id, order.state, order.filled],
        );
      }
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
      await whole.gateway.controls.fillOrder({ clientOrderId: order.id, quantity: BigInt(quantity) }, callTimeout);
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
      await whole.gateway.controls.expireOrder({ clientOrderId: order.id }, callTimeout);
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

/** Moves money to the account, or is refused and nothing moves; then the same once more. */
function allocate(amount_kobo: number, replica: number, at: number): Command {
  return {
    toString: () => `allocate ${amount_kobo} to account ${at}`,
    check: () => true,
    run: async (model, whole) => {
      const account = whole.partner.accounts[at];
      const request = { idempotencyKey: randomUUID(), body: { account, amount_kobo } };
      const answer = await ask(whole, replica, 'POST', '/v1/allocations', request);
      if (model.isPaused) return assertAnswer(answer, { status: 503, code: 'trading_paused' });
      const refusals = [
        ...(amount_kobo > model.availableKobo() ? ['wallet_too_low'] : []),
        ...(model.usedByAllocations() + amount_kobo > model.allocationsLimitKobo ? ['limit_exceeded'] : []),
      ];
      if (refusals.length > 0) {
        assert.equal(answer.status, 422, answer.text);
        return assert.ok(refusals.includes(answer.body.error?.code), answer.text);
      }
      const end = magicAmounts[amount_kobo % 1_000_000] ?? { state: 'booked', status: 201 };
      assertAnswer(answer, end);
      const id = idOf(answer);
      await eventually(async () => {
        const { body } = await ask(whole, replica + 1, 'GET', `/v1/allocations/${id}`);
        assert.equal(body.state, end.state);
      });
      const again = await ask(whole, replica + 1, 'POST', '/v1/allocations', request);
      assertAnswer(again, end.status === 201 ? { status: 200 } : end);
      model.allocations.push({ amountKobo: amount_kobo, id, day: model.day, state: end.state, at });
    },
  };
}

/** Compares limits and wallet with the sums of the model. */
function look(replica: number): Command {
  return { toString: () => 'look', check: () => true, run: (model, whole) => assertSums(model, whole, replica) };
}

async function assertSums(model: PartnerModel, whole: Whole, replica: number): Promise<void> {
  const { body: limits } = await ask(whole, replica, 'GET', '/v1/limits');
  assert.deepEqual(
    [limits.orders_kobo_per_day.used, limits.allocations_kobo_per_day.used],
    [model.usedByOrders(), model.usedByAllocations()],
    'what the limits say is used',
  );
  // The replicas count together, and hear of the end of a request a moment after its answer.
  await eventually(async () => {
    const { body } = await ask(whole, replica, 'GET', '/v1/limits');
    assert.equal(body.requests_under_way.used, 0, 'requests are under way');
  });
  const { body: wallet } = await ask(whole, replica, 'GET', '/v1/wallet');
  assert.deepEqual(
    [wallet.available_kobo, wallet.reserved_kobo, wallet.posted_kobo, wallet.withdrawn_kobo],
    [model.availableKobo(), 0, model.postedKobo(), model.withdrawnKobo()],
    'what the wallet has',
  );
}

/** Compares all that the partner has with the model: the lists, and the feed, whose last events tell the same. */
export async function assertWhole(model: PartnerModel, whole: Whole): Promise<void> {
  await assertSums(model, whole, 1);
  const { body: list } = await ask(whole, 0, 'GET', '/v1/orders?limit=100');
  const shown = (list.data as { id: string; state: string; filled_quantity: number }[]).map((order) => [
    order.id,
    order.state,
    order.filled_quantity,
  ]);
  const expected = model.orders.map(({ id, state, filled }) => [id, state, filled]);
  assert.deepEqual(shown, expected.reverse(), 'the orders, newest first');
  await assertWithdrawals(model, whole);
  await eventually(async () => {
    const events = await readFeed(whole);
    assert.deepEqual(
      events.map(({ version }) => version),
      events.map((_, at) => at + 1),
      'the feed is dense',
    );
    const last = new Map(events.map(({ data }) => [data.id, data.state]));
    for (const { id, state } of [...model.orders, ...model.allocations, ...model.withdrawals]) {
      assert.equal(last.get(id), state, `the last event of ${id}`);
    }
  });
}

interface FeedEvent {
  readonly version: number;
  readonly data: { readonly id: string; readonly state: string };
}

async function readFeed(whole: Whole): Promise<FeedEvent[]> {
  const events: FeedEvent[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await ask(whole, 1, 'GET', `/v1/events?limit=100${cursor}`);
    events.push(...body.data);
    if (!body.has_more) return events;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

const pick = fc.array(fc.nat(1_000), { minLength: 3, maxLength: 3 });
const replica = fc.nat(1);

/** Sequences of everything that a partner, its operators and the exchange do. */
export const sequences = fc.commands(
  [
    fc
      .tuple(
        fc.constantFrom(...Object.keys(ends)),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 90, max: 110 }).map((tens) => 10 * tens),
      )
      .chain(([symbol, quantity, price]) => replica.map((at) => place(symbol, quantity, price, at))),
    pick.map(repeat),
    pick.map(fill),
    pick.map(expire),
    pick.map(cancel),
    ...correctionCommands,
    fc
      .oneof(fc.integer({ min: 1, max: 900_000 }), fc.constantFrom(...Object.keys(magicAmounts).map(Number)))
      .chain((amount) => fc.tuple(replica, fc.nat(1)).map(([on, at]) => allocate(amount, on, at))),
    fc.boolean().map(pause),
    fc.constant(passMidnight()),
    fc.constant(restart()),
    fc.integer({ min: 50_000, max: 300_000 }).map(limitOrders),
    fc
      .tuple(fc.boolean(), fc.nat(2), fc.nat(2), fc.nat(1), fc.boolean())
      .map(([withdrawals, repeated, swap, omit, broken]) => disturb(withdrawals, repeated, swap, omit, broken)),
    ...withdrawalCommands,
    replica.map(look),
  ],
  { maxCommands: 25, size: 'max' },
);

/** Runs one sequence for a partner of its own, and compares at its end everything there is. */
export async function runSequence(commands: Iterable<Command>, start: () => Promise<Whole>, model: PartnerModel) {
  const whole = await start();
  try {
    await fc.asyncModelRun(() => ({ model, real: whole }), commands);
  } finally {
    if (model.isPaused) await whole.pause(false);
  }
  await assertWhole(model, whole);
}
