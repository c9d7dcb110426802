import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { openDatabase } from '../../../src/gateway/store/database.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { GroupCluster } from '../../support/clusters/group-replication.ts';
import type { ServerNode } from '../../support/clusters/server-node.ts';
import { eventually } from '../../support/eventually.ts';
import { FaultProxy } from '../../support/fault-proxy.ts';

describe('a gateway and the members of a group of MySQL servers', { timeout: 240_000 }, () => {
  let servers: GroupCluster | string;
  let cluster: Cluster;
  let proxy: FaultProxy;
  let gateway: GatewayProcess;
  let partner: Partner;
  before(async () => {
    servers = await GroupCluster.start();
    if (typeof servers === 'string') return;
    const [first] = servers.nodes;
    cluster = await Cluster.start({}, { databaseServerUrl: first.url });
    proxy = await FaultProxy.start(first.url);
    gateway = await cluster.startGateway({
      MARINA_DATABASE_URL: proxy.through(cluster.gatewayVariables.MARINA_DATABASE_URL ?? ''),
    });
    partner = await cluster.newPartner();
  });
  after(async () => {
    await cluster?.stop();
    await proxy?.close();
    if (typeof servers !== 'string') await servers?.stop();
  });

  function group(t: TestContext): GroupCluster | undefined {
    if (typeof servers !== 'string') return servers;
    t.skip(`MySQL cannot be had here: ${servers}`);
    return undefined;
  }

  const place = (quantity: number) => gateway.place(partner, { symbol: 'SIM-REST', quantity });
  const isReady = async () => (await fetch(`http://127.0.0.1:${gateway.opsPort}/readyz`)).status === 200;

  function open(index: number): Promise<unknown> {
    const { host } = (servers as GroupCluster).nodes[index] ?? { host: '' };
    const url = new URL(cluster.databaseUrl);
    return openDatabase({ url: url.href.replace(url.host, host), environment: 'sandbox', poolSize: 2 });
  }

  it('a gateway led to a member that is not the primary answers 503, stores nothing, is not ready, and works again when it is led back', async (t) => {
    const there = group(t);
    if (there === undefined) return;
    const [first, second] = there.nodes;
    assert.equal((await place(1)).status, 201);
    proxy.retarget(second.url);
    proxy.reset();
    await eventually(async () => {
      const answer = await place(2);
      assert.deepEqual([answer.status, answer.body.error.code], [503, 'service_unavailable']);
    });
    await eventually(async () => assert.ok(!(await isReady()), 'it is not ready'));
    proxy.retarget(first.url);
    proxy.reset();
    await eventually(async () => assert.equal((await place(3)).status, 201));
    await eventually(async () => assert.ok(await isReady(), 'it is ready'));
    const [row] = await first.ask(
      `SELECT COUNT(*) AS count FROM ${new URL(cluster.databaseUrl).pathname.slice(1)}.orders`,
    );
    assert.equal(Number(row?.count), 2, 'what was refused is not stored');
  });

  it('does not start at one that is in no group, and goes on elsewhere', async (t) => {
    const there = group(t);
    if (there === undefined) return;
    const third = there.nodes[2];
    await third.execute('STOP GROUP_REPLICATION');
    await assert.rejects(open(2), /this database server is not used: it is OFFLINE in its group/);
    await third.execute('START GROUP_REPLICATION');
    await third.untilItTakesPart();
    assert.equal((await place(4)).status, 201);
  });

  const uuidOf = async (member: ServerNode) => (await member.ask('SELECT @@server_uuid AS id'))[0]?.id;

  it('does not start where a new primary may show old values, or where there are several primaries, nor goes on there', async (t) => {
    const there = group(t);
    if (there === undefined) return;
    const [first] = there.nodes;
    await first.execute("SET GLOBAL group_replication_consistency = 'EVENTUAL'");
    await assert.rejects(open(0), /group_replication_consistency must be BEFORE_ON_PRIMARY_FAILOVER/);
    await first.execute("SET GLOBAL group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'");
    const rows = async () => {
      const database = new URL(cluster.databaseUrl).pathname.slice(1);
      const [row] = await first.ask(`SELECT COUNT(*) AS count FROM ${database}.orders`);
      return Number(row?.count);
    };
    await eventually(async () => assert.equal((await place(5)).status, 201));
    const before = await rows();
    // The connections that the gateway has go on.
    await first.ask('SELECT group_replication_switch_to_multi_primary_mode()');
    for (let quantity = 6; quantity < 26; quantity += 1) {
      const answer = await place(quantity);
      assert.deepEqual([answer.status, answer.body.error.code], [503, 'service_unavailable']);
    }
    await eventually(async () => assert.ok(!(await isReady()), 'it is not ready'));
    assert.equal(await rows(), before, 'what was refused is not stored');
    for (const index of [0, 1, 2]) await assert.rejects(open(index), /its group has several primaries/);
    await first.ask(`SELECT group_replication_switch_to_single_primary_mode('${await uuidOf(first)}')`);
    await eventually(async () => assert.equal((await place(26)).status, 201));
    await eventually(async () => assert.ok(await isReady(), 'it is ready'));
  });
});
