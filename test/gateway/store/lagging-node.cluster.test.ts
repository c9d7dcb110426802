import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, createConnection } from 'mysql2/promise';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { GaleraCluster } from '../../support/clusters/galera.ts';
import { eventually } from '../../support/eventually.ts';

const takenOverWithinMs = 60_000;
/** How long a node lags after it could have taken over. */
const lagsForMs = 10_000;

describe('a gateway that goes to a node of a Galera cluster which lags', { timeout: 240_000 }, () => {
  let servers: GaleraCluster | string;
  let cluster: Cluster;
  let gateway: GatewayProcess;
  let partner: Partner;
  before(async () => {
    servers = await GaleraCluster.start();
    if (typeof servers === 'string') return;
    const [first, second] = servers.nodes;
    cluster = await Cluster.start({}, { databaseServerUrl: first.url, databaseHosts: `${first.host},${second.host}` });
    gateway = await cluster.startGateway();
    partner = await cluster.newPartner();
  });
  after(async () => {
    await cluster?.stop();
    if (typeof servers !== 'string') await servers?.stop();
  });

  const skipped = (t: TestContext) => {
    if (typeof servers === 'string') t.skip(`Galera cannot be had here: ${servers}`);
    return typeof servers === 'string';
  };
  const readiness = async () => (await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`)).status;

  it('reads nothing there and is not ready until it has taken over: no acknowledged order is unknown', async (t) => {
    if (skipped(t) || typeof servers === 'string') return;
    const [writer, next] = servers.nodes;
    // As for a backup: the writer does not wait for it.
    await next.execute('SET GLOBAL wsrep_desync = ON');
    const locking: Connection = await createConnection(next.url);
    await locking.query('FLUSH TABLES WITH READ LOCK');
    const placed: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      const { status, body } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 100 + count });
      assert.equal(status, 201);
      placed.push(body.id);
    }
    await writer.kill();
    const seen: { readonly get: number | undefined; readonly ready: number }[] = [];
    const look = async () => {
      const { status: get } = await gateway.request('GET', `/v1/orders/${placed.at(-1)}`, { key: partner.key });
      seen.push({ get, ready: await readiness() });
    };
    for (const until = performance.now() + lagsForMs; performance.now() < until; await delay(100)) await look();
    assert.ok(
      seen.every(({ get }) => get !== 404),
      `an acknowledged order is unknown: ${JSON.stringify(seen)}`,
    );
    assert.equal(seen.at(-1)?.ready, 503, 'it is ready though it can read nothing');
    await locking.end();
    await next.execute('SET GLOBAL wsrep_desync = OFF');
    await eventually(async () => {
      await look();
      assert.deepEqual(seen.at(-1), { get: 200, ready: 200 });
    }, takenOverWithinMs);
    assert.ok(
      seen.every(({ get }) => get !== 404),
      'an acknowledged order is unknown',
    );
    const { status } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 500 });
    assert.equal(status, 201);
  });
});
