import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { orderStates } from '../../src/gateway/trading/orders/rules.ts';
import { OrderStateSchema } from '../../src/gen/marina/gateway/v1/orders_pb.ts';
import { enumNames } from '../../src/kit/enums.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { operationHref as hrefOfOperation } from '../../src/site/links.ts';

interface Order {
  readonly id: string;
  readonly object: string;
  readonly state: string;
}
interface Event {
  readonly id: string;
  readonly type: string;
  readonly data: Order;
}
interface Step {
  readonly kind: string;
  readonly state: string;
}
interface Shown {
  readonly events: readonly Event[];
  readonly orders: ReadonlyMap<string, Order>;
}
interface Session {
  readonly chosen: { orders?: string };
  readonly gateway: { read(path: string): Promise<unknown> };
}
/** The module is JavaScript for browsers, and has no types. */
interface Rules {
  sentenceFor(error: { status: number; code?: string; message: string }): string;
  withEvents(shown: Shown, incoming: readonly Event[]): Shown & { readonly fresh: readonly Event[] };
  newestOrders(orders: ReadonlyMap<string, Order>): readonly Order[];
  newsText(news: readonly Event[]): string;
  readOrder(session: Session, id: string, current: () => Session | undefined): Promise<object | undefined>;
  isOver(order: { state: string }): boolean;
  toneOf(state: string | undefined): string;
  timelineOf(steps: readonly Step[], events: readonly Event[]): readonly { step?: Step; event?: Event }[];
  stepText(step: { detail: string; price_kobo: number | null }): string;
  priceText(order: { price_kobo: number | null; type: string; time_in_force: string }): string;
  fillBody(shares: string): object;
  saidBy(answer: object): string;
  marketText(market?: { session?: string; trading_paused?: boolean }): string;
  operationHref(request: { operation: string | null }): string | undefined;
  methodText(request: { method: string; protocol: string }): string;
  cameOver(request: { protocol: string }): string;
  answerText(attempt?: { status: number | null; error?: string | null }): string;
  testText(test: { status: number | null; error?: string | null; duration_ms: number }): string;
  timeOfDay(timestamp: string): string;
  dateAndTime(at: Date): string;
  naira(kobo: number): string;
}
const rules: Rules = await import(new URL('../../src/site/assets/workbench-rules.js', import.meta.url).href);

const order = (id: string, state = 'pending'): Order => ({ id, object: 'order', state });
const event = (id: string, data: Order = order(`ord_${id}`)): Event => ({ id, type: `order.${data.state}`, data });
const ids = (list: Iterable<{ id: string }>) => [...list].map(({ id }) => id);
const padded = (at: number) => String(at).padStart(4, '0');
const none: Shown = { events: [], orders: new Map() };

