import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { checkArrivals, type Endpoint, registerEndpoints } from '../../../support/fault/arrivals.ts';
import { checkEverything } from '../../../support/fault/checker.ts';
import { Load } from '../../../support/fault/load.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';
import { WebhookReceiver } from '../../../support/webhook-receiver.ts';

/** Longer than the lease of a process that sends. */
const pastLeaseMs = 6_000;
const minuteMs = 60_000;

describe('webhooks', { concurrency: true }, () => {
  describe('of several gateways', { concurrency: false }, () => {
    let nats: RestartableServer;
    let proxy: FaultProxy;
    let receiver: WebhookReceiver;
    let cluster: Cluster;
    let one: GatewayProcess;
    let two: GatewayProcess;
    const partners: Partner[] = [];
    let endpoints: Endpoint[] = [];
    before(async () => {
      nats = await startTestNats();
      receiver = await WebhookReceiver.start();
      cluster = await Cluster.start(receiver.variables, { natsUrl: nats.url });
      proxy = await FaultProxy.start(cluster.databaseUrl);
      const variables = { MARINA_DATABASE_URL: proxy.through(cluster.databaseUrl) };
      one = await cluster.startGateway(variables);
      two = await cluster.startGateway(variables);
      for (let count = 0; count < 6; count += 1) partners.push(await cluster.newPartner());
      endpoints = await registerEndpoints(one, receiver, partners);
    });
    after(async () => {
      proxy.heal();
      await cluster.stop();
      await proxy.close();
      await nats.kill();
      await receiver.close();
    });

    /** Does something while orders are placed; then every event of the feed is at its endpoint. */
    async function underLoad(disturb: () => Promise<void>): Promise<void> {
      const load = Load.start({ gateways: () => [one], partners, restMs: 20 });
      await delay(500);
      await disturb();
      await delay(500);
      await load.settle(one, 60_000);
      await checkEverything(cluster, one, partners, 60_000);
      await checkArrivals(cluster.database, receiver, endpoints, 60_000);
    }

    /** The processes that send to endpoints, by their ids. */
    async function senders(): Promise<Set<number>> {
      const rows = await cluster.database.read(
        statement(
          `SELECT l.holder FROM webhook_endpoints e JOIN leases l ON l.name = e.lease_name AND l.fence = e.lease_fence
            WHERE l.expires_at > NOW(3)`,
        ),
      );
      return new Set(rows.map((row) => Number(/-(\d+)-[0-9a-f]{8}$/.exec(String(row.holder))?.[1])));
    }

    it('arrive when nothing is wrong, each endpoint served by one of them', () =>
      underLoad(async () => {
        const pids = await eventually(async () => {
          const found = await senders();
          assert.ok(found.size > 0, 'somebody sends');
          return found;
        });
        for (const pid of pids) assert.ok([one.pid, two.pid].includes(pid), 'a gateway sends');
      }));

    it("arrive when NATS's store is deleted", () =>
      underLoad(async () => {
        await nats.kill();
        await delay(500);
        await nats.restart({ empty: true });
        await delay(2_000);
      }));

    it('arrive when the database is away for a while', () =>
      underLoad(async () => {
        proxy.set('both', { hold: true });
        await delay(pastLeaseMs);
        proxy.heal();
        proxy.reset();
      }));

    it('arrive when one of them is frozen past its lease and goes on', () =>
      underLoad(async () => {
        two.freeze();
        await delay(pastLeaseMs);
        assert.ok(!(await senders()).has(two.pid), 'its endpoints are free');
        two.thaw();
        await delay(1_000);
      }));

    it('arrive when one of them is killed', () =>
      underLoad(async () => {
        await two.kill();
        await delay(pastLeaseMs);
        assert.ok(!(await senders()).has(two.pid), 'its endpoints are free');
      }));
  });

  // Together with the others, because nearly all of it is waiting.
  it('arrive when the database is away for a whole minute', () => withoutDatabase(minuteMs));
});

/** Gateways of their own lose their database under load; then every event of the feed is at its endpoint. */
async function withoutDatabase(awayMs: number): Promise<void> {
  const receiver = await WebhookReceiver.start();
  const cluster = await Cluster.start(receiver.variables);
  const proxy = await FaultProxy.start(cluster.databaseUrl);
  try {
    const variables = { MARINA_DATABASE_URL: proxy.through(cluster.databaseUrl) };
    const gateways = [await cluster.startGateway(variables), await cluster.startGateway(variables)];
    const [first] = gateways;
    assert.ok(first !== undefined, 'a gateway runs');
    const partners = [await cluster.newPartner(), await cluster.newPartner(), await cluster.newPartner()];
    const endpoints = await registerEndpoints(first, receiver, partners);
    // Attempts are under way when the database goes, and their outcomes wait for it.
    for (const { path } of endpoints) receiver.slow(path, 300);
    const load = Load.start({ gateways: () => gateways, partners, hands: 2, restMs: 250 });
    await eventually(() => assert.ok(receiver.received.length > 20, 'events arrive'), 20_000);
    const goneAt = performance.now();
    await proxy.refuse();
    proxy.reset();
    await delay(goneAt + awayMs - performance.now());
    const { status } = await first.request('GET', '/v1/orders', { key: partners[0]?.key ?? '' });
    assert.equal(status, 503, 'the database is still away');
    await proxy.accept();
    await load.settle(first, 60_000);
    await checkEverything(cluster, first, partners, 60_000);
    await checkArrivals(cluster.database, receiver, endpoints, 60_000);
  } finally {
    await cluster.stop();
    await proxy.close();
    await receiver.close();
  }
}
