import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { adminClient } from '../../../support/admin.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';

describe('while NATS is away, at the gateway that did it', () => {
  let nats: RestartableServer;
  let gateway: TestGateway;
  let admin: ReturnType<typeof adminClient>;
  before(async () => {
    nats = await startTestNats();
    gateway = await startGateway({ MARINA_NATS_URL: nats.url });
    admin = adminClient(gateway.app.adminPort);
    await nats.kill();
  });
  after(async () => {
    admin.close();
    await nats.restart();
    await gateway.stop();
    await nats.kill();
  });

  const cases: readonly [string, (partner: TestPartner) => Promise<unknown>][] = [
    [
      'a key that an operator revokes stops at once',
      ({ keyId }) => admin.keys.revokeKey({ keyId, reason: 'leaked' }, admin.options),
    ],
    [
      'a key of a partner that an operator suspends stops at once',
      ({ id }) => admin.partners.suspendPartner({ partnerId: id, reason: 'leaked' }, admin.options),
    ],
    [
      'a key that its partner revokes stops at once',
      async ({ key, keyId }) => {
        const { status, text } = await gateway.rest('DELETE', `/v1/keys/${keyId}`, { key });
        assert.equal(status, 200, text);
      },
    ],
  ];
  for (const [name, end] of cases) {
    it(name, async () => {
      const partner = await gateway.newPartner();
      assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 200);
      await end(partner);
      const { status } = await gateway.rest('GET', '/v1/orders', { key: partner.key });
      assert.equal(status, 401, 'it was believed by what was read before');
      const placed = await gateway.place(partner, { symbol: 'SIM-REST' });
      assert.equal(placed.status, 401, placed.text);
    });
  }
});
