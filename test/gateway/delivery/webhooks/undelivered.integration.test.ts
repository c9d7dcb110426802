import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

const undelivered = 'marina_webhook_undelivered_seconds';
const expired = 'marina_webhook_expired_events_total';

describe('an endpoint that delivers nothing', () => {
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

  async function newEndpoint(path: string): Promise<TestPartner> {
    const partner = await gateway.newPartner();
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: receiver.url(path) }, admin.options);
    return partner;
  }

  const look = () => scrape(gateway.app.opsPort);
  const pass = (hours: number) =>
    admin.clock.advanceClock({ by: { seconds: BigInt(hours * 3_600), nanos: 0 } }, admin.options);
  const place = async (partner: TestPartner, quantity: number) =>
    assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL', quantity })).status, 201);

  it('is named with its partner while events wait, whatever it answers, and its lost events are counted', async () => {
    const [refusing, failing, good] = [
      await newEndpoint('/gone'),
      await newEndpoint('/broken'),
      await newEndpoint('/good'),
    ];
    receiver.reply('/gone', () => 404);
    receiver.reply('/broken', () => 500);
    for (const partner of [refusing, failing, good]) await place(partner, 30);
    for (const path of ['/gone', '/broken', '/good']) await eventually(() => assert.ok(receiver.at(path).length > 0));
    assert.ok(!(await look()).has(undelivered), 'nobody at first');

    await pass(7);
    await eventually(async () => {
      const { value } = await look();
      for (const { id } of [refusing, failing]) {
        const seconds = value(undelivered, { partner: id, by: 'failures' });
        assert.ok(seconds >= 7 * 3_600 && seconds < 7 * 3_600 + 600, `${seconds} s`);
      }
    });
    assert.ok(!(await look()).has(undelivered, { partner: good.id }), 'not one that delivers');

    await admin.webhooks.resumeEndpoint({ partnerId: failing.id, reason: 'a test' }, admin.options);
    assert.ok((await look()).value(undelivered, { partner: failing.id }) > 7 * 3_600, 'a resumed one is not well yet');
    receiver.reply('/broken', () => 200);
    await pass(2);
    await eventually(async () => assert.ok(!(await look()).has(undelivered, { partner: failing.id }), 'a 2xx ends it'));

    const sent = new Set(receiver.at('/gone').map(({ id }) => id));
    assert.ok(sent.size > 0);
    await pass(20);
    await eventually(async () => {
      const { value, has } = await look();
      assert.equal(value(expired, { partner: refusing.id }), sent.size, 'its events');
      assert.equal(value(expired), sent.size, 'and nobody else lost any');
      assert.ok(!has(undelivered), 'nothing waits any more');
    });

    await place(refusing, 31);
    await eventually(() =>
      assert.ok(
        receiver.at('/gone').some(({ id }) => !sent.has(id)),
        'it is tried',
      ),
    );
    await pass(1);
    await eventually(async () => {
      const seconds = (await look()).value(undelivered, { partner: refusing.id });
      assert.ok(seconds >= 3_600 && seconds < 2 * 3_600, `since the event that waits now: ${seconds} s`);
    });
  });

  it('is named too while an operator has paused it', async () => {
    const partner = await newEndpoint('/held');
    await admin.webhooks.pauseEndpoint({ partnerId: partner.id, reason: 'a test' }, admin.options);
    await place(partner, 32);
    await pass(1);
    await eventually(async () => {
      const { value } = await look();
      assert.ok(value(undelivered, { partner: partner.id, by: 'operator' }) >= 3_600);
    });
  });
});

describe('the metrics', () => {
  it('name twenty partners, however many there are', async () => {
    const { Metrics } = await import('../../../../src/gateway/edge/metrics.ts');
    const metrics = new Metrics();
    const names = new Set(Array.from({ length: 500 }, (_, index) => metrics.partner(`par_${index}`)));
    assert.equal(names.size, 21);
    assert.equal(metrics.partner('par_0'), 'par_0');
    assert.equal(metrics.partner('par_499'), 'other');
  });
});