describe('the orders and events that the workbench shows', () => {
  it('new events are shown newest first, above the events that were shown before', () => {
    const before = { ...none, events: [event('2'), event('1')] };
    const { events, fresh } = rules.withEvents(before, [event('3'), event('4')]);
    assert.deepEqual(ids(events), ['4', '3', '2', '1']);
    assert.deepEqual(ids(fresh), ['3', '4'], 'news are told oldest first');
    assert.deepEqual(ids(before.events), ['2', '1'], 'the list before is left as it was');
  });

  it('an event that came before is neither shown again nor new, and does not take its order back', () => {
    const placed = event('1', order('ord_1', 'pending'));
    const filled = event('2', order('ord_1', 'filled'));
    const shown = rules.withEvents(none, [placed, filled]);
    const again = rules.withEvents(shown, [placed]);
    assert.deepEqual([ids(again.events), ids(again.fresh)], [['2', '1'], []]);
    assert.equal(again.orders.get('ord_1')?.state, 'filled');
    const mixed = rules.withEvents(shown, [filled, event('3')]);
    assert.deepEqual([ids(mixed.events), ids(mixed.fresh)], [['3', '2', '1'], ['3']]);
  });

  it('an order is shown as its last event tells, and orders without events stay', () => {
    const before = {
      ...none,
      orders: new Map([
        ['ord_1', order('ord_1')],
        ['ord_2', order('ord_2')],
      ]),
    };
    const { orders } = rules.withEvents(before, [
      event('1', order('ord_1', 'partially_filled')),
      event('2', order('ord_3', 'sending')),
      event('3', order('ord_1', 'filled')),
      event('4', order('ord_3', 'pending')),
    ]);
    assert.deepEqual(
      [...orders.values()].map(({ id, state }) => `${id} ${state}`),
      ['ord_1 filled', 'ord_2 pending', 'ord_3 pending'],
    );
    assert.equal(before.orders.get('ord_1')?.state, 'pending');
  });

  it('an event about another object than an order adds no order', () => {
    const { orders, fresh } = rules.withEvents(none, [
      event('1', { id: 'wdr_1', object: 'withdrawal', state: 'completed' }),
    ]);
    assert.deepEqual([orders.size, fresh.length], [0, 1]);
  });

  it('the list of events keeps the newest 200', () => {
    const many = (from: number, count: number) => Array.from({ length: count }, (_, at) => event(padded(from + at)));
    const first = rules.withEvents(none, many(1, 199));
    const full = rules.withEvents(first, many(200, 1));
    assert.deepEqual([full.events.length, full.events[0]?.id, full.events.at(-1)?.id], [200, '0200', '0001']);
    const next = rules.withEvents(full, many(201, 1));
    assert.deepEqual([next.events.length, next.events[0]?.id, next.events.at(-1)?.id], [200, '0201', '0002']);
  });

  it('the newest 100 orders are shown, newest first, in whatever order they came', () => {
    const orders = (count: number) =>
      new Map(Array.from({ length: count }, (_, at) => padded(((at * 7) % count) + 1)).map((id) => [id, order(id)]));
    assert.deepEqual(ids(rules.newestOrders(orders(3))), ['0003', '0002', '0001']);
    const hundred = rules.newestOrders(orders(100));
    assert.deepEqual([hundred.length, hundred[0]?.id, hundred.at(-1)?.id], [100, '0100', '0001']);
    const more = rules.newestOrders(orders(101));
    assert.deepEqual([more.length, more[0]?.id, more.at(-1)?.id], [100, '0101', '0002']);
  });

  it('one new event is told with its type, several with their number and the last type', () => {
    const [one, two] = [event('1', order('o', 'pending')), event('2', order('o', 'filled'))];
    assert.equal(rules.newsText([one]), 'New event: order.pending.');
    assert.equal(rules.newsText([one, two]), '2 new events, the last one order.filled.');
  });
});

/** A session of which each read is answered, or refused, by hand. */
function heldSession() {
  const reads: { path: string; answer: (value: object) => void; refuse: (error: Error) => void }[] = [];
  const read = (path: string) =>
    new Promise((answer, refuse) => {
      reads.push({ path, answer, refuse });
    });
  const session: Session = { chosen: {}, gateway: { read } };
  const answerAll = (id: string) => {
    for (const { path, answer } of reads.splice(0)) {
      if (path === `/v1/orders/${id}`) answer(order(id));
      else answer({ data: [{ from: path }] });
    }
  };
  return { session, reads, answerAll };
}

describe('the order that is chosen in the workbench', () => {
  it('an order is shown with its own steps and events', async () => {
    const { session, answerAll } = heldSession();
    const read = rules.readOrder(session, 'ord_1', () => session);
    assert.equal(session.chosen.orders, 'ord_1');
    answerAll('ord_1');
    assert.deepEqual(await read, {
      order: order('ord_1'),
      steps: [{ from: '/v1/orders/ord_1/history?limit=100' }],
      events: [{ from: '/v1/orders/ord_1/events?limit=100' }],
    });
  });

  for (const [name, end] of [
    ['answers', ({ answerAll }) => answerAll('ord_1')],
    ['refusal', ({ reads }) => reads[1]?.refuse(new Error('No such order.'))],
  ] as readonly (readonly [string, (held: ReturnType<typeof heldSession>) => void])[]) {
    it(`the ${name} about an order are dropped when another order was chosen meanwhile`, async () => {
      const held = heldSession();
      const { session } = held;
      const read = rules.readOrder(session, 'ord_1', () => session);
      session.chosen.orders = 'ord_2';
      end(held);
      assert.equal(await read, undefined);
    });

    it(`the ${name} about an order are dropped when the key was forgotten or another key was opened meanwhile`, async () => {
      for (const next of [undefined, heldSession().session]) {
        const held = heldSession();
        let current: Session | undefined = held.session;
        const read = rules.readOrder(held.session, 'ord_1', () => current);
        current = next;
        if (next !== undefined) next.chosen.orders = 'ord_1';
        end(held);
        assert.equal(await read, undefined);
      }
    });
  }

  it('the answers to the later of two reads of an order are shown, also if those to the earlier one come last', async () => {
    const { session, reads } = heldSession();
    const first = rules.readOrder(session, 'ord_1', () => session);
    const asked = reads.splice(0);
    const second = rules.readOrder(session, 'ord_1', () => session);
    for (const { answer } of reads) answer({ data: [], state: 'filled' });
    assert.deepEqual(await second, { order: { data: [], state: 'filled' }, steps: [], events: [] });
    for (const { answer } of asked) answer({ data: [], state: 'pending' });
    assert.equal(await first, undefined);
  });

  it('the error of the order that is chosen now is shown', async () => {
    for (const failed of [0, 1, 2]) {
      const { session, reads } = heldSession();
      const read = rules.readOrder(session, 'ord_1', () => session);
      reads[failed]?.refuse(new Error('No such order.'));
      assert.deepEqual(await read, { problem: 'No such order.' });
    }
  });

  it('an order can be ended by hand exactly while the gateway does not call it final', () => {
    const names = enumNames(OrderStateSchema);
    assert.ok(names.size > 8);
    for (const state of names.values()) {
      assert.equal(
        rules.isOver({ state }),
        orderStates.isFinal(state as Parameters<typeof orderStates.isFinal>[0]),
        state,
      );
    }
  });

  it('a good end, a bad end, a doubt and a plain end have colours of their own', () => {
    const tones = {
      good: ['filled', 'delivered', 'opened', 'booked', 'completed'],
      bad: ['rejected', 'refused', 'endpoint_failed', 'event_failed'],
      warn: ['uncertain', 'waiting', 'sending'],
      plain: ['cancelled', 'expired', 'unplaced', 'returned'],
      going: ['pending', 'partially_filled', 'a_state_to_come', undefined],
    };
    for (const [tone, states] of Object.entries(tones)) {
      for (const state of states) assert.equal(rules.toneOf(state), tone, state);
    }
  });
});

