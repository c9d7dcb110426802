import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { Call, WireFault } from '../../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { apply } from '../../../../support/applications.ts';
import { overRest } from '../../../../support/documents.ts';
import { eventually } from '../../../../support/eventually.ts';
import { callTimeout, type TestGateway, type TestPartner } from '../../../../support/gateway.ts';
import { noiseJpeg } from '../../../../support/images.ts';
import { scrape } from '../../../../support/metrics.ts';
import { type Found, TestOperator } from '../../../../support/operator.ts';

/** An amount that the simulated broker never takes and never answers. */
const hangingKobo = 999_005;
/** One that it books, and whose answer is lost. */
const lostKobo = 999_006;

describe('an operator who wants to know', { concurrency: 4 }, () => {
  let operator: TestOperator;
  let gateway: TestGateway;
  before(async () => {
    operator = await TestOperator.start({ MARINA_SUBMIT_TIMEOUT_MS: '1500', MARINA_READ_TIMEOUT_MS: '5000' });
    gateway = operator.gateway;
    // Without its fence what is missing stays unclear, and there is time to look at it.
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
  });
  after(() => operator.stop());

  const ask = (name: string, request: JsonObject = {}) => operator.call(`Diagnostics.${name}`, request);

  /** A replica reconciles for one call at a time, and other tests call too. */
  async function reconcile(request: JsonObject): Promise<Found> {
    for (;;) {
      try {
        return await ask('ReconcileNow', request);
      } catch (error) {
        if ((error as ServiceError).code !== status.RESOURCE_EXHAUSTED) throw error;
      }
    }
  }

  async function unsettledOf({ id }: TestPartner, more: JsonObject = {}): Promise<Found[]> {
    return (await ask('ListUnsettled', { partner_id: id, ...more })).objects;
  }

  const orderState = async (partner: TestPartner, id: string) =>
    (await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).body.state;

  it('how the gateway fares: parts, queues, leases, clocks and versions', async () => {
    const found = await eventually(async () => {
      const answer = await ask('GetStatus');
      assert.deepEqual(answer.troubles, []);
      assert.ok(answer.leases.length >= 10, `${answer.leases.length} leases`);
      assert.ok(
        answer.leases.every((lease: Found) => lease.is_held && lease.is_own),
        JSON.stringify(answer.leases),
      );
      const names = answer.queues.map((queue: Found) => queue.name);
      for (const name of [
        'outbox webhooks',

        'stream webhooks',
        'webhooks due',
        'orders',
        'cancels',
        'applications',
        'documents',
        'allocations',
      ]) {
        assert.ok(names.includes(name), `${name} is none of ${names.join(', ')}`);
      }
      return answer;
    }, 20_000);
    assert.equal(found.environment, 'sandbox');
    assert.deepEqual([found.upstream.connected, found.upstream.honours_not_after], [true, false]);
    assert.match(found.replica.version, /^\d+\.\d+\.\d+$/);
    assert.equal(found.replica.node_version, process.versions.node);
    assert.match(found.schema_version, /\d{13}$/);
    assert.ok(found.database_version.length > 2 && found.nats_version.length > 2, JSON.stringify(found));
    assert.ok(Math.abs(Number(found.database_ahead_ms)) < 2_000, `${found.database_ahead_ms} ms`);
    assert.ok(found.leases.some((lease: Found) => lease.name === 'relay'));
  });

  it('a brief status has only what waits, and leases that nobody holds', async () => {
    await eventually(async () => {
      const { queues, leases, upstream } = await ask('GetStatus', { brief: true });
      assert.deepEqual([queues.filter(({ count }: Found) => Number(count) === 0), leases], [[], []]);
      assert.equal(upstream.connected, true);
    }, 20_000);
    const partner = await gateway.newPartner();
    const { body } = await gateway.place(partner, { symbol: 'SIM-RESET' });
    assert.equal(body.state, 'uncertain');
    const { queues } = await ask('GetStatus', { brief: true });
    assert.ok(
      queues.some(({ name, count }: Found) => name === 'orders' && Number(count) >= 1),
      JSON.stringify(queues),
    );
  });

  it('everything that is unsettled, whatever it is, with by what that is known', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 2_000_000n);
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-HANG' });
    const { body: resting } = await gateway.place(partner, { symbol: 'SIM-REST' });
    const { body: allocation } = await gateway.allocate(partner, { amount_kobo: hangingKobo });
    const { body: wanting } = await apply(gateway, partner, { first_name: 'SIM-HANG-DOCUMENTS' });
    await gateway.controls.injectFault(
      { call: Call.CANCEL_ORDER, account: partner.account, times: 1, fault: WireFault.HANG },
      callTimeout,
    );
    const send = overRest(gateway.app.restPort);
    const [cancel, { body: application }, document] = await Promise.all([
      gateway.rest('DELETE', `/v1/orders/${resting.id}`, { key: partner.key }),
      apply(gateway, partner, { last_name: 'SIM-HANG' }),
      send({ key: partner.key, id: wanting.id, type: 'photo', file: await noiseJpeg() }),
    ]);
    assert.deepEqual(
      [order.state, allocation.state, application.state, cancel.body.error?.code, document.outcome],
      ['uncertain', 'uncertain', 'uncertain', 'cancel_unconfirmed', 'document_unconfirmed'],
    );

    const objects = await eventually(async () => {
      const found = await unsettledOf(partner);
      assert.equal(found.length, 5, JSON.stringify(found));
      for (const { kind, last_look_up: said } of found) {
        if (!/CANCEL|DOCUMENT/.test(kind)) assert.equal(said, 'missing', kind);
      }
      return found;
    }, 20_000);
    assert.deepEqual(
      objects.map(({ kind, id, state }) => [kind.replace('UNSETTLED_KIND_', ''), id, state]),
      [
        ['ORDER', order.id, 'uncertain'],
        ['CANCEL', resting.id, 'unconfirmed'],
        ['APPLICATION', application.id, 'uncertain'],
        ['DOCUMENT', wanting.id, 'unconfirmed'],
        ['ALLOCATION', allocation.id, 'uncertain'],
      ],
    );
    const [first, unclear, , photo] = objects;
    assert.ok(Number(first.age_ms) > 0 && first.look_ups >= 1 && first.next_check_at !== undefined);
    assert.match(first.evidence, /does not have it yet/);
    assert.match(unclear.evidence, /unconfirmed: no answer/);
    assert.deepEqual([photo.document_type, photo.sends], ['photo', 1]);

    const only = await unsettledOf(partner, { kind: 'UNSETTLED_KIND_ALLOCATION' });
    assert.deepEqual(
      only.map(({ id }) => id),
      [allocation.id],
    );
    assert.deepEqual(await unsettledOf(partner, { older_than_seconds: '86400' }), []);
    const pages: Found[] = [];
    for (let cursor = ''; ; ) {
      const page = await ask('ListUnsettled', { partner_id: partner.id, limit: 2, cursor });
      pages.push(...page.objects.map(({ id }: Found) => id));
      cursor = page.next_cursor;
      if (cursor === '') break;
    }
    assert.deepEqual(
      pages,
      objects.map(({ id }) => id),
    );
    const foreign = await ask('ListUnsettled', { partner_id: partner.id, limit: 2 });
    const misused = await operator.refused('Diagnostics.ListUnsettled', { cursor: foreign.next_cursor });
    assert.equal(misused.code, status.INVALID_ARGUMENT);
    assert.deepEqual(
      operator.client.violations(misused).map(({ field }) => field),
      ['cursor'],
    );

    // The reconciler asks about everything that it can: the cancel was not taken, and of the rest nothing is proven
    // yet.
    const asked = await eventually(async () => {
      const answer = await reconcile({ partner_id: partner.id, reason: 'the alarm rang' });
      const outcomes = answer.objects.map(({ outcome }: Found) => outcome);
      assert.ok(!outcomes.includes('RECONCILE_OUTCOME_BEING_SENT'), 'the time of the cancel is over');
      return answer;
    });
    assert.equal(asked.next_cursor, '');
    assert.deepEqual(
      asked.objects.map(({ id, outcome, look_up: said }: Found) => [
        id,
        outcome.replace('RECONCILE_OUTCOME_', ''),
        said,
      ]),
      [
        [order.id, 'STILL_UNCLEAR', 'missing'],
        [resting.id, 'SETTLED', 'found'],
        [application.id, 'STILL_UNCLEAR', 'missing'],
        [allocation.id, 'STILL_UNCLEAR', 'missing'],
      ],
    );
    const { messages } = await gateway.controls.listMessages({ clientOrderId: order.id }, callTimeout);
    assert.equal(messages.filter((message) => message.call === Call.SUBMIT_ORDER).length, 1, 'nothing was sent again');
    const { entries } = await operator.call('Audit.ListEntries', { partner_id: partner.id });
    assert.deepEqual(
      [entries[0].action, entries[0].detail],
      ['Diagnostics.ReconcileNow', '{"reason":"the alarm rang"}'],
    );
    const again = await gateway.rest('DELETE', `/v1/orders/${resting.id}`, { key: partner.key });
    assert.equal(again.body.state, 'cancelled', again.text);
    assert.deepEqual(
      (await unsettledOf(partner, { kind: 'UNSETTLED_KIND_CANCEL' })).length,
      0,
      'a cancel that is known is not listed',
    );
  });

  it('what a look-up of one order says now, and what kept it from answering', async () => {
    const partner = await gateway.newPartner();
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-LOST', time_in_force: 'gtc' });
    await gateway.controls.injectFault(
      { call: Call.LOOK_UP_ORDER, account: partner.account, times: 1000, fault: WireFault.UNAVAILABLE_BEFORE },
      callTimeout,
    );
    const one = await reconcile({ object_id: order.id });
    assert.equal(one.objects.length, 1, JSON.stringify(one));
    // The stream of reports may have told of it by now; then there is nothing to ask.
    if (one.objects[0].outcome === 'RECONCILE_OUTCOME_STILL_UNCLEAR') {
      assert.deepEqual([one.objects[0].look_up, one.objects[0].error_class], ['unanswered', 'unavailable']);
    }
    await eventually(async () => assert.equal(await orderState(partner, order.id), 'pending'), 20_000);
    const settled = await reconcile({ object_id: order.id });
    assert.equal(settled.objects[0].outcome, 'RECONCILE_OUTCOME_NOTHING_UNCLEAR');
    const nobody = await reconcile({ object_id: `ord_${'a'.repeat(20)}` }).catch((error: ServiceError) => error);
    assert.equal(nobody.code, status.NOT_FOUND);
  });
});

