import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { startApp } from '../../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../../src/gateway/app/config.ts';
import { createLogger } from '../../../../../src/kit/log.ts';
import { eventually } from '../../../../support/eventually.ts';
import {
  callTimeout,
  operatorToken,
  startGateway,
  type TestGateway,
  type TestPartner,
} from '../../../../support/gateway.ts';
import { scrape } from '../../../../support/metrics.ts';
import type { Found } from '../../../../support/operator.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

describe('what the broker said against the state of an object', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  before(async () => {
    gateway = await startGateway({
      MARINA_SUBMIT_TIMEOUT_MS: '1000',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    operators = await TwoOperators.connect(gateway.app.adminPort);
  });
  after(async () => {
    operators.close();
    // The exchange has trades that the gateway did not count.
    await gateway.stop(['exchange']);
  });

  const list = (request: Record<string, string | number | boolean> = {}): Promise<Found> =>
    operators.as('ada', 'Diagnostics.ListContradictions', request);
  const openOf = async (partner: TestPartner): Promise<Found[]> =>
    (await list({ partner_id: partner.id })).contradictions;
  const acknowledge = (object_id: string, up_to_step: number, reason = 'the desk says it is a test of theirs') =>
    operators.as('ada', 'Diagnostics.AcknowledgeContradiction', { object_id, up_to_step, reason });
  const fill = (id: string, quantity: bigint) =>
    gateway.controls.fillOrder({ clientOrderId: id, quantity, priceKobo: 990n }, callTimeout);

  /** An order that has expired here, and then so many trades of so many shares each that the exchange reports all the same. */
  async function contradicted(partner: TestPartner, trades = 1, quantity = 30n): Promise<string> {
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.equal(body.state, 'pending');
    const ended_at = new Date().toISOString();
    await operators.settle(body.id, { order: { state: 'SETTLED_ORDER_STATE_EXPIRED', ended_at } });
    await contradict(body.id, trades, quantity);
    return body.id;
  }

  async function contradict(id: string, trades = 1, quantity = 30n): Promise<void> {
    const before = (await list({ object_id: id, include_ended: true })).contradictions.length;
    for (let count = 0; count < trades; count += 1) await fill(id, quantity);
    await eventually(async () => {
      const { contradictions } = await list({ object_id: id, include_ended: true });
      assert.equal(contradictions.length, before + trades);
    });
  }

  async function opened(partner: TestPartner): Promise<{ metric: number; queue: number }> {
    const metrics = await scrape(gateway.app.opsPort);
    const { queues } = await operators.as('ada', 'Diagnostics.GetStatus');
    const queue = queues.find(({ name }: Found) => name === 'contradictions');
    const labels = { kind: 'order', partner: partner.id };
    return { metric: metrics.value('marina_contradictions_open', labels), queue: Number(queue.count) };
  }

  it('is listed with its trade as a settlement takes it, and is open until that settlement is approved', async () => {
    const partner = await gateway.newPartner();
    const id = await contradicted(partner);
    const [one, ...others] = await openOf(partner);
    assert.deepEqual(others, []);
    const { entries } = await operators.as('ada', 'Diagnostics.GetTimeline', { id });
    const step = entries.find(({ kind }: Found) => kind === 'contradiction');
    assert.deepEqual(
      [one.partner_id, one.object_id, one.step, one.at, one.state, one.detail, one.report_number, one.upstream_at],
      [partner.id, id, step.step, step.at, 'expired', step.detail, step.report_number, step.upstream_at],
    );
    assert.deepEqual([one.quantity, one.price_kobo, one.ended_at, one.ended_by], ['30', '990', undefined, '']);
    await eventually(async () => assert.deepEqual(await opened(partner), { metric: 1, queue: 1 }));

    const proposal = await operators.propose(id, { order: { trades: [one.trade] } });
    const [proposed] = await openOf(partner);
    assert.equal(proposed.open_proposal.id, proposal);
    await operators.approve(proposal);
    assert.deepEqual(await openOf(partner), []);
    const { contradictions } = await list({ object_id: id, include_ended: true });
    const [ended] = contradictions;
    assert.deepEqual([ended.ended_by, ended.proposal_id, ended.end_reason], ['bola', proposal, '']);
    assert.ok(Date.parse(ended.ended_at) >= Date.parse(ended.at));
    await eventually(async () => assert.deepEqual(await opened(partner), { metric: 0, queue: 0 }));
    const order = (await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body;
    assert.deepEqual([order.state, order.filled_quantity], ['expired', 30]);
  });

  it('is open again when the broker says something further after the settlement', async () => {
    const partner = await gateway.newPartner();
    const id = await contradicted(partner);
    const [first] = await openOf(partner);
    await operators.settle(id, { order: { trades: [first.trade] } });
    await contradict(id, 1, 20n);
    const [second, ...others] = await openOf(partner);
    assert.deepEqual([second.quantity, others], ['20', []]);
    await acknowledge(id, second.step);
  });

  it('stays open for a trade that a settlement does not count', async () => {
    const partner = await gateway.newPartner();
    const id = await contradicted(partner, 2, 20n);
    const [newest, oldest] = await openOf(partner);
    await operators.settle(id, { order: { trades: [newest.trade] } });
    assert.deepEqual(
      (await openOf(partner)).map(({ step }) => step),
      [oldest.step],
    );
    await operators.settle(id, { order: { trades: [oldest.trade] } });
    assert.deepEqual(await openOf(partner), []);
    const order = (await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body;
    assert.deepEqual([order.state, order.filled_quantity], ['expired', 40]);
  });

  it('is settled together with the others of its order', async () => {
    const partner = await gateway.newPartner();
    const id = await contradicted(partner, 2, 20n);
    const trades = (await openOf(partner)).map(({ trade }) => trade).reverse();
    await operators.settle(id, { order: { trades } });
    assert.deepEqual(await openOf(partner), []);
  });

  it('stays open when a proposal is declined', async () => {
    const partner = await gateway.newPartner();
    const id = await contradicted(partner);
    const [one] = await openOf(partner);
    const proposal = await operators.propose(id, { order: { trades: [one.trade] } });
    await operators.as('bola', 'Proposals.DeclineProposal', { id: proposal, reason: 'the desk is not sure' });
    assert.equal((await openOf(partner)).length, 1);
    await acknowledge(id, one.step);
  });

  it('is open until an operator acknowledges it with a reason, up to the one that he saw', async () => {
    const partner = await gateway.newPartner();
    const id = await contradicted(partner, 3, 5n);
    const [newest, seen] = await openOf(partner);
    assert.deepEqual(await acknowledge(id, seen.step), { changed: true });
    assert.deepEqual(
      (await openOf(partner)).map(({ step }) => step),
      [newest.step],
      'one that the operator did not see was ended',
    );
    assert.deepEqual(await acknowledge(id, seen.step, 'another reason'), { changed: false });
    const { contradictions } = await list({ object_id: id, include_ended: true });
    assert.deepEqual(
      contradictions.map(({ end_reason, ended_by }: Found) => [end_reason, ended_by]),
      [['', ''], ...Array(2).fill(['the desk says it is a test of theirs', 'ada'])],
    );
    const { entries } = await operators.as('ada', 'Audit.ListEntries', { subject: id, limit: 1 });
    assert.deepEqual([entries[0].action, entries[0].operator], ['Diagnostics.AcknowledgeContradiction', 'ada']);
    assert.deepEqual(JSON.parse(entries[0].detail), {
      ...{ up_to_step: seen.step, contradictions: 2, reason: 'the desk says it is a test of theirs' },
    });
    await acknowledge(id, newest.step);

    const refused = (request: Record<string, string | number>) =>
      operators.refused('ada', 'Diagnostics.AcknowledgeContradiction', { reason: 'a test', ...request });
    for (const request of [
      { object_id: id, up_to_step: newest.step + 1 },
      { object_id: id, up_to_step: 1 },
      { object_id: `ord_${'a'.repeat(20)}`, up_to_step: 1 },
    ]) {
      assert.equal((await refused(request)).code, status.NOT_FOUND, JSON.stringify(request));
    }
  });

  it('shows no trade to settle if the trade counts already, because the order had been rejected', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.place(partner, { symbol: 'SIM-KILLED' });
    const stateOf = async () => (await gateway.rest('GET', `/v1/orders/${body.id}`, { key: partner.key })).body.state;
    await eventually(async () => assert.equal(await stateOf(), 'rejected'));
    await contradict(body.id, 1, 10n);
    const [one] = await openOf(partner);
    assert.deepEqual([one.state, one.quantity, one.trade], ['rejected', '10', undefined]);
    await acknowledge(body.id, one.step);
  });

  it('is listed page by page, newest first, of one partner or of all, and of those that ended too', async () => {
    const partner = await gateway.newPartner();
    const other = await gateway.newPartner();
    const ids = [
      await contradicted(partner, 2, 5n),
      await contradicted(other, 1, 5n),
      await contradicted(partner, 1, 5n),
    ];
    const [first = '', second = '', third = ''] = ids;
    const seen: [string, number][] = [];
    for (let cursor = ''; ; ) {
      const page = await list({ limit: 2, cursor });
      seen.push(...page.contradictions.map(({ object_id, step }: Found) => [object_id, step]));
      cursor = page.next_cursor;
      if (cursor === '') break;
    }
    assert.deepEqual(
      seen.map(([id]) => id),
      [third, second, first, first],
    );
    assert.ok((seen[2]?.[1] ?? 0) > (seen[3]?.[1] ?? 0), 'of one object the newest comes first');
    await acknowledge(first, seen[2]?.[1] ?? 0);
    const own = { partner_id: partner.id };
    assert.deepEqual(
      (await list(own)).contradictions.map(({ object_id }: Found) => object_id),
      [third],
    );
    const all = await list({ ...own, include_ended: true, limit: 2 });
    const rest = await list({ ...own, include_ended: true, limit: 2, cursor: all.next_cursor });
    assert.deepEqual(
      [...all.contradictions, ...rest.contradictions].map(({ object_id }: Found) => object_id),
      [third, first, first],
    );
    const everything = await list({ include_ended: true, limit: 3 });
    assert.deepEqual(
      everything.contradictions.map(({ object_id }: Found) => object_id),
      [third, second, first],
    );
    const foreign = await operators.refused('ada', 'Diagnostics.ListContradictions', { cursor: all.next_cursor });
    assert.equal(foreign.code, status.INVALID_ARGUMENT);
    const nobody = [{ partner_id: `par_${'a'.repeat(20)}` }, { object_id: `ord_${'a'.repeat(20)}` }] as JsonObject[];
    for (const request of nobody) {
      const error = await operators.refused('ada', 'Diagnostics.ListContradictions', request);
      assert.equal(error.code, status.NOT_FOUND);
    }
    for (const id of [second, third]) {
      const { contradictions } = await list({ object_id: id });
      await acknowledge(id, contradictions[0].step);
    }
  });

  it('is the same on another replica, and after a restart, and two that acknowledge it at once do so once', async () => {
    const partner = await gateway.newPartner();
    const id = await contradicted(partner);
    const [one] = await openOf(partner);
    const second = await startApp(readConfig(gateway.variables), createLogger({ name: 'marina', level: 'silent' }));
    const others = operators.at(second.adminPort);
    try {
      const found = await others.as('bola', 'Diagnostics.ListContradictions', { partner_id: partner.id });
      assert.deepEqual(found.contradictions, [one]);
      const metrics = await scrape(second.opsPort);
      assert.equal(metrics.value('marina_contradictions_open', { kind: 'order', partner: partner.id }), 1);
      const request = { object_id: id, up_to_step: one.step, reason: 'both saw it' };
      const answers = await Promise.all([
        ...Array.from({ length: 3 }, () => operators.as('ada', 'Diagnostics.AcknowledgeContradiction', request)),
        ...Array.from({ length: 3 }, () => others.as('bola', 'Diagnostics.AcknowledgeContradiction', request)),
      ]);
      assert.equal(answers.filter(({ changed }) => changed).length, 1);
      const { entries } = await operators.as('ada', 'Audit.ListEntries', { subject: id });
      const acknowledged = entries.filter(({ action }: Found) => action === 'Diagnostics.AcknowledgeContradiction');
      assert.equal(acknowledged.length, 1);
    } finally {
      others.close();
      await second.stop();
    }
  });
});
