import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it, type TestContext } from 'node:test';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { Call } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { Cluster, callTimeout, type GatewayProcess, type Partner } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { GaleraCluster, type GaleraNode } from '../support/galera.ts';

/** Until both gateways place orders again: two looks at a host that does not answer, and then the wait for the quiet. */
const resumedWithinMs = 30_000;

describe('two gateways that know the three nodes of a Galera cluster', { timeout: 240_000 }, () => {
  let servers: GaleraCluster | string;
  let cluster: Cluster;
  let gateways: GatewayProcess[];
  let partner: Partner;
  let placed = 0;
  before(async () => {
    servers = await GaleraCluster.start();
    if (typeof servers === 'string') return;
    cluster = await Cluster.start({}, { databaseServerUrl: servers.nodes[0]?.url ?? '' });
    partner = await cluster.newPartner();
    const url = new URL(cluster.gatewayVariables.MARINA_DATABASE_URL ?? '');
    const hosts = servers.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const variables = { MARINA_DATABASE_URL: url.href.replace(url.host, hosts) };
    gateways = await Promise.all([cluster.startGateway(variables), cluster.startGateway(variables)]);
  });
  after(async () => {
    await cluster?.stop();
    if (typeof servers !== 'string') await servers?.stop();
  });

  const skipped = (t: TestContext) => {
    if (typeof servers === 'string') t.skip(`Galera cannot be had here: ${servers}`);
    return typeof servers === 'string';
  };
  const nodes = () => (servers as GaleraCluster).nodes as [GaleraNode, GaleraNode, GaleraNode];

  /** Places one order through a gateway, repeating it with its key until it is answered well. */
  async function place(gateway: GatewayProcess): Promise<void> {
    placed += 1;
    const quantity = placed;
    const key = randomUUID();
    await eventually(async () => {
      const { status } = await gateway.place(partner, { symbol: 'SIM-REST', quantity }, key);
      assert.ok(status === 201 || status === 200, `answered ${status}`);
    }, resumedWithinMs);
  }

  async function placeThroughBoth(): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) await Promise.all(gateways.map(place));
  }

  async function find(node: GaleraNode, sql: string): Promise<RowDataPacket[]> {
    const connection = await createConnection(
      Object.assign(new URL(cluster.databaseUrl), { port: String(node.port) }).href,
    );
    try {
      await connection.query('SET SESSION wsrep_sync_wait = 15');
      return (await connection.query<RowDataPacket[]>(sql))[0];
    } finally {
      await connection.end();
    }
  }

  async function assertEachOnce(node: GaleraNode): Promise<void> {
    const [row] = await find(node, 'SELECT COUNT(*) AS count FROM orders');
    assert.equal(Number(row?.count), placed, 'each order is stored once');
    const { messages } = await cluster.controls.listMessages({}, callTimeout);
    const sent = messages.filter(({ call }) => call === Call.SUBMIT_ORDER);
    assert.equal(sent.length, placed, 'each order was sent once');
  }

  it('go on at another node when the writing one is killed, and stay there when it is back', async (t) => {
    if (skipped(t)) return;
    const [first, second] = nodes();
    await placeThroughBoth();
    await first.kill();
    const from = performance.now();
    await placeThroughBoth();
    t.diagnostic(`orders again after ${Math.round(performance.now() - from)} ms`);
    await first.start();
    await placeThroughBoth();
    const [row] = await find(second, 'SELECT node, fence FROM writer');
    assert.match(String(row?.node), new RegExp(`:${second.port}$`));
    await assertEachOnce(second);
  });

  it('go on at another node when the writing one is frozen', async (t) => {
    if (skipped(t)) return;
    const [first, second] = nodes();
    second.freeze();
    const from = performance.now();
    try {
      await placeThroughBoth();
      t.diagnostic(`orders again after ${Math.round(performance.now() - from)} ms`);
    } finally {
      second.thaw();
    }
    await second.untilSynced();
    await placeThroughBoth();
    await assertEachOnce(first);
  });
});
