import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { type Server, startMariaDb, startNats } from '../../../src/sandbox/servers.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { scrape } from '../../support/metrics.ts';
import { mountSmallDisk, type SmallDisk } from '../../support/small-disk.ts';

/** Room for MariaDB's own files, and a little more. */
const databaseMiB = 320;
const natsMiB = 32;

describe('a full disk', () => {
  const stops: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });

  async function smallDisk(test: TestContext, sizeMiB: number): Promise<SmallDisk | undefined> {
    const disk = await mountSmallDisk(sizeMiB);
    if (disk === undefined) test.skip('mounting a file system is not allowed here');
    else stops.push(disk.remove);
    return disk;
  }

  async function clusterOf(servers: { database?: Server; nats?: Server }): Promise<Cluster> {
    const cluster = await Cluster.start({}, { databaseServerUrl: servers.database?.url, natsUrl: servers.nats?.url });
    stops.push(() => cluster.stop());
    return cluster;
  }

  async function readiness({ opsPort }: GatewayProcess): Promise<{ status: number; parts: string[] }> {
    const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`);
    const { reasons } = (await answer.json()) as { reasons: { part: string }[] };
    return { status: answer.status, parts: reasons.map(({ part }) => part) };
  }

  /** Places orders until one is refused for lack of room, which may take a while: tables have some room left. */
  async function placeUntilRefused(gateway: GatewayProcess, partner: Partner): Promise<void> {
    await eventually(async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => gateway.place(partner, { symbol: 'SIM-REST', quantity: 1 + index })),
      );
      const codes = answers.map(({ body }) => body?.error?.code);
      assert.ok(codes.includes('service_unavailable'), 'no order was refused');
    }, 60_000);
  }

  it('a full disk of the database makes the gateway not ready, the metric names the disk, and it is ready by itself afterwards', async (test) => {
    const disk = await smallDisk(test, databaseMiB);
    if (disk === undefined) return;
    // The server's own log must not be on the disk that is full.
    const folder = temporaryFolder();
    sharedKeeper().removeAtEnd(folder);
    const dataDir = join(disk.path, 'mariadb');
    mkdirSync(dataDir, { mode: 0o700 });
    symlinkSync(join(folder, 'mariadb.log'), join(dataDir, 'mariadb.log'));
    const database = await startMariaDb({ dataDir });
    stops.push(() => database.kill());
    const cluster = await clusterOf({ database });
    const gateway = await cluster.startGateway();
    const partner = await cluster.newPartner();
    assert.equal((await gateway.place(partner, { symbol: 'SIM-REST' })).status, 201);
    assert.deepEqual(await readiness(gateway), { status: 200, parts: [] });

    disk.fill();
    await placeUntilRefused(gateway, partner);
    await eventually(async () => assert.deepEqual(await readiness(gateway), { status: 503, parts: ['database-disk'] }));
    // Nobody sends it anything now, and it stays so: far longer than a refused order alone would be remembered.
    for (const end = performance.now() + 25_000; performance.now() < end; await delay(200)) {
      assert.deepEqual(await readiness(gateway), { status: 503, parts: ['database-disk'] });
    }
    const { value } = await scrape(gateway.opsPort);
    assert.ok(value('marina_part_trouble_seconds', { part: 'database-disk' }) > 20, 'the alert rings');
    assert.equal((await gateway.request('GET', '/v1/orders', { key: partner.key })).status, 200, 'reads are answered');

    disk.free();
    await eventually(async () => assert.deepEqual(await readiness(gateway), { status: 200, parts: [] }), 20_000);
    assert.equal((await gateway.place(partner, { symbol: 'SIM-REST' })).status, 201);
    await checkEverything(cluster, gateway, [partner]);
  });

  it('a full disk of NATS leaves events stored and read, and the limits shared', async (test) => {
    const disk = await smallDisk(test, natsMiB);
    if (disk === undefined) return;
    const nats = await startNatsOn(disk);
    const cluster = await clusterOf({ nats });
    const gateway = await cluster.startGateway();
    const partner = await cluster.newPartner();
    const placed = async () => {
      const { status, body } = await gateway.place(partner, { symbol: 'SIM-FILL' });
      assert.equal(status, 201, JSON.stringify(body));
    };
    await placed();
    await eventually(async () => assert.deepEqual(await degraded(gateway), []));

    disk.fill();
    for (let count = 0; count < 200; count += 1) await placed();
    for (const end = performance.now() + 5_000; performance.now() < end; await delay(200)) {
      assert.deepEqual(await degraded(gateway), []);
    }
    disk.free();
    await placed();
    await checkEverything(cluster, gateway, [partner]);
  });

  async function degraded({ opsPort }: GatewayProcess): Promise<string[]> {
    const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`);
    return ((await answer.json()) as { degraded: { part: string }[] }).degraded.map(({ part }) => part);
  }

  /** Its store is on the disk, its log is not. */
  async function startNatsOn(disk: SmallDisk): Promise<Server> {
    const dataDir = temporaryFolder();
    sharedKeeper().removeAtEnd(dataDir);
    const store = join(disk.path, 'store');
    mkdirSync(store);
    symlinkSync(store, join(dataDir, 'store'));
    const nats = await startNats({ dataDir, disposable: true });
    stops.push(() => nats.kill());
    return nats;
  }
});