describe('an operator whom an alarm has called', () => {
  let operator: TestOperator;
  let gateway: TestGateway;
  before(async () => {
    operator = await TestOperator.start({ MARINA_SUBMIT_TIMEOUT_MS: '4000', MARINA_READ_TIMEOUT_MS: '5000' });
    gateway = operator.gateway;
  });
  // An allocation's state is changed here, without its entry.
  after(() => operator.stop(['usage', 'ledgers', 'exchange']));

  const ask = (name: string, request: JsonObject) => operator.call(`Diagnostics.${name}`, request);
  const reconcile = (request: JsonObject) => ask('ReconcileNow', request);

  it('is told that the answer to a send contradicts what was concluded: alarmed, counted and on the record', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000n);
    await gateway.controls.injectFault(
      {
        call: Call.SUBMIT_ALLOCATION,
        account: partner.account,
        times: 1,
        fault: WireFault.LATE_ANSWER,
        delayMs: 2_500,
      },
      callTimeout,
    );
    const allocating = gateway.allocate(partner, {});
    const id = await eventually(async () => {
      const [row] = await gateway.database.read(
        statement('SELECT id FROM allocations WHERE partner_id = ?', partner.id),
      );
      assert.ok(row !== undefined, 'the allocation is stored');
      const { allocations } = await gateway.controls.listAllocations(
        { clientAllocationId: String(row.id) },
        callTimeout,
      );
      assert.equal(allocations.length, 1, 'the broker has it');
      return String(row.id);
    });
    // As if it had been concluded that it never left.
    await gateway.database.write(
      statement("UPDATE allocations SET state = 'refused', check_at = NULL WHERE id = ?", id),
    );
    await allocating;
    await eventually(() => {
      const line = gateway.logged.find(
        (each) => each.includes('contradicts the state of an object') && each.includes(id),
      );
      assert.match(line ?? '', /"level":"error".*says booked, and the allocation is refused/);
    });
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.app.opsPort}/metrics`)).text();
    assert.match(metrics, /marina_contradictions_total\{kind="allocation",partner="par_\w+"\} 1/);
    const { entries } = await ask('GetTimeline', { id });
    const step = entries.find(({ kind }: Found) => kind === 'contradiction');
    const { contradictions } = await ask('ListContradictions', { object_id: id });
    const [found, ...others] = contradictions;
    assert.deepEqual(
      [found.partner_id, found.step, found.detail, found.trade, others],
      [partner.id, step.step, step.detail, undefined, []],
    );
    const open = await scrape(gateway.app.opsPort);
    assert.equal(open.value('marina_contradictions_open', { kind: 'allocation', partner: partner.id }), 1);
  });

  it('when the broker is back, what is unclear is settled by asking now; what is being sent is left alone', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 2_000_000n);
    const { account } = partner;
    await gateway.controls.injectFault(
      { call: Call.LOOK_UP_ALLOCATION, account, times: 1_000, fault: WireFault.UNAVAILABLE_BEFORE },
      callTimeout,
    );
    const { body: allocation } = await gateway.allocate(partner, { amount_kobo: lostKobo });
    assert.equal(allocation.state, 'uncertain');
    const one = { object_id: allocation.id as string };
    const [unanswered] = (await reconcile(one)).objects;
    assert.deepEqual(
      [unanswered.outcome, unanswered.look_up, unanswered.error_class, unanswered.state_now],
      ['RECONCILE_OUTCOME_STILL_UNCLEAR', 'unanswered', 'unavailable', 'uncertain'],
    );
    await gateway.controls.clearDirectives({}, callTimeout);
    const [settled] = (await reconcile(one)).objects;
    assert.equal(settled.state_now, 'booked');
    assert.match(settled.outcome, /SETTLED|NOTHING_UNCLEAR/);

    const placing = gateway.place(partner, { symbol: 'SIM-HANG' });
    const id = await eventually(async () => {
      const [row] = await gateway.database.read(statement('SELECT id FROM orders WHERE partner_id = ?', partner.id));
      assert.ok(row !== undefined, 'the order is stored');
      return String(row.id);
    });
    const [sending] = (await reconcile({ object_id: id })).objects;
    if (sending.state_before === 'sending') {
      assert.deepEqual([sending.outcome, sending.state_now], ['RECONCILE_OUTCOME_BEING_SENT', 'sending']);
    }
    assert.equal((await placing).body.state, 'uncertain');
  });
});
