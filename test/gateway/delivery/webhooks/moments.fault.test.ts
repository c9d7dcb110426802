import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Partner } from '../../../support/cluster.ts';
import { registerEndpoints } from '../../../support/fault/arrivals.ts';
import { checkEverything } from '../../../support/fault/checker.ts';
import { describeMoments } from '../../../support/fault/moments/cases.ts';
import type { WatchedCluster } from '../../../support/fault/moments/watched-cluster.ts';
import { verify } from '../../../support/webhook-receiver.ts';

interface Case {
  readonly partner: Partner;
  /** The secret of the last rotation, and how many events had arrived by then. */
  last: { readonly secret: string; readonly arrived: number } | undefined;
}

await describeMoments<Case>({
  name: 'an endpoint that is paused, resumed, and gets a new secret',
  async prepare(watched) {
    const partner = await watched.cluster.newPartner();
    await registerEndpoints(await watched.gateway(), watched.receiver, [partner]);
    return { partner, last: undefined };
  },
  async run(watched, one) {
    const { partner } = one;
    const about = { partnerId: partner.id, reason: 'a test' };
    await watched.operate((admin) => admin.webhooks.pauseEndpoint(about, admin.options));
    const arrived = watched.receiver.at(`/${partner.id}`).length;
    await place(watched, partner);
    assert.equal(watched.receiver.at(`/${partner.id}`).length, arrived, 'a paused endpoint is sent nothing');
    await watched.operate((admin) => admin.webhooks.resumeEndpoint(about, admin.options));
    const { secret } = await watched.operate((admin) =>
      admin.webhooks.rotateSecret({ partnerId: partner.id }, admin.options),
    );
    one.last = { secret, arrived: watched.receiver.at(`/${partner.id}`).length };
    await place(watched, partner);
  },
  async check({ cluster, receiver }, gateway, { partner, last }) {
    await checkEverything(cluster, gateway, [partner]);
    const feed = await gateway.request('GET', '/v1/events?limit=100', { key: partner.key });
    const all = receiver.at(`/${partner.id}`);
    const arrived = new Set(all.map(({ id }) => id));
    assert.deepEqual(
      feed.body.data.filter(({ id }: { id: string }) => !arrived.has(id)),
      [],
      'every event has arrived',
    );
    const { secret, arrived: before } = last ?? assert.fail('the secret was rotated');
    for (const each of all.slice(before)) verify(each, secret);
  },
});

async function place(watched: WatchedCluster, partner: Partner): Promise<void> {
  const { account } = partner;
  const order = { account, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000, symbol: 'SIM-REST' };
  await watched.ask(partner, 'POST', '/v1/orders', { idempotencyKey: randomUUID(), body: { ...order, quantity: 100 } });
}
