import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { FeedWatch } from '../../support/fault/feed-watch.ts';
import { Load } from '../../support/fault/load.ts';

/** Work that one process does at a time. */
const leases = ['relay', 'order-reports', 'reconcile-orders'] as const;
/** A lease that is not renewed runs out in 4 seconds, and others look for it every second. */
const takenOverMs = 7_000;

interface LeaseRow {
  readonly pid: number;
  readonly fence: number;
  readonly held: boolean;
}

describe('gateways that share a database', () => {
  let cluster: Cluster;
  let gateways: GatewayProcess[] = [];
  const partners: Partner[] = [];
  before(async () => {
    cluster = await Cluster.start();
    gateways = await Promise.all([cluster.startGateway(), cluster.startGateway(), cluster.startGateway()]);
    for (let count = 0; count < 3; count += 1) partners.push(await cluster.newPartner());
  });
  after(() => cluster.stop());

  function one(): GatewayProcess {
    return gateways[0] ?? assert.fail('no gateway');
  }

  async function readLeases(): Promise<Map<string, LeaseRow>> {
    const rows = await cluster.database.read(
      statement('SELECT name, holder, fence, expires_at > NOW(3) AS held FROM leases'),
    );
    return new Map(
      rows.map((row) => {
        const [, pid] = /-(\d+)-[0-9a-f]{8}$/.exec(String(row.holder)) ?? [];
        return [String(row.name), { pid: Number(pid), fence: Number(row.fence), held: Number(row.held) === 1 }];
      }),
    );
  }

  async function holderOf(lease: string): Promise<GatewayProcess> {
    return eventually(async () => {
      const row = (await readLeases()).get(lease);
      assert.equal(row?.held, true);
      return gateways.find(({ pid }) => pid === row?.pid) ?? assert.fail(`${lease} is held by nobody here`);
    });
  }

  /** Ends a gateway as a crash would, and starts another in its place. */
  async function replace(gateway: GatewayProcess): Promise<void> {
    gateways = gateways.filter((each) => each !== gateway);
    await gateway.kill();
    gateways.push(await cluster.startGateway());
  }

  /** Waits until another process than before does some work, and returns how long that took. */
  async function untilTakenOver(lease: string, before: LeaseRow | undefined): Promise<number> {
    const startedAt = performance.now();
    await eventually(async () => {
      const row = (await readLeases()).get(lease);
      assert.ok(row?.held === true && row.fence > (before?.fence ?? 0) && row.pid !== before?.pid, JSON.stringify(row));
    }, 15_000);
    return performance.now() - startedAt;
  }

  it('one key sent to all of them with other orders counts for one order', async () => {
    const partner = partners[1] ?? assert.fail('no partner');
    for (let round = 0; round < 10; round += 1) {
      const key = randomUUID();
      const answers = await Promise.all(
        gateways.map((gateway, index) => gateway.place(partner, { symbol: 'SIM-FILL', quantity: 700 + index }, key)),
      );
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [201, 409, 409]);
    }
    await checkEverything(cluster, one(), partners);
  });

  it('one order cancelled through all of them at once ends once', async () => {
    const partner = partners[2] ?? assert.fail('no partner');
    for (let round = 0; round < 5; round += 1) {
      const { body } = await one().place(partner, { symbol: 'SIM-HALF', quantity: 900 + round });
      const answers = await Promise.all(
        gateways.map((gateway) => gateway.request('DELETE', `/v1/orders/${body.id}`, { key: partner.key })),
      );
      const codes = answers.map(({ status, body: said }) => (status === 200 ? 'cancelled' : said.error.code));
      assert.ok(codes.includes('cancelled'), codes.join(', '));
      assert.ok(
        codes.every((code) => code === 'cancelled' || code === 'cancel_unconfirmed'),
        codes.join(', '),
      );
    }
    await checkEverything(cluster, one(), partners);
  });

  it('when they are killed one after another under load, every key is settled and every event comes in order', async () => {
    const load = Load.start({
      gateways: () => gateways,
      partners,
      hands: 6,
      symbols: ['SIM-PARTS', 'SIM-REST', 'SIM-HALF'],
      cancels: true,
      restMs: 20,
    });
    for (let round = 0; round < 4; round += 1) {
      await delay(700);
      await replace(gateways[round % 3] ?? one());
    }
    await load.settle(one());
    await checkEverything(cluster, one(), partners);
  });

  it('when one that does background work is killed, others do all of it in seconds', async () => {
    const victim = await holderOf('order-reports');
    const before = await readLeases();
    const held = leases.filter((lease) => before.get(lease)?.pid === victim.pid);
    const load = Load.start({
      gateways: () => gateways.filter((gateway) => gateway !== victim),
      partners,
      symbols: ['SIM-PARTS', 'SIM-LOSTFILL'],
      restMs: 50,
    });
    await replace(victim);
    await Promise.all(
      held.map(async (lease) => assert.ok((await untilTakenOver(lease, before.get(lease))) < takenOverMs, lease)),
    );
    await load.settle(one());
    await checkEverything(cluster, one(), partners);
  });

  for (const lease of leases) {
    it(`when the one that does the work of ${lease} is frozen, another does it, and the thawed one does no harm`, async () => {
      const holder = await holderOf(lease);
      const before = await readLeases();
      const others = gateways.filter((gateway) => gateway !== holder);
      const load = Load.start({
        gateways: () => others,
        partners,
        symbols: ['SIM-PARTS', 'SIM-LOSTFILL'],
        restMs: 50,
      });
      await delay(300);
      holder.freeze();
      try {
        assert.ok((await untilTakenOver(lease, before.get(lease))) < takenOverMs);
        const position = await reportPosition();
        await delay(500);
        assert.ok((await reportPosition()) >= position);
      } finally {
        holder.thaw();
      }
      const positionWhenThawed = await reportPosition();
      await delay(1_500);
      assert.ok((await reportPosition()) >= positionWhenThawed, 'the thawed one did not turn the position back');
      const taken = (await readLeases()).get(lease);
      assert.ok((taken?.fence ?? 0) > (before.get(lease)?.fence ?? 0));
      await load.settle(others[0] ?? one());
      await checkEverything(cluster, others[0] ?? one(), partners);
      const live = await fetch(`http://127.0.0.1:${holder.opsPort}/livez`);
      assert.equal(live.status, 200);
    });
  }

  it('when one that holds messages of the feed is frozen, events can be read within 5 seconds of being carried', async () => {
    const others = gateways;
    // The other replicas already hold the leases, so that only the frozen one's messages are missing.
    for (const lease of leases) await holderOf(lease);
    const frozen = await cluster.startGateway();
    const watch = FeedWatch.start(cluster.database);
    const load = Load.start({ gateways: () => others, partners, restMs: 20 });
    await delay(500);
    frozen.freeze();
    await delay(5_000);
    frozen.thaw();
    await load.settle(one());
    assert.ok((await watch.stop()) < 5_000, `${Math.round(watch.longestMs)} ms`);
    await checkEverything(cluster, one(), partners);
    await frozen.stop();
  });

  it('when they are stopped in order under load, one after another, those that stay refuse nothing', async () => {
    const load = Load.start({ gateways: () => gateways, partners, restMs: 20 });
    for (let round = 0; round < 3; round += 1) {
      await delay(400);
      const [leaving, ...staying] = gateways;
      gateways = [...staying, await cluster.startGateway()];
      await leaving?.stop();
    }
    await load.settle(one());
    await checkEverything(cluster, one(), partners);
  });

  async function reportPosition(): Promise<number> {
    const [row] = await cluster.database.read(statement("SELECT position FROM positions WHERE name = 'order-reports'"));
    return Number(row?.position ?? 0);
  }
});
