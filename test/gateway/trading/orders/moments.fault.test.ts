import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { checkArrivals, type Endpoint, registerEndpoints } from '../../../support/fault/arrivals.ts';
import { checkEverything } from '../../../support/fault/checker.ts';
import { describeMoments, natsAway, type Scenario } from '../../../support/fault/moments/cases.ts';
import type { WatchedCluster } from '../../../support/fault/moments/watched-cluster.ts';

interface Case {
  readonly partner: Partner;
  readonly endpoints: readonly Endpoint[];
}

const isOver = /^(filled|cancelled|rejected|refused|expired)$/;

const scenario: Scenario<Case> = {
  name: 'an order that fills in parts, and one that is cancelled',
  maxOccurrences: 3,
  async prepare(watched) {
    const { cluster, receiver } = watched;
    const partner = await cluster.newPartner();
    return { partner, endpoints: await registerEndpoints(await watched.gateway(), receiver, [partner]) };
  },
  async run(watched, { partner }) {
    await place(watched, partner, 'SIM-PARTS', isOver);
    const id = await place(watched, partner, 'SIM-REST', /^(?!sending|uncertain)/);
    await cancel(watched, partner, id);
  },
  async check({ cluster, receiver }, gateway, { partner, endpoints }) {
    await checkEverything(cluster, gateway, [partner]);
    await checkArrivals(cluster.database, receiver, endpoints);
  },
};

await describeMoments(scenario);
await describeMoments({ ...scenario, isBeside: true });
await describeMoments({
  ...scenario,
  name: `${scenario.name}, while NATS is away`,
  variables: natsAway,
  only: /outbox/,
});

/** Places an order and waits for a state of it. */
async function place(watched: WatchedCluster, partner: Partner, symbol: string, until: RegExp): Promise<string> {
  const order = { account: partner.account, side: 'buy', quantity: 100, type: 'limit', price_kobo: 1_000, symbol };
  const placed = await watched.ask(partner, 'POST', '/v1/orders', { idempotencyKey: randomUUID(), body: order });
  const isPlaced = placed.status === 200 || placed.status === 201 || placed.body.error?.code === 'order_not_sent';
  assert.ok(isPlaced, JSON.stringify(placed.body));
  const [id] = placed.body.id === undefined ? await onlyIds(watched, partner, symbol) : [placed.body.id];
  await eventually(async () => {
    const { body } = await watched.ask(partner, 'GET', `/v1/orders/${id}`);
    assert.match(body.state, until);
  }, 20_000);
  return id;
}

async function onlyIds(watched: WatchedCluster, partner: Partner, symbol: string): Promise<string[]> {
  const { body } = await watched.ask(partner, 'GET', `/v1/orders?symbol=${symbol}`);
  assert.equal(body.data.length, 1, 'one key leads to one order');
  return body.data.map(({ id }: { id: string }) => id);
}

/** Asks for the cancel until the order is over. */
async function cancel(watched: WatchedCluster, partner: Partner, id: string): Promise<void> {
  await eventually(async () => {
    const { status, body } = await watched.ask(partner, 'DELETE', `/v1/orders/${id}`);
    if (status === 200) assert.equal(body.state, 'cancelled');
    else assert.match((await watched.ask(partner, 'GET', `/v1/orders/${id}`)).body.state, isOver);
  }, 20_000);
}
