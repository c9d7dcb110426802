import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { AttemptOutcome, DeliveryState } from '../../../../src/gen/marina/admin/v1/webhooks_pb.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { type Received, verify, WebhookReceiver } from '../../../support/webhook-receiver.ts';

describe('webhooks', () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway(receiver.variables);
    admin = adminClient(gateway.app.adminPort);
  });
  after(async () => {
    admin.close();
    await gateway.stop();
    await receiver.close();
  });

  /** A partner with an endpoint of its own. */
  async function register(path: string): Promise<{ partner: TestPartner; secret: string }> {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
    const { secret } = await admin.webhooks.registerEndpoint(
      { partnerId: partner.id, url: receiver.url(path) },
      admin.options,
    );
    return { partner, secret };
  }

  async function place(partner: TestPartner, count = 1): Promise<void> {
    for (let number = 0; number < count; number += 1) {
      quantity += 1;
      const { status, text } = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc', quantity });
      assert.equal(status, 201, text);
    }
  }
  let quantity = 0;

  async function arrived(path: string, count: number): Promise<Received[]> {
    return eventually(() => {
      const received = receiver.at(path);
      assert.equal(received.length, count);
      return received;
    }, 15_000);
  }

  const endpointOf = async (partner: TestPartner) => {
    const { endpoint } = await admin.webhooks.getEndpoint({ partnerId: partner.id }, admin.options);
    assert.ok(endpoint !== undefined);
    return endpoint;
  };

  const deliveriesOf = async (
    partner: TestPartner,
    more: { state?: DeliveryState; limit?: number; objectId?: string } = {},
  ) => (await admin.webhooks.listDeliveries({ partnerId: partner.id, ...more }, admin.options)).deliveries;

  async function advance(minutes: number): Promise<void> {
    await admin.clock.advanceClock({ by: { seconds: BigInt(Math.round(minutes * 60)) } }, admin.options);
  }

  it('its log shows which object each event is about, and lists the events of one object', async () => {
    const { partner } = await register('/log');
    const [{ body: one }, { body: other }] = [
      await gateway.place(partner, { symbol: 'SIM-REST', quantity: 11 }),
      await gateway.place(partner, { symbol: 'SIM-REST', quantity: 12 }),
    ];
    await gateway.rest('DELETE', `/v1/orders/${one.id}`, { key: partner.key });
    await arrived('/log', 3);
    const shown = async (more = {}) =>
      (await deliveriesOf(partner, more)).map(({ type, objectKind, objectId }) => [type, objectKind, objectId]);
    const [cancelled, second, first] = [
      ['order.cancelled', 'order', one.id],
      ['order.pending', 'order', other.id],
      ['order.pending', 'order', one.id],
    ];
    assert.deepEqual(await shown(), [cancelled, second, first]);
    assert.deepEqual(await shown({ objectId: one.id }), [cancelled, first]);
    assert.deepEqual(await shown({ objectId: one.id, limit: 1 }), [cancelled]);
    assert.deepEqual(await shown({ objectId: `ord_${'a'.repeat(20)}` }), []);
  });

  it('an event that waits in memory for a slow endpoint is not sent once it is 28 h 51 min old', async () => {
    const { partner } = await register('/slow');
    await admin.webhooks.pauseEndpoint({ partnerId: partner.id, reason: 'test' }, admin.options);
    await place(partner, 8);
    await eventually(async () => assert.equal((await deliveriesOf(partner)).length, 8));
    // Less than the time that an attempt has, and more than the clock needs to be set on a busy machine.
    receiver.slow('/slow', 8_000);
    // One read brings all of them into memory, and the endpoint has four slots.
    await admin.webhooks.resumeEndpoint({ partnerId: partner.id, reason: 'test' }, admin.options);
    await arrived('/slow', 4);
    await advance(28 * 60 + 51);
    receiver.slow('/slow', 0);
    await place(partner);
    await eventually(() => assert.ok(receiver.at('/slow').some(({ version }) => version === 9)), 40_000);
    assert.deepEqual(
      receiver
        .at('/slow')
        .map(({ version }) => version)
        .sort(),
      [1, 2, 3, 4, 9],
    );
  });

  it("each event arrives signed, with the feed's bytes and the headers of the contract", async () => {
    const { partner, secret } = await register('/first');
    await place(partner, 3);
    const received = await arrived('/first', 3);
    const feed = await gateway.rest('GET', '/v1/events', { key: partner.key });
    for (const each of received) {
      verify(each, secret);
      assert.ok(feed.text.includes(each.body), 'the body is the bytes the feed shows');
      assert.equal(each.headers['content-type'], 'application/json');
      assert.equal(each.headers['user-agent'], 'Marina-Webhooks/1.0');
      assert.ok(Math.abs(Number(each.headers['webhook-timestamp']) * 1_000 - Date.now()) < 60_000);
      assert.equal(JSON.parse(each.body).id, each.id);
    }
    assert.deepEqual(received.map(({ version }) => version).sort(), [1, 2, 3]);
    await eventually(async () => {
      const deliveries = await deliveriesOf(partner);
      assert.deepEqual(
        deliveries.map(({ version, state, attempts }) => [version, state, attempts.length]),
        [3n, 2n, 1n].map((version) => [version, DeliveryState.DELIVERED, 1]),
      );
      assert.equal(deliveries[0]?.attempts[0]?.status, 200);
      assert.equal(deliveries[0]?.attempts[0]?.errorClass, '');
    });
    const [row] = await gateway.database.read(
      statement('SELECT secret FROM webhook_endpoints WHERE partner_id = ?', partner.id),
    );
    assert.ok(
      !Buffer.from(row?.secret as Buffer).includes(secret.slice(6, 20)),
      'the secret is not readable in the database',
    );
    assert.ok(!gateway.logged.join('').includes(secret.slice(6)), 'nor in the log');
  });

  it('events from before the registration are in the feed only', async () => {
    const partner = await gateway.newPartner();
    await place(partner, 2);
    await eventually(async () => {
      const { body } = await gateway.rest('GET', '/v1/events', { key: partner.key });
      assert.equal(body.data.length, 2);
    });
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: receiver.url('/late') }, admin.options);
    await place(partner, 1);
    const [only] = await arrived('/late', 1);
    assert.equal(only?.version, 3);
    assert.equal((await endpointOf(partner)).afterVersion, 2n);
    const rows = await gateway.database.read(statement('SELECT version FROM outbox WHERE partner_id = ?', partner.id));
    assert.deepEqual(rows, [], 'what is delivered nowhere is signed all the same');
  });

  it('an event the endpoint refuses is sent again on the whole schedule, until 28 hours and 51 minutes', async () => {
    const { partner, secret } = await register('/refuses');
    receiver.reply('/refuses', ({ version }) => (version === 1 ? 422 : 200));
    await place(partner, 1);
    await arrived('/refuses', 1);
    for (const [index, minutes] of [1, 5, 15, 30, 60, 120, 240, 480, 720].entries()) {
      const failed = index + 1;
      const [delivery] = await eventually(async () => {
        const deliveries = (await deliveriesOf(partner)).filter(({ version }) => version === 1n);
        assert.equal(deliveries[0]?.attemptsCounted, failed);
        return deliveries;
      });
      const attempt = delivery?.attempts.at(-1);
      const [at, due] = [attempt?.at, delivery?.dueAt];
      assert.ok(at !== undefined && due !== undefined);
      const waitMinutes = (Number(due.seconds) - Number(at.seconds)) / 60;
      assert.ok(Math.abs(waitMinutes - minutes) < 0.2, `after failure ${failed}: ${waitMinutes} minutes`);
      assert.deepEqual([attempt?.outcome, attempt?.status], [AttemptOutcome.EVENT_FAILED, 422]);
      await advance(minutes - 0.5);
      await place(partner, 1);
      // Others go on meanwhile, and show that what is not due has not come.
      await eventually(() =>
        assert.ok(
          receiver.at('/refuses').some(({ version }) => version === failed + 1),
          'another event arrived',
        ),
      );
      assert.equal(receiver.at('/refuses').filter(({ version }) => version === 1).length, failed);
      await advance(0.6);
      await eventually(() => {
        assert.equal(receiver.at('/refuses').filter(({ version }) => version === 1).length, failed + 1);
      });
    }
    const tries = receiver.at('/refuses').filter(({ version }) => version === 1);
    assert.equal(tries.length, 10);
    for (const each of tries) verify(each, secret);
    assert.equal(new Set(tries.map(({ body }) => body)).size, 1, 'the same bytes in every attempt');
    assert.equal(new Set(tries.map(({ id }) => id)).size, 1, 'the same id in every attempt');
    assert.equal((await endpointOf(partner)).failingSince, undefined, 'the endpoint itself is well');
    await advance(60);
    await eventually(async () => {
      const expired = await deliveriesOf(partner, { state: DeliveryState.EXPIRED });
      assert.deepEqual(
        expired.map(({ version }) => version),
        [1n],
      );
    });
    await advance(13 * 60);
    await place(partner, 1);
    await eventually(() =>
      assert.ok(
        receiver.at('/refuses').some(({ version }) => version === 11),
        'a new event arrived',
      ),
    );
    assert.equal(receiver.at('/refuses').filter(({ version }) => version === 1).length, 10, 'it is not sent any more');
  });

  it('three failures in a row pause an endpoint; it is probed with the next event each minute, and drains in order', async () => {
    const { partner } = await register('/down');
    let isDown = true;
    receiver.reply('/down', () => (isDown ? 503 : 200));
    for (const count of [1, 2, 3]) {
      await place(partner, 1);
      await arrived('/down', count);
      await eventually(async () => assert.equal((await endpointOf(partner)).failuresInARow, count));
    }
    await eventually(async () => assert.notEqual((await endpointOf(partner)).failingSince, undefined));
    await place(partner, 3);
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.app.opsPort}/metrics`)).text();
    assert.match(metrics, /marina_webhook_paused_endpoints\{by="failures"\} [1-9]/);
    for (const [index, version] of [1, 2, 3, 4, 5, 6, 1].entries()) {
      await advance(1.05);
      const received = await arrived('/down', 4 + index);
      assert.equal(received.at(-1)?.version, version, 'one event each minute, and the next one each time');
      await eventually(async () => {
        const { nextProbeAt, failuresInARow } = await endpointOf(partner);
        assert.equal(failuresInARow, 4 + index);
        assert.notEqual(nextProbeAt, undefined);
      });
    }
    const waiting = await deliveriesOf(partner);
    assert.deepEqual(
      waiting.map(({ version, attemptsCounted }) => [version, attemptsCounted]),
      [6, 5, 4, 3, 2, 1].map((version) => [BigInt(version), version <= 3 ? 1 : 0]),
      'probes do not count for the schedule',
    );
    isDown = false;
    await advance(1.05);
    const received = await arrived('/down', 10 + 6);
    assert.equal(received[10]?.version, 2, 'the probe goes on where the last one was');
    await eventually(async () => {
      const deliveries = await deliveriesOf(partner);
      assert.ok(
        deliveries.every(({ state }) => state === DeliveryState.DELIVERED),
        'all are delivered',
      );
    });
    const drained = received.slice(11).map(({ version }) => version ?? 0);
    assert.deepEqual([...drained].sort(), [1, 3, 4, 5, 6]);
    assert.equal(drained[0], 1, 'the oldest first');
    assert.equal((await endpointOf(partner)).failuresInARow, 0);
  });

  it('a probe the endpoint refuses with a 4xx puts its event on the schedule and resumes nothing', async () => {
    const { partner } = await register('/probe-refused');
    let status = 500;
    receiver.reply('/probe-refused', () => status);
    await place(partner, 3);
    await eventually(async () => assert.notEqual((await endpointOf(partner)).failingSince, undefined));
    const tries = receiver.at('/probe-refused').length;
    status = 400;
    await advance(1.05);
    await arrived('/probe-refused', tries + 1);
    await eventually(async () => {
      const { failingSince, failuresInARow } = await endpointOf(partner);
      assert.notEqual(failingSince, undefined, 'only a 2xx resumes');
      assert.equal(failuresInARow, 0);
    });
    const [delivery] = (await deliveriesOf(partner)).filter(({ version }) => version === 1n);
    assert.ok(delivery?.dueAt !== undefined);
    assert.ok(delivery.attemptsCounted >= 2, 'counted, unlike a failed try');
  });

  it('a move sends what waits to the new URL, with the secret kept, and ends the automatic pause', async () => {
    const { partner, secret } = await register('/moved-from');
    receiver.reply('/moved-from', () => 500);
    await place(partner, 4);
    await eventually(async () => assert.notEqual((await endpointOf(partner)).failingSince, undefined));
    const before = receiver.at('/moved-from').length;
    const { endpoint } = await admin.webhooks.moveEndpoint(
      { partnerId: partner.id, url: receiver.url('/moved-to') },
      admin.options,
    );
    assert.equal(endpoint?.failingSince, undefined);
    const received = await arrived('/moved-to', 4);
    for (const each of received) verify(each, secret);
    assert.equal(receiver.at('/moved-from').length, before);
    await eventually(async () => {
      const deliveries = await deliveriesOf(partner);
      assert.ok(
        deliveries.every(({ state }) => state === DeliveryState.DELIVERED),
        'all are delivered',
      );
      assert.ok(
        deliveries.some(({ attempts }) => attempts.length > 1),
        'attempts are counted on',
      );
    });
  });

  it('a rotation signs with both secrets, the new one first, for 24 hours and not longer', async () => {
    const { partner, secret: old } = await register('/rotated');
    const { secret } = await admin.webhooks.rotateSecret({ partnerId: partner.id }, admin.options);
    assert.notEqual(secret, old);
    await assert.rejects(
      admin.webhooks.rotateSecret({ partnerId: partner.id }, admin.options),
      /FAILED_PRECONDITION.*runs until/,
    );
    await place(partner, 1);
    const [both] = await arrived('/rotated', 1);
    assert.ok(both !== undefined);
    verify(both, secret);
    verify(both, old);
    const entries = (both.headers['webhook-signature'] ?? '').split(' ');
    assert.equal(entries.length, 2);
    verify({ ...both, headers: { ...both.headers, 'webhook-signature': entries[0] ?? '' } }, secret);
    await advance(24 * 60 + 1);
    await place(partner, 1);
    const [, one] = await arrived('/rotated', 2);
    assert.ok(one !== undefined);
    verify(one, secret);
    assert.equal((one.headers['webhook-signature'] ?? '').split(' ').length, 1);
    await admin.webhooks.rotateSecret({ partnerId: partner.id }, admin.options);
  });

  it('events that waited while an endpoint was down arrive oldest first, however long each connection takes', async () => {
    const { partner } = await register('/in-order');
    receiver.reply('/in-order', () => 503);
    await place(partner, 3);
    await arrived('/in-order', 3);
    await eventually(async () => assert.notEqual((await endpointOf(partner)).failingSince, undefined));
    await place(partner, 5);
    receiver.reply('/in-order', () => 200);
    receiver.slow('/in-order', 30);
    // The probe has a connection; those that follow it at the same time need new ones.
    receiver.slowToDial(300, 150, 0);
    await advance(1.05);
    const received = await arrived('/in-order', 3 + 8);
    assert.deepEqual(
      received.slice(3).map(({ version }) => version),
      [1, 2, 3, 4, 5, 6, 7, 8],
    );
  });

  it("an operator's pause has no probes and ends by the operator; then all goes, oldest first", async () => {
    const { partner } = await register('/held');
    const call = { partnerId: partner.id, reason: 'the partner asked' };
    assert.equal((await admin.webhooks.pauseEndpoint(call, admin.options)).changed, true);
    assert.equal((await admin.webhooks.pauseEndpoint(call, admin.options)).changed, false);
    await place(partner, 3);
    await eventually(async () => assert.equal((await deliveriesOf(partner)).length, 3));
    await advance(5);
    await place(partner, 1);
    await eventually(async () => assert.equal((await deliveriesOf(partner)).length, 4));
    assert.equal(receiver.at('/held').length, 0);
    assert.notEqual((await endpointOf(partner)).pausedSince, undefined);
    assert.equal((await admin.webhooks.resumeEndpoint(call, admin.options)).changed, true);
    await arrived('/held', 4);
    assert.equal((await admin.webhooks.resumeEndpoint(call, admin.options)).changed, false);
    const audited = await gateway.database.read(
      statement(
        `SELECT action, operator FROM audit_entries WHERE subject = ? AND action LIKE 'Webhooks.%' ORDER BY id`,
        partner.id,
      ),
    );
    assert.deepEqual(
      audited.map((row) => [row.action, row.operator]),
      ['RegisterEndpoint', 'PauseEndpoint', 'ResumeEndpoint'].map((name) => [`Webhooks.${name}`, 'tester']),
    );
  });

  it('an operator sends one event or a window again, inside the time events are sent for', async () => {
    const { partner } = await register('/again');
    await place(partner, 3);
    const [first] = await arrived('/again', 3);
    await eventually(async () => {
      assert.ok(
        (await deliveriesOf(partner)).every(({ state }) => state === DeliveryState.DELIVERED),
        'delivered',
      );
    });
    const one = { partnerId: partner.id, eventId: first?.id ?? '', reason: 'lost' };
    assert.equal((await admin.webhooks.redeliver(one, admin.options)).events, 1);
    const again = await arrived('/again', 4);
    assert.equal(again[3]?.body, first?.body);
    const now = await deliveriesOf(partner);
    const from = now[0]?.occurredAt?.seconds ?? 0n;
    const window = { partnerId: partner.id, from: { seconds: from - 60n }, to: { seconds: from + 60n } };
    const answer = await admin.webhooks.redeliver(window, admin.options);
    assert.deepEqual([answer.events, answer.lastVersion, answer.complete], [3, 3n, true]);
    await arrived('/again', 7);
    await assert.rejects(admin.webhooks.redeliver({ partnerId: partner.id }, admin.options), /INVALID_ARGUMENT/);
    await assert.rejects(admin.webhooks.redeliver({ ...one, ...window }, admin.options), /INVALID_ARGUMENT/);
    await assert.rejects(
      admin.webhooks.redeliver({ ...one, eventId: 'msg_000000000000000000000000' }, admin.options),
      /NOT_FOUND/,
    );
    await advance(29 * 60);
    await assert.rejects(admin.webhooks.redeliver(one, admin.options), /FAILED_PRECONDITION.*the feed has it/);
    assert.equal((await admin.webhooks.redeliver(window, admin.options)).events, 0);
  });

  it('a test says what the endpoint answered and leaves no trace in feed, deliveries or health', async () => {
    const { partner, secret } = await register('/tested');
    receiver.reply('/tested', () => 503);
    const answer = await admin.webhooks.sendTest({ partnerId: partner.id }, admin.options);
    assert.deepEqual(
      [answer.outcome, answer.status, answer.errorClass],
      [AttemptOutcome.ENDPOINT_FAILED, 503, 'status'],
    );
    const [test] = await arrived('/tested', 1);
    assert.ok(test !== undefined);
    verify(test, secret);
    const body = JSON.parse(test.body);
    const { object, type, id, version } = body;
    assert.deepEqual([object, type, id, version], ['webhook_test', 'webhook.test', answer.webhookId, undefined]);
    assert.deepEqual(await deliveriesOf(partner), []);
    assert.equal((await endpointOf(partner)).failuresInARow, 0);
    const { body: feed } = await gateway.rest('GET', '/v1/events', { key: partner.key });
    assert.deepEqual(feed.data, []);
  });

  it('registers only what may be registered, once, for partners there are', async () => {
    const partner = await gateway.newPartner();
    const register = (url: string, partnerId = partner.id) =>
      admin.webhooks.registerEndpoint({ partnerId, url }, admin.options);
    for (const url of [
      'http://example.com/',
      'https://u:p@example.com/',
      'https://example.com/?a=1',
      'https://10.0.0.1/',
    ]) {
      await assert.rejects(register(url), /INVALID_ARGUMENT.*The URL must/, url);
    }
    await assert.rejects(register(receiver.url('/x'), 'par_22222222222222222222'), /NOT_FOUND/);
    await register(receiver.url('/x'));
    await assert.rejects(register(receiver.url('/x')), /ALREADY_EXISTS/);
    const missing = { partnerId: (await gateway.newPartner()).id };
    for (const call of [
      () => admin.webhooks.getEndpoint(missing, admin.options),
      () => admin.webhooks.rotateSecret(missing, admin.options),
      () => admin.webhooks.pauseEndpoint(missing, admin.options),
      () => admin.webhooks.resumeEndpoint(missing, admin.options),
      () => admin.webhooks.listDeliveries(missing, admin.options),
      () => admin.webhooks.sendTest(missing, admin.options),
      () => admin.webhooks.redeliver({ ...missing, eventId: 'msg_000000000000000000000000' }, admin.options),
      () => admin.webhooks.moveEndpoint({ ...missing, url: receiver.url('/x') }, admin.options),
    ]) {
      await assert.rejects(call(), /NOT_FOUND/);
    }
  });

  it('each attempt is one line of the log, and is kept for 30 days', async () => {
    const { partner } = await register('/kept');
    await place(partner, 1);
    const [received] = await arrived('/kept', 1);
    const line = await eventually(() => {
      const found = gateway.logged.map((each) => JSON.parse(each)).filter(({ eventId }) => eventId === received?.id);
      assert.equal(found.length, 1);
      return found[0];
    });
    assert.deepEqual(
      [line.msg, line.partnerId, line.type, line.attempt, line.outcome, line.status],
      ['webhook attempt', partner.id, 'order.pending', 1, 'delivered', 200],
    );
    await eventually(async () => assert.equal((await deliveriesOf(partner))[0]?.attempts.length, 1));
    await advance(29 * 24 * 60);
    await place(partner, 1);
    await arrived('/kept', 2);
    assert.equal((await deliveriesOf(partner)).at(-1)?.attempts.length, 1);
    await advance(26 * 60);
    await eventually(async () => assert.equal((await deliveriesOf(partner)).at(-1)?.attempts.length, 0));
    await advance(29 * 60);
    await eventually(async () => {
      const deliveries = await deliveriesOf(partner);
      assert.deepEqual(
        deliveries.map(({ version }) => version),
        [2n],
      );
    });
  });
});