describe('the timeline of an order in the workbench', () => {
  const step = (kind: string, state: string): Step => ({ kind, state });
  const timeline = (steps: readonly Step[], events: readonly Event[]) =>
    rules.timelineOf(steps, events).map((each) => each.step?.kind ?? each.event?.id);
  const told = (id: string, state: string) => event(id, order('ord_1', state));

  it('each event stands below the step that made it', () => {
    assert.deepEqual(
      timeline(
        [step('stored', 'sending'), step('sent', 'pending'), step('report', 'pending'), step('report', 'filled')],
        [told('a', 'pending'), told('b', 'filled')],
      ),
      ['stored', 'sent', 'report', 'a', 'report', 'b'],
    );
  });

  it('the events of two fills stand below one fill each, in their order', () => {
    assert.deepEqual(
      timeline(
        [step('fill 1', 'partially_filled'), step('fill 2', 'partially_filled'), step('fill 3', 'filled')],
        [told('a', 'partially_filled'), told('b', 'partially_filled'), told('c', 'filled')],
      ),
      ['fill 1', 'a', 'fill 2', 'b', 'fill 3', 'c'],
    );
  });

  it('a step without an event has none below it, and events without a step stand at the end', () => {
    assert.deepEqual(
      timeline([step('report', 'pending'), step('cancel', 'pending')], [told('a', 'cancelled'), told('b', 'pending')]),
      ['report', 'b', 'cancel', 'a'],
    );
    assert.deepEqual(timeline([step('stored', 'sending')], [told('a', 'sending')]), ['stored', 'a']);
    const again = [
      step('stored', 'pending'),
      step('sent', 'pending'),
      step('report', 'pending'),
      step('cancel', 'filled'),
    ];
    assert.deepEqual(timeline(again, [told('a', 'pending')]), ['stored', 'sent', 'report', 'a', 'cancel']);
    assert.deepEqual(timeline([step('report', 'pending'), step('report', 'pending')], []), ['report', 'report']);
  });

  it('the list of events that was read is left as it was', () => {
    const events = [told('a', 'pending')];
    rules.timelineOf([step('report', 'pending')], events);
    assert.equal(events.length, 1);
  });

  it('a step that is a trade has its price, and a step that is none has only its sentence', () => {
    assert.equal(rules.stepText({ detail: 'Traded 100.', price_kobo: 1_005 }), 'Traded 100 at ₦10.05');
    assert.equal(rules.stepText({ detail: 'Traded 100', price_kobo: 0 }), 'Traded 100 at ₦0.00');
    assert.equal(rules.stepText({ detail: 'Stored at 10.5.', price_kobo: null }), 'Stored at 10.5.');
  });
});

