import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { apply } from '../../../../support/applications.ts';
import { overRest } from '../../../../support/documents.ts';
import { eventually } from '../../../../support/eventually.ts';
import type { TestGateway } from '../../../../support/gateway.ts';
import { noiseJpeg } from '../../../../support/images.ts';
import { type Found, TestOperator } from '../../../../support/operator.ts';
import { WebhookReceiver } from '../../../../support/webhook-receiver.ts';

describe('the timeline shows an operator', { concurrency: 4 }, () => {
  let receiver: WebhookReceiver;
  let operator: TestOperator;
  let gateway: TestGateway;
  before(async () => {
    receiver = await WebhookReceiver.start();
    operator = await TestOperator.start({ ...receiver.variables, MARINA_READ_TIMEOUT_MS: '5000' });
    gateway = operator.gateway;
  });
  after(async () => {
    await operator.stop();
    await receiver.close();
  });

  const call = (name: string, request: JsonObject) => operator.call(name, request);
  const ask = (name: string, request: JsonObject) => operator.call(`Diagnostics.${name}`, request);
  const refused = (name: string, request: JsonObject) => operator.refused(name, request);

  it("an order's story: stored, sent, each message of the exchange, each event and each attempt to deliver it", async () => {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
    const path = `/${randomUUID()}`;
    let failures = 1;
    receiver.reply(path, () => (failures-- > 0 ? 400 : 200));
    await call('Webhooks.RegisterEndpoint', { partner_id: partner.id, url: receiver.url(path) });
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-PARTS', quantity: 300 });
    const other = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.equal(other.status, 201, other.text);

    const story = await eventually(async () => {
      const found = await ask('GetTimeline', { id: order.id });
      const attempts = found.entries.filter((entry: Found) => entry.source === 'TIMELINE_SOURCE_WEBHOOK');
      assert.ok(found.state === 'filled' && attempts.length >= 4, JSON.stringify(found));
      return found;
    }, 20_000);
    assert.deepEqual([story.id, story.partner_id, story.has_more], [order.id, partner.id, false]);
    const of = (source: string) => story.entries.filter((entry: Found) => entry.source === `TIMELINE_SOURCE_${source}`);
    const steps = of('STEP');
    assert.equal(steps[0].kind, 'stored');
    // A report by the stream may come before the answer to the send is recorded.
    assert.deepEqual(steps.map(({ kind }: Found) => kind).toSorted(), [
      'report',
      'report',
      'report',
      'report',
      'sent',
      'stored',
    ]);
    const reports = steps.filter(({ kind }: Found) => kind === 'report');
    const trades = reports.slice(1);
    assert.equal(
      trades.reduce((sum: number, { quantity }: Found) => sum + Number(quantity), 0),
      300,
    );
    for (const { upstream_at: at, report_number: number } of reports) {
      assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000 && Number(number) > 0, at);
    }
    const events = of('EVENT');
    assert.deepEqual(
      events.map(({ kind, version }: Found) => [kind, version]),
      [
        ['order.pending', events[0].version],
        ['order.partially_filled', events[1].version],
        ['order.partially_filled', events[2].version],
        ['order.filled', events[3].version],
      ],
    );
    assert.ok(
      of('WEBHOOK').some(({ kind, status: code }: Found) => kind === 'delivered' && code === 200),
      JSON.stringify(of('WEBHOOK')),
    );
    const times = story.entries.map(({ at }: Found) => Date.parse(at));
    assert.deepEqual(
      times,
      times.toSorted((one: number, next: number) => one - next),
    );

    const byEvent = await ask('GetTimeline', { id: events[3].event_id });
    assert.equal(byEvent.id, order.id);
    const page = await ask('GetTimeline', { id: order.id, limit: 4 });
    const rest = await ask('GetTimeline', { id: order.id, limit: 4, after_step: page.last_step });
    assert.deepEqual([page.has_more, page.last_step, rest.has_more, rest.last_step], [true, 4, false, 6]);
    const versions = [...page.entries, ...rest.entries]
      .filter(({ source }: Found) => source === 'TIMELINE_SOURCE_EVENT')
      .map(({ version }: Found) => version);
    assert.deepEqual([...new Set(versions)].sort(), events.map(({ version }: Found) => version).sort());
  });

  it('the stories of an application with its documents, of an allocation with its ledger, of a key and of a partner', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000n);
    const { body: application } = await apply(gateway, partner, { last_name: 'SIM-WAIT' });
    const send = overRest(gateway.app.restPort);
    const sent = await send({ key: partner.key, id: application.id, type: 'photo', file: await noiseJpeg() });
    assert.equal(sent.outcome, 'delivered');
    const kinds = async (id: string) => {
      const { entries } = await ask('GetTimeline', { id });
      return entries
        .filter(({ source }: Found) => source !== 'TIMELINE_SOURCE_EVENT')
        .map(({ kind, detail }: Found) => (kind === 'document' ? detail : kind));
    };
    const [first, ...rest] = await kinds(application.id);
    assert.deepEqual([first, rest.slice(0, 2).toSorted()], ['stored', ['report', 'sent']]);
    assert.deepEqual(rest.slice(2), ['photo: to be sent, attempt 1', 'photo: delivered']);
    const page = await ask('GetTimeline', { id: application.id, limit: 2 });
    const others = await ask('GetTimeline', { id: application.id, limit: 10, after_step: page.last_step });
    const steps = [...page.entries, ...others.entries].filter(({ source }: Found) => source === 'TIMELINE_SOURCE_STEP');
    assert.deepEqual(
      steps.map(({ kind, detail }: Found) => (kind === 'document' ? detail : kind)),
      [first, ...rest],
      'page by page it is the same story',
    );
    assert.deepEqual([page.has_more, page.last_step, others.has_more, others.last_step], [true, 2, false, 5]);
    const { body: allocation } = await gateway.allocate(partner, {});
    assert.deepEqual((await kinds(allocation.id)).toSorted(), ['post', 'report', 'reserve', 'sent', 'stored']);
    const { key } = await call('Keys.CreateKey', { partner_id: partner.id, scopes: ['SCOPE_READ'] });
    await gateway.rest('DELETE', `/v1/keys/${key.id}`, { key: partner.key });
    assert.deepEqual(await kinds(key.id), ['Keys.CreateKey', 'revoked']);
    await call('Partners.SuspendPartner', { partner_id: partner.id });
    assert.deepEqual(await kinds(partner.id), ['Wallets.CreditWallet', 'Partners.SuspendPartner']);
    const nothing = await refused('Diagnostics.GetTimeline', { id: `app_${'a'.repeat(20)}` });
    assert.equal(nothing.code, status.NOT_FOUND);
    const gone = await refused('Diagnostics.GetTimeline', { id: `msg_${'0'.repeat(24)}` });
    assert.equal(gone.code, status.NOT_FOUND);
  });

  it('events that an earlier version wrote without their object: in the feed, on their way to it, and by their ids', async () => {
    const partner = await gateway.newPartner();
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' });
    const { body: other } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 7 });
    const { status: cancelled } = await gateway.rest('DELETE', `/v1/orders/${order.id}`, { key: partner.key });
    assert.equal(cancelled, 200);
    const events = async (id: string) => {
      const { entries } = await ask('GetTimeline', { id });
      return entries.filter(({ source }: Found) => source === 'TIMELINE_SOURCE_EVENT');
    };
    const shown = await eventually(async () => {
      const found = await events(order.id);
      assert.deepEqual(
        found.map(({ kind, state, detail }: Found) => [kind, state, detail]),
        [
          ['order.pending', 'pending', 'in the feed'],
          ['order.cancelled', 'cancelled', 'in the feed'],
        ],
      );
      return found;
    });
    assert.equal((await events(other.id)).length, 1, 'of another order of the same time there is its own event');
    for (const { event_id: id } of shown) {
      assert.equal((await ask('GetTimeline', { id })).id, order.id);
    }
  });
});
