import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it, type TestContext } from 'node:test';
import { createConnection } from 'mysql2/promise';
import { openDatabase } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { GaleraCluster } from '../../support/clusters/galera.ts';
import { eventually } from '../../support/eventually.ts';
import { FaultProxy } from '../../support/fault-proxy.ts';

const takenOverWithinMs = 20_000;

describe('gateways at two nodes of a Galera cluster', { timeout: 180_000 }, () => {
  let servers: GaleraCluster | string;
  let cluster: Cluster;
  let proxy: FaultProxy;
  /** At node 1 itself, and behind the proxy. */
  let direct: GatewayProcess;
  let proxied: GatewayProcess;
  let partner: Partner;
  before(async () => {
    servers = await GaleraCluster.start();
    if (typeof servers === 'string') return;
    cluster = await Cluster.start({}, { databaseServerUrl: node(0) });
    proxy = await FaultProxy.start(node(0));
    direct = await cluster.startGateway();
    proxied = await cluster.startGateway({
      MARINA_DATABASE_URL: proxy.through(cluster.gatewayVariables.MARINA_DATABASE_URL ?? ''),
    });
    partner = await cluster.newPartner();
  });
  after(async () => {
    await cluster?.stop();
    await proxy?.close();
    if (typeof servers !== 'string') await servers?.stop();
  });

  function node(index: number): string {
    if (typeof servers === 'string') throw new Error(servers);
    return servers.nodes[index]?.url ?? '';
  }

  function leadTo(index: number): void {
    proxy.retarget(node(index));
    proxy.reset();
  }

  const skipped = (t: TestContext) => {
    if (typeof servers === 'string') t.skip(`Galera cannot be had here: ${servers}`);
    return typeof servers === 'string';
  };
  const place = (gateway: GatewayProcess, quantity: number, key: string = randomUUID()) =>
    gateway.place(partner, { symbol: 'SIM-REST', quantity }, key);

  async function troubles({ opsPort }: GatewayProcess): Promise<string> {
    return (await fetch(`http://127.0.0.1:${opsPort}/readyz`)).text();
  }

  async function ordersAt(index: number): Promise<number> {
    const url = Object.assign(new URL(cluster.databaseUrl), { port: new URL(node(index)).port }).href;
    const connection = await createConnection(url);
    try {
      const [rows] = await connection.query('SELECT COUNT(*) AS count FROM orders');
      return Number((rows as { count: number }[])[0]?.count);
    } finally {
      await connection.end();
    }
  }

  it('a gateway whose proxy leads to the other node answers 503, stores nothing and is not ready; the other works on', async (t) => {
    if (skipped(t)) return;
    assert.equal((await place(direct, 1)).status, 201);
    assert.equal((await place(proxied, 2)).status, 201);
    leadTo(1);
    const refused = await eventually(async () => {
      const answer = await place(proxied, 3);
      assert.equal(answer.status, 503);
      assert.match(await troubles(proxied), /gateways write through another node/);
      return answer;
    }, takenOverWithinMs);
    assert.equal(refused.body.error.code, 'service_unavailable');
    for (let quantity = 4; quantity < 24; quantity += 1) {
      const [there, here] = await Promise.all([place(proxied, 100 + quantity), place(direct, quantity)]);
      assert.deepEqual([there.status, here.status], [503, 201]);
    }
    await eventually(async () => assert.equal(await ordersAt(1), 22));
  });

  it('it works again when its proxy leads back', async (t) => {
    if (skipped(t)) return;
    leadTo(0);
    await eventually(async () => assert.equal((await place(proxied, 200)).status, 201), takenOverWithinMs);
    await eventually(async () => assert.doesNotMatch(await troubles(proxied), /another node/), takenOverWithinMs);
  });

  it('a gateway does not start at the other node', async (t) => {
    if (skipped(t)) return;
    const url = Object.assign(new URL(cluster.databaseUrl), { port: new URL(node(2)).port }).href;
    await assert.rejects(
      openDatabase({ url, environment: 'sandbox', poolSize: 2 }),
      /takes no writes of gateways, which write through .+:\d+$/,
    );
  });

  it('another node takes its place when nobody writes through it any more, and a refused order is placed once', async (t) => {
    if (skipped(t)) return;
    leadTo(1);
    const key = randomUUID();
    await eventually(async () => assert.equal((await place(proxied, 300, key)).status, 503), takenOverWithinMs);
    const before = await ordersAt(1);
    await direct.kill();
    await eventually(async () => assert.equal((await place(proxied, 300, key)).status, 201), takenOverWithinMs);
    assert.equal((await place(proxied, 300, key)).status, 200);
    await eventually(async () => assert.equal(await ordersAt(1), before + 1));
    await assert.rejects(
      cluster.database.write(statement('UPDATE writer_beats SET beat = beat + 1')),
      { name: 'UnavailableError' },
      'what is still connected to the former node is refused',
    );
  });
});
