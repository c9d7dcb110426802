import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { rowServesMs } from '../../../../src/gateway/delivery/webhooks/rules.ts';
import { idleTransactionSeconds } from '../../../../src/gateway/store/transaction.ts';
import { adminClient } from '../../../support/admin.ts';
import { Cluster, type GatewayProcess } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { patient } from '../../../support/patience.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

/** It may be frozen in a transaction, and then be the one that uses the row as it was; a second for all the rest. */
const longestMs = 1_000 * idleTransactionSeconds + rowServesMs + 1_000;

describe('a rotation of a secret while the process that sends is frozen', () => {
  let receiver: WebhookReceiver;
  let cluster: Cluster;
  let sender: GatewayProcess;
  let gateway: GatewayProcess;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    receiver = await WebhookReceiver.start();
    cluster = await Cluster.start(receiver.variables);
    sender = await cluster.startGateway({ MARINA_ROLES: 'webhooks' });
    gateway = await cluster.startGateway({ MARINA_ROLES: 'api,worker' });
    admin = adminClient(gateway.adminPort);
  });
  after(async () => {
    admin.close();
    await cluster.stop();
    await receiver.close();
  });

  it('is answered in bounded time, and what the process begins when it goes on is signed with both secrets', async () => {
    const partner = await cluster.newPartner();
    const endpoint = { partnerId: partner.id, url: receiver.url('/frozen') };
    await admin.webhooks.registerEndpoint(endpoint, admin.options);
    // Much waits in its memory when it is frozen, and it begins the next attempts as soon as it goes on.
    receiver.slow('/frozen', 2_000);
    for (let quantity = 1; quantity <= 150; quantity += 1) {
      assert.equal((await gateway.place(partner, { symbol: 'SIM-REST', quantity })).status, 201);
    }
    await eventually(() => assert.ok(receiver.at('/frozen').length >= 10, 'events are delivered'));
    sender.freeze();
    const startedAt = performance.now();
    await admin.webhooks.rotateSecret({ partnerId: partner.id }, admin.options);
    const tookMs = performance.now() - startedAt;
    const answeredSeconds = Math.floor(Date.now() / 1_000);
    assert.ok(tookMs < patient(longestMs), `it took ${tookMs} ms`);
    // Deliveries under way are answered now, so that the next can begin.
    await delay(2_300);
    receiver.slow('/frozen', 0);
    sender.thaw();
    const arrived = await eventually(() => {
      const found = new Set(receiver.at('/frozen').map(({ version }) => version));
      assert.equal(found.size, 150);
      return receiver.at('/frozen');
    }, 30_000);
    // A delivery signed before the freeze may be written when the process goes on.
    const late = arrived.filter(({ headers }) => Number(headers['webhook-timestamp']) >= answeredSeconds);
    assert.ok(late.length > 0, 'some were signed after the answer');
    for (const { headers, version } of late) {
      assert.equal((headers['webhook-signature'] ?? '').split(' ').length, 2, `version ${version}`);
    }
  });
});
