import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { freePort } from '../../../../src/sandbox/ports.ts';
import { adminClient } from '../../../support/admin.ts';
import type { Cluster, GatewayProcess } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import * as webhooks from '../../../support/hostile/attacks/webhooks.ts';
import { type Seen, underAttack } from '../../../support/hostile/under-attack.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

/** Longer than the 10 s that an endpoint has to answer. */
const closedWithinMs = 15_000;

describe('hostile webhook endpoints', () => {
  let receiver: WebhookReceiver;
  before(async () => {
    receiver = await WebhookReceiver.start();
  });
  after(() => receiver.close());

  /** A partner with a hostile endpoint for each behaviour, and one whose endpoint is honest. */
  async function prepare(cluster: Cluster, gateway: GatewayProcess) {
    const admin = adminClient(gateway.adminPort);
    const register = async (url: string) => {
      const partner = await cluster.newPartner();
      await admin.webhooks.registerEndpoint({ partnerId: partner.id, url }, admin.options);
      return partner;
    };
    const endpoints: Record<string, webhooks.HostileEndpoint[]> = {};
    for (const behaviour of webhooks.behaviourNames) {
      const some: webhooks.HostileEndpoint[] = [];
      for (let turn = 0; turn < 3; turn += 1) {
        const port = await freePort();
        const { key, account } = await register(`https://127.0.0.1:${port}/hooks`);
        some.push({ key, account, port });
      }
      endpoints[behaviour] = some;
    }
    const path = `/honest-${gateway.pid}`;
    const honest = { partner: await register(receiver.url(path)), path };
    admin.close();
    return { endpoints, honest, ...receiver.identity };
  }

  const attack = underAttack({
    attacks: new URL('../../../support/hostile/attacks/webhooks.ts', import.meta.url),
    variables: () => receiver.variables,
    prepare,
  });

  /** The hostile endpoint was sent something, and an honest one is sent its events in the 5 s of the contract. */
  async function checkDeliveries(deliveries: number, { gateway, prepared }: Seen): Promise<void> {
    assert.ok(deliveries > 0, 'the hostile endpoint was sent something');
    const { honest } = prepared as Awaited<ReturnType<typeof prepare>>;
    const { body } = await gateway.place(honest.partner, { symbol: 'SIM-REST' });
    await eventually(() => {
      const events = receiver.at(honest.path).map((each) => JSON.parse(each.body) as { data: { id: string } });
      assert.ok(
        events.some(({ data }) => data.id === body.id),
        'the event of an honest partner did not come in 5 s',
      );
    }, 5_000);
  }

  const run = { run: webhooks.hostileEndpoint, forMs: 2_000, closedWithinMs, check: checkDeliveries };
  attack('an endpoint whose answer never ends', { ...run, options: { behaviour: 'endless answers' } });
  attack('an endpoint that answers byte by byte', { ...run, options: { behaviour: 'answers byte by byte' } });
  attack('an endpoint whose headers never end', { ...run, options: { behaviour: 'endless headers' } });
  attack('an endpoint of interim answers', { ...run, options: { behaviour: 'interim answers without end' } });
  attack('an endpoint that redirects in a circle', { ...run, options: { behaviour: 'redirects in a circle' } });
  attack('an endpoint of compressed bombs', { ...run, options: { behaviour: 'compressed answers' } });
  attack('an endpoint that breaks the connection', { ...run, options: { behaviour: 'connections broken off' } });
  attack('an endpoint that never answers', { ...run, options: { behaviour: 'no answer at all' } });
});
