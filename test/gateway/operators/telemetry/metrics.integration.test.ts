import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { openSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import { startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { Orders } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Call, WireFault } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { LogOutput } from '../../../../src/kit/log-output.ts';
import { adminClient } from '../../../support/admin.ts';
import { fourTypes, goodFields, overRest } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { noisePng } from '../../../support/images.ts';
import { type Scrape, scrape } from '../../../support/metrics.ts';
import { startTestNats } from '../../../support/servers.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

describe('the metrics of a gateway', () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  let partner: TestPartner;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway(receiver.variables);
    admin = adminClient(gateway.app.adminPort);
    partner = await gateway.newPartner();
  });
  after(async () => {
    admin.close();
    await gateway.stop();
    await receiver.close();
  });

  const look = () => scrape(gateway.app.opsPort);

  /** By how much series grew while something was done. */
  async function growth(work: () => Promise<unknown>): Promise<(...series: Parameters<Scrape['value']>) => number> {
    const before = await look();
    await work();
    const now = await look();
    return (...series) => now.value(...series) - before.value(...series);
  }

  const requests = 'marina_request_duration_seconds_count';
  const refusals = 'marina_request_refusals_total';

  it('count requests by protocol, operation and status, and refusals by their code', async () => {
    const grpc = createGrpcClient(Orders, `127.0.0.1:${gateway.app.grpcPort}`);
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${partner.key}`);
    const id = `ord_${'a'.repeat(20)}`;
    const grew = await growth(async () => {
      for (let count = 0; count < 3; count += 1) {
        const placed = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 10 + count });
        assert.equal(placed.status, 201, placed.text);
      }
      for (let count = 0; count < 2; count += 1) {
        assert.equal((await gateway.rest('GET', `/v1/orders/${id}`, { key: partner.key })).status, 404);
        await assert.rejects(grpc.getOrder({ id }, { ...callTimeout, metadata }));
      }
      const connect = await fetch(`http://127.0.0.1:${gateway.app.restPort}/marina.gateway.v1.Orders/ListOrders`, {
        method: 'POST',
        headers: { authorization: `Bearer ${partner.key}`, 'content-type': 'application/json' },
        body: '{}',
      });
      assert.equal(connect.status, 200, await connect.text());
      assert.equal((await gateway.rest('GET', '/v1/nothing', { key: partner.key })).status, 404);
      assert.equal((await gateway.rest('GET', '/v1/orders')).status, 401);
    });
    grpc.close();
    assert.equal(grew(requests, { protocol: 'rest', operation: 'Orders.CreateOrder', status: '201' }), 3);
    assert.equal(grew(requests, { protocol: 'rest', operation: 'Orders.GetOrder', status: '404' }), 2);
    assert.equal(grew(requests, { protocol: 'grpc', operation: 'Orders.GetOrder', status: '404' }), 2);
    assert.equal(grew(requests, { protocol: 'connect', operation: 'Orders.ListOrders', status: '200' }), 1);
    assert.equal(grew(requests, { protocol: 'rest', operation: 'none', status: '404' }), 1);
    const notFound = { operation: 'Orders.GetOrder', code: 'order_not_found' };
    assert.equal(grew(refusals, { protocol: 'rest', ...notFound }), 2);
    assert.equal(grew(refusals, { protocol: 'grpc', ...notFound }), 2);
    assert.equal(grew(refusals, { protocol: 'rest', code: 'unauthorized' }), 1);
  });

  it('count what limits refuse, by the limit', async () => {
    const hasty = await gateway.newPartner({ limits: { requestsPerSecond: 1, requestsBurst: 2 } });
    const poor = await gateway.newPartner({ limits: { ordersKoboPerDay: 1n, allocationsKoboPerDay: 1n } });
    await gateway.fund(poor, 1_000_000n);
    const grew = await growth(async () => {
      for (let count = 0; count < 4; count += 1) await gateway.rest('GET', '/v1/orders', { key: hasty.key });
      assert.equal((await gateway.place(poor, { symbol: 'SIM-REST' })).body.error.code, 'limit_exceeded');
      assert.equal((await gateway.allocate(poor, {})).body.error.code, 'limit_exceeded');
    });
    const refused = (limit: string) => grew('marina_limit_refusals_total', { limit });
    assert.ok(refused('requests_per_second') >= 1, 'requests beyond the burst');
    assert.equal(grew(refusals, { code: 'rate_limited' }), refused('requests_per_second'));
    assert.equal(refused('order_value_per_day'), 1);
    assert.equal(refused('allocations_per_day'), 1);
  });

  it('show what is unsettled and for how long, until it is settled', async () => {
    // It stays unclear for as long as the broker's record does not answer.
    await gateway.controls.injectFault(
      { call: Call.LOOK_UP_ORDER, fault: WireFault.UNAVAILABLE_BEFORE, times: 1_000 },
      callTimeout,
    );
    const placed = await gateway.place(partner, { symbol: 'SIM-HANG', quantity: 3 });
    assert.equal(placed.body.state, 'uncertain', placed.text);
    await eventually(async () => {
      const found = await look();
      assert.equal(found.value('marina_unsettled', { kind: 'order', state: 'uncertain' }), 1);
      assert.equal(found.value('marina_unsettled', { kind: 'allocation' }), 0);
      const age = found.value('marina_unsettled_oldest_seconds', { kind: 'order', state: 'uncertain' });
      assert.ok(age > 1 && age < 60, `${age} s`);
    });
    await gateway.controls.clearDirectives({}, callTimeout);
    await eventually(async () => {
      const { value } = await look();
      assert.equal(value('marina_unsettled', { kind: 'order' }), 0);
      assert.equal(value('marina_outbox_events'), 0, 'its events were taken');
    }, 60_000);
  });

  it('follow an event into the feed and to its endpoint, and name endpoints that are paused', async () => {
    const { id: partnerId } = partner;
    await admin.webhooks.registerEndpoint({ partnerId, url: receiver.url('/metrics') }, admin.options);
    const grew = await growth(async () => {
      assert.equal((await gateway.place(partner, { symbol: 'SIM-REST', quantity: 21 })).status, 201);
      await eventually(async () => {
        assert.ok((await look()).value('marina_webhook_commit_to_delivered_seconds_count') > 0, 'it was delivered');
      });
      await admin.webhooks.pauseEndpoint({ partnerId, reason: 'a test' }, admin.options);
    });
    assert.equal(grew('marina_webhook_attempt_duration_seconds_count', { outcome: 'delivered' }), 1);
    assert.equal(grew('marina_webhook_commit_to_delivered_seconds_count'), 1);
    await eventually(async () => {
      assert.equal((await look()).value('marina_webhook_paused_endpoints', { by: 'operator' }), 1);
    });
    await eventually(async () => {
      const { value, has } = await look();
      assert.equal(value('marina_outbox_events', { consumer: 'webhooks' }), 0);
      assert.equal(value('marina_outbox_oldest_seconds', { consumer: 'webhooks' }), 0);
      assert.ok(has('marina_stream_pending_messages', { consumer: 'webhooks' }));
      assert.equal(value('marina_stream_pending_messages', { consumer: 'webhooks' }), 0);
    });
  });

  it('count documents by what became of them', async () => {
    const applied = await gateway.rest('POST', '/v1/applications', {
      key: partner.key,
      idempotencyKey: randomUUID(),
      body: goodFields,
    });
    assert.equal(applied.status, 201, applied.text);
    const send = overRest(gateway.app.restPort);
    const file = await noisePng();
    await gateway.controls.injectFault(
      { call: Call.SEND_DOCUMENT, fault: WireFault.LOSE_ANSWER, times: 1 },
      callTimeout,
    );
    const grew = await growth(async () => {
      for (const type of fourTypes) await send({ key: partner.key, id: applied.body.id, type, file });
    });
    assert.equal(grew('marina_documents_total', { outcome: 'unclear' }), 1);
    assert.equal(grew('marina_documents_total', { outcome: 'delivered' }), 3);
  });

  it('count lines of the log that were dropped, while the log cannot be written', async () => {
    const full = openSync('/dev/full', 'w');
    const output = new LogOutput(full, () => undefined);
    const log = createLogger({ name: 'marina', level: 'info', destination: output });
    const other = await startApp(readConfig(gateway.variables), log, output);
    try {
      assert.equal((await scrape(other.opsPort)).value('marina_log_lines_dropped_total'), 0);
      while (output.dropped < 3) log.info('x'.repeat(100_000));
      assert.equal((await scrape(other.opsPort)).value('marina_log_lines_dropped_total'), 3);
      await eventually(async () => {
        const { value } = await scrape(other.opsPort);
        assert.ok(value('marina_part_trouble_seconds', { part: 'log' }) > 0);
        assert.equal(value('marina_log_lines_dropped_total'), output.dropped);
      });
    } finally {
      await other.stop();
    }
  });

  it('count the calls of operators', async () => {
    const grew = await growth(async () => {
      await admin.webhooks.getEndpoint({ partnerId: partner.id }, admin.options);
      await assert.rejects(admin.webhooks.getEndpoint({ partnerId: `par_${'a'.repeat(20)}` }, admin.options));
      await assert.rejects(admin.webhooks.getEndpoint({ partnerId: partner.id }, callTimeout));
    });
    const calls = (code: string) => grew('marina_operator_calls_total', { call: 'Webhooks.GetEndpoint', code });
    assert.deepEqual([calls('OK'), calls('NOT_FOUND'), calls('UNAUTHENTICATED')], [1, 1, 1]);
  });

  it('show what this process holds, follows and uses', async () => {
    await eventually(async () => {
      const { value } = await look();
      for (const lease of ['relay', 'order-reports', 'reconcile-orders', 'dispatcher']) {
        assert.equal(value('marina_leases_held', { lease }), 1, lease);
        assert.equal(value('marina_leases_taken', { lease }), 1, lease);
      }
      for (const kind of ['order', 'application']) assert.equal(value('marina_report_streams', { kind }), 1, kind);
    });
    await eventually(async () => {
      const { value } = await look();
      assert.equal(value('marina_database_connections', { state: 'waiting' }), 0);
    });
    const { value, has } = await look();
    assert.ok(value('marina_report_delay_seconds_count', { kind: 'order' }) > 0, 'reports were applied');
    assert.equal(value('marina_database_connections', { state: 'limit' }), 16);
    assert.equal(value('marina_trading_paused'), 0);
    assert.ok(has('nodejs_eventloop_lag_p99_seconds') && has('process_resident_memory_bytes'), "Node's own");
  });

  it('have no label that a partner or a broker could fill', async () => {
    await gateway.rest('GET', '/v1/canary-path', { key: partner.key });
    await gateway.rest('GET', `/v1/accounts/${partner.account}/balance`, { key: partner.key });
    const { text, labels } = await look();
    assert.doesNotMatch(text, /canary|ord_|app_|alc_|wdr_|key_|par_|msg_/);
    assert.ok(!text.includes(partner.account), 'no account');
    for (const [label, values] of labels) assert.ok(values.size < 60, `${label} has ${values.size} values`);
  });
});

