import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { Cluster, type GatewayProcess, type Partner } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { GaleraCluster } from './support/galera.ts';

const takenOverWithinMs = 60_000;

describe('a gateway at a node of a Galera cluster that was frozen', { timeout: 240_000 }, () => {
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
  it('reads nothing at a former writer that was frozen while gateways went to another node', async (t) => {
    if (skipped(t) || typeof servers === 'string') return;
    const [former, next] = servers.nodes;
    const url = (cluster.gatewayVariables.MARINA_DATABASE_URL ?? '').replace(`,${next.host}`, '');
    const left = await cluster.startGateway({ MARINA_DATABASE_URL: url });
    const warm = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 7 });
    const get = (id: string) => left.request('GET', `/v1/orders/${id}`, { key: partner.key });
    assert.equal((await get(warm.body.id)).status, 200);
    former.freeze();
    let id = '';
    try {
      await eventually(async () => {
        const { status, body } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 8 });
        assert.equal(status, 201);
        id = body.id;
      }, takenOverWithinMs);
    } finally {
      former.thaw();
    }
    const seen: (number | undefined)[] = [];
    for (const until = performance.now() + 3_000; performance.now() < until; ) seen.push((await get(id)).status);
    assert.ok(!seen.includes(404), `an acknowledged order is unknown: ${seen}`);
  });
});
