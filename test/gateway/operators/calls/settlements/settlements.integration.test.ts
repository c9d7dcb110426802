import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { Call, WireFault } from '../../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { adminClient } from '../../../../support/admin.ts';
import { apply } from '../../../../support/applications.ts';
import { eventually } from '../../../../support/eventually.ts';
import {
  callTimeout,
  operatorToken,
  startGateway,
  type TestGateway,
  type TestPartner,
} from '../../../../support/gateway.ts';
import { verifyLedger } from '../../../../support/ledger.ts';
import type { Found } from '../../../../support/operator.ts';
import { evidence, operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';
import { WebhookReceiver } from '../../../../support/webhook-receiver.ts';

describe('what two operators settle by evidence', () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let operators: TwoOperators;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway({
      ...receiver.variables,
      // Shorter than what an order waits that comes late.
      MARINA_SUBMIT_TIMEOUT_MS: '1000',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    operators = await TwoOperators.connect(gateway.app.adminPort);
    // Not found proves nothing then: an object that was never taken stays uncertain.
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
  });
  after(async () => {
    operators.close();
    // Operators settle here against what the exchange has.
    await gateway.stop(['exchange']);
    await receiver.close();
  });

  const now = () => new Date().toISOString();

  async function get(partner: TestPartner, path: string): Promise<Found> {
    return (await gateway.rest('GET', path, { key: partner.key })).body;
  }

  /** The types of an object's events in the feed, with how much had filled, by their versions. */
  async function eventsOf(partner: TestPartner, id: string): Promise<Found[]> {
    const { data } = await get(partner, '/v1/events?limit=100');
    return data.filter((event: Found) => event.data.id === id);
  }

  async function settledEvents(partner: TestPartner, id: string, expected: readonly string[]): Promise<void> {
    await eventually(async () => {
      const events = await eventsOf(partner, id);
      assert.deepEqual(
        events.map(({ type, data }) => (data.object === 'order' ? `${type} ${data.filled_quantity}` : type)),
        expected,
      );
      assert.deepEqual(events.at(-1)?.data, await get(partner, `/v1/${events.at(-1)?.data.object}s/${id}`));
    });
  }

  /** An order of which nobody knows anything: the exchange never took it. */
  async function uncertainOrder(partner: TestPartner, more: object = {}): Promise<string> {
    const { body } = await gateway.place(partner, { symbol: 'SIM-RESET', ...more });
    assert.equal(body.state, 'uncertain');
    return body.id;
  }

  /** An order that rests at the exchange. */
  async function restingOrder(partner: TestPartner, more: object = {}): Promise<string> {
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST', ...more });
    assert.equal(body.state, 'pending');
    return body.id;
  }

  async function fill(id: string, quantity: bigint, priceKobo = 1_000n): Promise<void> {
    await gateway.controls.fillOrder({ clientOrderId: id, quantity, priceKobo }, callTimeout);
  }

  async function historyOf(partner: TestPartner, id: string): Promise<Found[]> {
    return (await get(partner, `/v1/orders/${id}/history?limit=100`)).data;
  }

  const used = async (partner: TestPartner) => (await get(partner, '/v1/limits')).orders_kobo_per_day.used;
  const isUnsettled = async (partner: TestPartner, id: string) => {
    const { objects } = await operators.as('ada', 'Diagnostics.ListUnsettled', { partner_id: partner.id });
    return objects.find((each: Found) => each.id === id);
  };

  it('an order that is uncertain for ever: trades and its end, as if the exchange had reported them', async () => {
    const partner = await gateway.newPartner();
    const path = `/${partner.id}`;
    const token = operatorToken;
    const webhooks = { partner_id: partner.id, url: receiver.url(path) };
    await operators.client.call('marina.admin.v1.Webhooks.RegisterEndpoint', webhooks, token);
    const id = await uncertainOrder(partner);
    assert.equal(await used(partner), 100_000);
    const outcome: JsonObject = {
      order: {
        ...{ state: 'SETTLED_ORDER_STATE_CANCELLED', ended_at: now(), exchange_order_id: 'NGX-1' },
        trades: [
          { quantity: '40', price_kobo: '990', at: now(), exchange_trade_id: 'T1' },
          { quantity: '25', price_kobo: '1000', at: now(), exchange_trade_id: 'T2' },
        ],
      },
    };
    const proposal = await operators.propose(id, outcome);
    assert.equal(await operators.propose(id, outcome), proposal, 'the same proposal again is another one');
    assert.equal((await isUnsettled(partner, id))?.open_proposal.id, proposal);
    assert.equal((await get(partner, `/v1/orders/${id}`)).state, 'uncertain', 'a proposal changed the order');
    const found = await operators.as('bola', 'Diagnostics.FindOrders', { partner_id: partner.id });
    assert.equal(found.orders[0].open_proposal.proposed_by, 'ada');
    for (const name of ['ada', 'ADA'] as const) {
      const own = await operators.refused(name, 'Proposals.ApproveProposal', { id: proposal });
      assert.equal(own.code, status.PERMISSION_DENIED, 'its proposer approved it');
    }

    assert.deepEqual(
      await operators.approve(proposal).then(({ changed, object_state }) => ({ changed, object_state })),
      { changed: true, object_state: 'cancelled' },
    );
    assert.equal((await operators.approve(proposal)).changed, false, 'a second approval applied it again');
    const types = ['uncertain 0', 'partially_filled 40', 'partially_filled 65', 'cancelled 65'];
    await settledEvents(
      partner,
      id,
      types.map((type) => `order.${type}`),
    );
    const order = await get(partner, `/v1/orders/${id}`);
    assert.equal(order.exchange_order_id, 'NGX-1');
    assert.equal(order.average_fill_price_kobo_decimal, '993.846153846154');
    assert.equal(order.reason, 'The order was cancelled.');
    assert.equal(await used(partner), 65_000, 'what had not traded still counts against the limit of the day');
    const history = await historyOf(partner, id);
    assert.deepEqual(
      history.slice(-3).map(({ kind, state, quantity }) => [kind, state, quantity]),
      [
        ['settled_by_operator', 'partially_filled', 40],
        ['settled_by_operator', 'partially_filled', 25],
        ['settled_by_operator', 'cancelled', null],
      ],
    );
    assert.equal(await isUnsettled(partner, id), undefined);
    await eventually(() => {
      const received = receiver.at(path).map(({ body }) => JSON.parse(body).type);
      assert.deepEqual(received.toSorted(), types.map((type) => `order.${type.split(' ')[0]}`).toSorted());
    });

    const { entries } = await operators.as('ada', 'Audit.ListEntries', { subject: id });
    const [approved, proposed] = entries;
    assert.deepEqual([proposed.operator, proposed.action], ['ada', 'Settlements.ProposeSettlement']);
    assert.deepEqual([approved.operator, approved.action], ['bola', 'Proposals.ApproveProposal']);
    const detail = JSON.parse(approved.detail);
    assert.deepEqual(
      [detail.evidence, detail.reference, detail.proposed_by, detail.approved_by],
      [evidence, 'desk 4711', 'ada', 'bola'],
    );
    assert.equal(JSON.parse(approved.before).state, 'uncertain');
    assert.equal(JSON.parse(approved.after).filled_quantity, '65');
    const { entries: timeline } = await operators.as('ada', 'Diagnostics.GetTimeline', { id });
    for (const kind of ['settled_by_operator', 'Proposals.ApproveProposal']) {
      assert.ok(
        timeline.some((entry: Found) => entry.kind === kind),
        `the timeline has no ${kind}`,
      );
    }
    const seen = [JSON.stringify(await eventsOf(partner, id)), JSON.stringify(history), gateway.logged.join('\n')];
    for (const text of seen) assert.ok(!/Zainab|desk 4711/.test(text), 'the evidence is seen by others than operators');
  });

  it('an order settled as refused: what the exchange says later is alarmed and changes nothing', async () => {
    const partner = await gateway.newPartner();
    const { account } = partner;
    // The exchange takes it after the gateway has given up waiting and operators have settled it.
    const late = { call: Call.SUBMIT_ORDER, account, fault: WireFault.LATE_RECEIPT, delayMs: 8_000 };
    await gateway.controls.injectFault(late, callTimeout);
    const { body: placed } = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.equal(placed.state, 'uncertain');
    await operators.settle(placed.id, { order: { state: 'SETTLED_ORDER_STATE_REFUSED' } });
    await settledEvents(partner, placed.id, ['order.uncertain 0', 'order.refused 0']);
    assert.equal(await used(partner), 0);
    const settled = await get(partner, `/v1/orders/${placed.id}`);
    await eventually(async () => {
      assert.equal((await historyOf(partner, placed.id)).at(-1).kind, 'contradiction');
    }, 20_000);
    await fill(placed.id, 30n);
    await eventually(async () => {
      const { kind, quantity } = (await historyOf(partner, placed.id)).at(-1);
      assert.deepEqual([kind, quantity], ['contradiction', 30]);
    });
    const { exchange_order_id, ...now } = await get(partner, `/v1/orders/${placed.id}`);
    const { exchange_order_id: _, ...then } = settled;
    assert.deepEqual(now, then, 'the exchange changed what was settled');
    assert.notEqual(exchange_order_id, null);
    assert.equal((await eventsOf(partner, placed.id)).length, 2);
    assert.ok(gateway.logged.some((line) => line.includes('contradicts the state') && line.includes(placed.id)));
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.app.opsPort}/metrics`)).text();
    assert.match(metrics, new RegExp(`marina_contradictions_total\\{kind="order",partner="${partner.id}"\\} 2`));

    // The operators settle what the exchange has said: the trade that was held back counts.
    const { sequence } = (await historyOf(partner, placed.id)).at(-1);
    const trade = { step: sequence, quantity: '30', price_kobo: '1000', at: settled.updated_at };
    await operators.settle(placed.id, { order: { trades: [trade] } });
    const corrected = await get(partner, `/v1/orders/${placed.id}`);
    assert.deepEqual([corrected.state, corrected.filled_quantity], ['refused', 30]);
    assert.match(corrected.reason, /30 of 100 shares have traded/);
    const step = (await historyOf(partner, placed.id)).at(-1);
    assert.deepEqual([step.kind, step.trade_sequence, step.quantity], ['settled_by_operator', sequence, 30]);
  });

  it('a trade that was not reported: entered by hand, and counted once when its report comes', async () => {
    const partner = await gateway.newPartner();
    const id = await restingOrder(partner);
    await fill(id, 60n);
    await eventually(async () => assert.equal((await get(partner, `/v1/orders/${id}`)).filled_quantity, 60));
    const missing = { quantity: '20', price_kobo: '990', at: now(), exchange_trade_id: 'T9' };
    await operators.settle(id, { order: { trades: [missing] } });
    assert.equal((await get(partner, `/v1/orders/${id}`)).filled_quantity, 80);
    const entered = (await historyOf(partner, id)).at(-1).sequence;
    await fill(id, 20n, 990n);
    await eventually(async () => {
      const { kind, trade_sequence } = (await historyOf(partner, id)).at(-1);
      assert.deepEqual([kind, trade_sequence], ['report', entered]);
    });
    assert.equal((await get(partner, `/v1/orders/${id}`)).filled_quantity, 80, 'the trade was counted twice');
    await fill(id, 20n);
    await settledEvents(
      partner,
      id,
      ['pending 0', 'partially_filled 60', 'partially_filled 80', 'filled 100'].map((type) => `order.${type}`),
    );
  });

  it('a trade that was entered and never reported: a like trade at another time counts', async () => {
    const partner = await gateway.newPartner();
    const id = await restingOrder(partner);
    const earlier = new Date(Date.now() - 300_000).toISOString();
    const missing = { quantity: '20', price_kobo: '990', at: earlier, exchange_trade_id: 'T9' };
    await operators.settle(id, { order: { trades: [missing] } });
    await fill(id, 20n, 990n);
    await settledEvents(
      partner,
      id,
      ['pending 0', 'partially_filled 20', 'partially_filled 40'].map((type) => `order.${type}`),
    );
  });

  it('two trades that the desk gave as one: their reports are alarmed, and counted only once', async () => {
    const partner = await gateway.newPartner();
    const id = await restingOrder(partner);
    // The list reaches up to this instant, which is later than both reports.
    const listed = new Date(Date.now() + 300_000).toISOString();
    const together = { quantity: '40', price_kobo: '1000', at: listed, exchange_trade_id: 'T9' };
    await operators.settle(id, { order: { trades: [together] } });
    const entered = (await historyOf(partner, id)).at(-1).sequence;
    await fill(id, 20n);
    await fill(id, 20n);
    const held = await eventually(async () => {
      const steps = (await historyOf(partner, id)).filter(({ kind }) => kind === 'contradiction');
      assert.deepEqual(
        steps.map(({ quantity }) => quantity),
        [20, 20],
      );
      return steps;
    });
    assert.equal((await get(partner, `/v1/orders/${id}`)).filled_quantity, 40, 'the trades were counted twice');
    const trades = [
      { step: entered, quantity: '0', at: now() },
      ...held.map(({ sequence }) => ({ step: sequence, quantity: '20', price_kobo: '1000', at: now() })),
    ];
    await operators.settle(id, { order: { trades } });
    await fill(id, 60n);
    const types = ['pending 0', 'partially_filled 40', 'pending 0', 'partially_filled 20', 'partially_filled 40'];
    await settledEvents(
      partner,
      id,
      [...types, 'filled 100'].map((type) => `order.${type}`),
    );
  });

  it('a bust and a correction: the filled quantity goes down, and the order ends as the rest did', async () => {
    const partner = await gateway.newPartner();
    const id = await restingOrder(partner);
    await fill(id, 70n);
    await fill(id, 30n, 990n);
    await eventually(async () => assert.equal((await get(partner, `/v1/orders/${id}`)).state, 'filled'));
    const [first, second] = (await historyOf(partner, id)).filter(({ quantity }) => quantity !== null);
    const bust = { step: second.sequence, quantity: '0', at: now() };
    const refused = await operators.refusedProposal(id, { order: { trades: [bust] } });
    assert.equal(refused.code, status.FAILED_PRECONDITION);
    assert.match(refused.details, /what became of the rest/);
    await operators.settle(id, { order: { state: 'SETTLED_ORDER_STATE_CANCELLED', ended_at: now(), trades: [bust] } });
    const order = await get(partner, `/v1/orders/${id}`);
    assert.deepEqual([order.state, order.filled_quantity, order.filled_at], ['cancelled', 70, null]);
    assert.equal(order.reason, 'The exchange took back a trade of it.');
    assert.equal(await used(partner), 70_000);
    const correction = { step: first.sequence, quantity: '65', price_kobo: '995', at: now() };
    await operators.settle(id, { order: { trades: [correction] } });
    const corrected = await get(partner, `/v1/orders/${id}`);
    assert.deepEqual([corrected.state, corrected.filled_quantity], ['cancelled', 65]);
    assert.equal(corrected.average_fill_price_kobo_decimal, '995.0');
    const types = ['pending 0', 'partially_filled 70', 'filled 100', 'cancelled 70', 'cancelled 65'];
    await settledEvents(
      partner,
      id,
      types.map((type) => `order.${type}`),
    );
  });

  it('a trade that was refused: counted with the price that the exchange says it meant', async () => {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST', type: 'market', price_kobo: null });
    await fill(body.id, 90n, 9_000_000_000_000_000n);
    const refused = await eventually(async () => {
      const step = (await historyOf(partner, body.id)).at(-1);
      assert.equal(step.kind, 'contradiction');
      return step;
    });
    const trade = { step: refused.sequence, quantity: '90', price_kobo: '1000', at: now() };
    await operators.settle(body.id, { order: { trades: [trade] } });
    await settledEvents(partner, body.id, ['order.pending 0', 'order.partially_filled 90']);
  });

  it('an order that is open here although its day is over', async () => {
    const partner = await gateway.newPartner();
    const id = await restingOrder(partner);
    await fill(id, 60n);
    await eventually(async () => assert.equal((await get(partner, `/v1/orders/${id}`)).filled_quantity, 60));
    await operators.settle(id, { order: { state: 'SETTLED_ORDER_STATE_EXPIRED', ended_at: now() } });
    await settledEvents(partner, id, ['order.pending 0', 'order.partially_filled 60', 'order.expired 60']);
    assert.equal(await used(partner), 60_000);
    const cancel = await gateway.rest('DELETE', `/v1/orders/${id}`, { key: partner.key });
    assert.equal(cancel.body.error.code, 'order_not_cancelable');
    // The exchange expires it too, which agrees. Then a trade comes, which does not.
    await gateway.controls.expireOrder({ clientOrderId: id }, callTimeout);
    await eventually(async () => assert.equal((await historyOf(partner, id)).at(-1).kind, 'report'));
    await fill(id, 10n);
    await eventually(async () => assert.equal((await historyOf(partner, id)).at(-1).kind, 'contradiction'));
    assert.equal((await get(partner, `/v1/orders/${id}`)).filled_quantity, 60);
  });

  it('an object that changed since it was proposed is left alone, and the answer says what changed', async () => {
    const partner = await gateway.newPartner();
    const id = await restingOrder(partner);
    const proposal = await operators.propose(id, {
      order: { state: 'SETTLED_ORDER_STATE_EXPIRED', ended_at: now() },
    });
    await fill(id, 60n);
    await eventually(async () => assert.equal((await get(partner, `/v1/orders/${id}`)).filled_quantity, 60));
    const refused = await operators.refused('bola', 'Proposals.ApproveProposal', { id: proposal });
    assert.equal(refused.code, status.FAILED_PRECONDITION);
    assert.match(refused.details, /`state` was pending and is partially_filled, `filled_quantity` was 0 and is 60/);
    assert.equal((await get(partner, `/v1/orders/${id}`)).state, 'partially_filled');
    const other = await operators.refusedProposal(id, {
      order: { state: 'SETTLED_ORDER_STATE_CANCELLED', ended_at: now() },
    });
    assert.equal(other.code, status.ALREADY_EXISTS);
    const decline = { id: proposal, reason: 'a trade came' };
    assert.equal((await operators.as('ada', 'Proposals.DeclineProposal', decline)).changed, true);
    assert.equal((await operators.as('bola', 'Proposals.DeclineProposal', decline)).changed, false);
    const again = await operators.refused('bola', 'Proposals.ApproveProposal', { id: proposal });
    assert.match(again.details, /the proposal is declined/);
    const { proposals } = await operators.as('bola', 'Proposals.ListProposals', { object_id: id });
    assert.deepEqual(
      proposals.map(({ state, decided_by, decision_reason }: Found) => [state, decided_by, decision_reason]),
      [['PROPOSAL_STATE_DECLINED', 'ada', 'a trade came']],
    );
    await operators.settle(id, { order: { state: 'SETTLED_ORDER_STATE_EXPIRED', ended_at: now() } });
  });

  it('an application: opened, or never placed', async () => {
    const partner = await gateway.newPartner();
    const stranger = await gateway.newPartner();
    const uncertain = async () => {
      const { body } = await apply(gateway, partner, { last_name: 'SIM-RESET' });
      assert.equal(body.state, 'uncertain');
      return body.id as string;
    };
    const opened = await uncertain();
    const account = `S${partner.account.slice(1)}`;
    const foreign = { state: 'SETTLED_APPLICATION_STATE_OPENED', account: stranger.account };
    const refused = await operators.refusedProposal(opened, { application: foreign });
    assert.match(refused.details, /another partner's/);
    const outcome = { state: 'SETTLED_APPLICATION_STATE_OPENED', account: account.toLowerCase(), reference: 'B7' };
    await operators.settle(opened, { application: outcome });
    await settledEvents(partner, opened, ['application.uncertain', 'application.opened']);
    const { data } = await get(partner, '/v1/accounts');
    assert.ok(data.some((each: Found) => each.account === account && each.application === opened));
    const { reference } = await get(partner, `/v1/applications/${opened}`);
    assert.equal(reference, 'B7');

    const wanted = await uncertain();
    const documents = { state: 'SETTLED_APPLICATION_STATE_DOCUMENTS_REQUIRED', reference: 'B8' };
    await operators.settle(wanted, { application: documents });
    await settledEvents(partner, wanted, ['application.uncertain', 'application.documents_required']);

    const unplaced = await uncertain();
    await operators.settle(unplaced, { application: { state: 'SETTLED_APPLICATION_STATE_UNPLACED' } });
    await settledEvents(partner, unplaced, ['application.uncertain', 'application.unplaced']);
    assert.equal(await isUnsettled(partner, unplaced), undefined);
  });

  it('an allocation: the wallet follows once, and the ledger stays whole', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000_000n);
    const uncertain = async (amount: number) => {
      const { body } = await gateway.allocate(partner, { amount_kobo: amount });
      assert.equal(body.state, 'uncertain');
      return body.id as string;
    };
    const booked = await uncertain(1_999_008);
    const refused = await uncertain(2_999_008);
    const reserved = await get(partner, '/v1/wallet');
    assert.equal(reserved.reserved_kobo, 4_998_016);
    const booking = { state: 'SETTLED_ALLOCATION_STATE_BOOKED', broker_reference: 'B1', decided_at: now() };
    const proposal = await operators.propose(booked, { allocation: booking });
    const answers = await Promise.all([operators.approve(proposal), operators.approve(proposal)]);
    assert.deepEqual(answers.map(({ changed }) => changed).toSorted(), [false, true]);
    await operators.settle(refused, { allocation: { state: 'SETTLED_ALLOCATION_STATE_REFUSED' } });
    const wallet = await get(partner, '/v1/wallet');
    assert.deepEqual(
      [wallet.available_kobo, wallet.reserved_kobo, wallet.posted_kobo],
      [10_000_000 - 1_999_008, 0, 1_999_008],
    );
    await settledEvents(partner, booked, ['allocation.uncertain', 'allocation.booked']);
    await settledEvents(partner, refused, ['allocation.uncertain', 'allocation.refused']);
    assert.equal((await get(partner, '/v1/limits')).allocations_kobo_per_day.used, 1_999_008);
    const admin = adminClient(gateway.app.adminPort);
    try {
      assert.deepEqual(await verifyLedger(admin, partner.id), []);
    } finally {
      admin.close();
    }
    const settled = await operators.refusedProposal(booked, {
      allocation: { state: 'SETTLED_ALLOCATION_STATE_REFUSED' },
    });
    assert.match(settled.details, /an allocation that is booked cannot be settled/);
  });

  it('refuses what is no proposal, with the field that is wrong', async () => {
    const partner = await gateway.newPartner();
    const id = await uncertainOrder(partner);
    const refused = async (outcome: JsonObject, more: JsonObject = {}) => {
      const request = { object_id: id, outcome, evidence, reference: 'desk', ...more };
      const { code, details } = await operators.refused('ada', 'Settlements.ProposeSettlement', request);
      return `${status[code]}: ${details}`;
    };
    const order: JsonObject = { order: { state: 'SETTLED_ORDER_STATE_REFUSED' } };
    assert.match(await refused({}), /INVALID_ARGUMENT: `outcome` must have/);
    assert.match(await refused({ allocation: { state: 'SETTLED_ALLOCATION_STATE_REFUSED' } }), /object's kind/);
    assert.match(await refused(order, { evidence: 'short' }), /INVALID_ARGUMENT: `evidence`/);
    assert.match(await refused(order, { evidence: 'x'.repeat(2_001) }), /INVALID_ARGUMENT: `evidence`/);
    assert.match(await refused(order, { reference: '' }), /INVALID_ARGUMENT: `reference`/);
    assert.match(await refused(order, { object_id: `ord_${'a'.repeat(20)}` }), /NOT_FOUND/);
    const trade = { quantity: '10', price_kobo: '1000' };
    const open = 'SETTLED_ORDER_STATE_OPEN';
    assert.match(await refused({ order: { state: open, trades: [trade] } }), /trades\[0\]\.at` is required/);
    const timed = { ...trade, at: now() };
    assert.match(await refused({ order: { state: open, trades: [timed] } }), /exchange_trade_id` is required/);
    const twice = { ...timed, exchange_trade_id: 'T1' };
    assert.match(await refused({ order: { state: open, trades: [twice, twice] } }), /is that of another trade/);
    const { proposals } = await operators.as('ada', 'Proposals.ListProposals', { object_id: id });
    assert.deepEqual(proposals, []);
    assert.equal((await operators.as('ada', 'Diagnostics.GetStatus')).single_operator, false);
  });

  it('a proposal that nobody decides expires after seven days', async () => {
    const partner = await gateway.newPartner();
    const id = await uncertainOrder(partner);
    const outcome = { order: { state: 'SETTLED_ORDER_STATE_REFUSED' } };
    const proposal = await operators.propose(id, outcome);
    const status_ = await operators.as('ada', 'Diagnostics.GetStatus');
    assert.ok(status_.queues.some(({ name, count }: Found) => name === 'proposals' && Number(count) >= 1));
    // Older than a proposal lives.
    await gateway.database.write(
      statement('UPDATE proposals SET expires_at = ? WHERE id = ?', new Date(Date.now() - 1), proposal),
    );
    const late = await operators.refused('bola', 'Proposals.ApproveProposal', { id: proposal });
    assert.match(late.details, /the proposal is expired/);
    const list = (state: string) => operators.as('bola', 'Proposals.ListProposals', { state, limit: 100 });
    const ids = async (state: string) => (await list(state)).proposals.map((each: Found) => each.id);
    assert.ok((await ids('PROPOSAL_STATE_EXPIRED')).includes(proposal));
    assert.ok(!(await ids('PROPOSAL_STATE_OPEN')).includes(proposal));
    const first = await operators.as('bola', 'Proposals.ListProposals', { limit: 1 });
    assert.notEqual(first.next_cursor, '');
    const rest = await operators.as('bola', 'Proposals.ListProposals', { limit: 100, cursor: first.next_cursor });
    assert.ok(!rest.proposals.some((each: Found) => each.id === first.proposals[0].id));
    await operators.settle(id, outcome);
    assert.equal((await get(partner, `/v1/orders/${id}`)).state, 'refused');
    const applied = await list('PROPOSAL_STATE_APPLIED');
    assert.deepEqual([applied.proposals[0].object_id, applied.proposals[0].decided_by], [id, 'bola']);
  });
});

describe('an installation with a single operator', () => {
  it('lets the operator approve a proposal of his own, and says so', async () => {
    const gateway = await startGateway({
      MARINA_SINGLE_OPERATOR: 'true',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    const operators = await TwoOperators.connect(gateway.app.adminPort);
    try {
      assert.ok(gateway.logged.some((line) => line.includes('operators may approve their own proposals')));
      assert.equal((await operators.as('ada', 'Diagnostics.GetStatus')).single_operator, true);
      await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
      const partner = await gateway.newPartner();
      const { body } = await gateway.place(partner, { symbol: 'SIM-RESET' });
      const id = await operators.propose(body.id, { order: { state: 'SETTLED_ORDER_STATE_REFUSED' } });
      const approved = await operators.as('ada', 'Proposals.ApproveProposal', { id });
      assert.deepEqual([approved.changed, approved.object_state], [true, 'refused']);
    } finally {
      operators.close();
      await gateway.stop();
    }
  });
});