describe('readiness', () => {
  it('says in JSON which part is in trouble, why and since when', async () => {
    const nats = await startTestNats();
    const gateway = await startGateway({ MARINA_NATS_URL: nats.url });
    const ready = async () => {
      const response = await fetch(`http://127.0.0.1:${gateway.app.opsPort}/readyz`);
      const body = (await response.json()) as {
        status: string;
        reasons: unknown[];
        degraded: Record<string, string>[];
      };
      return { ...body, code: response.status };
    };
    try {
      await eventually(async () => {
        assert.deepEqual(await ready(), { code: 200, status: 'ready', reasons: [], degraded: [] });
      }, 20_000);
      const stoppedAt = Date.now();
      await nats.stop();
      const trouble = await eventually(async () => {
        const { code, status, degraded } = await ready();
        assert.deepEqual([code, status], [200, 'ready']);
        return degraded.find(({ part }) => part === 'nats') ?? assert.fail(JSON.stringify(degraded));
      });
      assert.match(trouble.reason ?? '', /NATS cannot be reached/);
      const since = Date.parse(trouble.since ?? '');
      assert.ok(since >= stoppedAt - 1_000 && since <= Date.now(), trouble.since);
      const later = await eventually(async () => {
        const { degraded } = await ready();
        const seconds = (await scrape(gateway.app.opsPort)).value('marina_part_trouble_seconds', { part: 'nats' });
        assert.ok(seconds > 1, `${seconds} s`);
        return degraded.find(({ part }) => part === 'nats');
      });
      assert.deepEqual(later, trouble, 'since when stays');
      await nats.restart();
      await eventually(async () => assert.deepEqual((await ready()).degraded, []), 20_000);
    } finally {
      await gateway.stop();
      await nats.stop();
    }
  });
});