describe('the texts of the workbench', () => {
  it('an amount in kobo is written in naira with two digits of kobo', () => {
    for (const [kobo, text] of [
      [0, '₦0.00'],
      [5, '₦0.05'],
      [99, '₦0.99'],
      [100, '₦1.00'],
      [1_010, '₦10.10'],
      [123_456_789, '₦1,234,567.89'],
    ] as const)
      assert.equal(rules.naira(kobo), text);
  });

  it('a time is shown in UTC to the second', () => {
    assert.equal(rules.timeOfDay('2026-11-30T23:59:58.123Z'), '23:59:58');
    assert.equal(rules.timeOfDay('2026-11-30T03:04:05Z'), '03:04:05');
    assert.equal(rules.dateAndTime(new Date('2026-11-30T23:59:58.999Z')), '2026-11-30 23:59:58 UTC');
    assert.equal(rules.dateAndTime(new Date('2026-11-30T23:30:00-01:00')), '2026-12-01 00:30:00 UTC');
  });

  it('a limit order shows its limit, and a market order shows its type', () => {
    const rest = { time_in_force: 'day' };
    assert.equal(rules.priceText({ ...rest, type: 'limit', price_kobo: 1_000 }), '₦10.00, day');
    assert.equal(rules.priceText({ ...rest, type: 'market', price_kobo: null }), 'market, day');
  });

  it('a fill without a number is of all that is left', () => {
    for (const [shares, body] of [
      ['', {}],
      ['  ', {}],
      ['100', { quantity: 100 }],
      [' 7 ', { quantity: 7 }],
      ['0', { quantity: 0 }],
    ] as const)
      assert.deepEqual(rules.fillBody(shares), body);
  });

  it('a call that steers an order is answered with the report of the exchange, or with the state of the order', () => {
    const report = { object: 'sandbox_report', state: 'pending', quantity: 100, price_kobo: 1_000 };
    assert.equal(rules.saidBy({ ...report, kind: 'trade' }), 'The exchange reported a trade of 100 at ₦10.00.');
    assert.equal(rules.saidBy({ ...report, kind: 'expired' }), 'The exchange reported: expired.');
    assert.equal(rules.saidBy(order('ord_1', 'cancelled')), 'The order is cancelled.');
  });

  it('a market that the operator paused is paused in every session, and one that was not read is not known', () => {
    assert.equal(rules.marketText({ session: 'open', trading_paused: true }), 'paused by the operator');
    assert.equal(rules.marketText({ session: 'open', trading_paused: false }), 'open');
    assert.equal(rules.marketText(), 'not known');
  });

  it('a request leads to its operation in the reference', () => {
    for (const { name, method } of gatewayOperations)
      assert.equal(rules.operationHref({ operation: name }), hrefOfOperation(method), name);
    assert.equal(rules.operationHref({ operation: null }), undefined);
  });

  it('a request shows its method, or that it is a call of gRPC', () => {
    assert.equal(rules.methodText({ method: 'POST', protocol: 'rest' }), 'POST');
    assert.equal(rules.methodText({ method: 'DELETE', protocol: 'rest' }), 'DEL');
    assert.equal(rules.methodText({ method: 'POST', protocol: 'grpc' }), 'RPC');
    assert.equal(rules.methodText({ method: 'POST', protocol: 'connect' }), 'POST');
    const protocols = ['rest', 'grpc', 'connect', 'another'].map((protocol) => rules.cameOver({ protocol }));
    assert.deepEqual(protocols, ['over REST', 'over gRPC', 'over Connect', 'another']);
  });

  it('an attempt shows the status of the endpoint, or why no answer came', () => {
    assert.equal(rules.answerText(), 'not sent yet');
    assert.equal(rules.answerText({ status: 500, error: null }), 'answered 500');
    assert.equal(rules.answerText({ status: null, error: 'timeout' }), 'no answer: timeout');
    assert.equal(rules.answerText({ status: null, error: null }), 'no answer: not known');
    assert.equal(rules.testText({ status: 418, duration_ms: 7 }), 'Your endpoint answered 418 in 7 ms.');
    assert.equal(
      rules.testText({ status: null, error: 'timeout', duration_ms: 7 }),
      'Your endpoint gave no answer: timeout in 7 ms.',
    );
  });

  it('a key that is not taken, a key without the scope and every other error have sentences of their own', () => {
    const error = { status: 403, code: 'insufficient_scope', message: 'The key lacks the scope.' };
    assert.match(rules.sentenceFor(error), /scope read/);
    assert.match(rules.sentenceFor({ status: 401, code: 'unauthorized', message: 'No.' }), /does not take this key/);
    assert.equal(rules.sentenceFor({ ...error, code: 'address_not_allowed' }), error.message);
    assert.equal(rules.sentenceFor({ status: 0, message: 'No answer came.' }), 'No answer came.');
  });
});
