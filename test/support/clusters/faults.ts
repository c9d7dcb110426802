import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { migrations } from '../../../migrations/index.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { Cluster, type GatewayProcess } from '../cluster.ts';
import { eventually } from '../eventually.ts';
import { FaultProxy } from '../fault-proxy.ts';
import { hostsOf, type ServerCluster, type ServerNode } from './server-node.ts';
import {
  assertNoDefects,
  beforeMs,
  placedThroughEach,
  resumedWithinMs,
  runs,
  suiteTimeoutMs,
  underLoad,
} from './under-load.ts';

/** The cluster that a fault hits. */
interface Scene {
  readonly servers: ServerCluster;
  /** The node that gateways write through, and the others. */
  readonly writer: ServerNode;
  readonly others: readonly [ServerNode, ServerNode];
  readonly gateways: GatewayProcess[];
  readonly cluster: Cluster;
  /** Waits until orders are placed again, through each gateway. */
  resumed(): Promise<void>;
}

interface Fault {
  readonly name: string;
  /** Makes the fault, waits until orders are placed again, and mends it. */
  readonly make: (scene: Scene) => Promise<void>;
  readonly needsNetwork?: true;
}

const faults: readonly Fault[] = [
  {
    name: 'the writer is killed',
    async make({ writer, resumed }) {
      await writer.kill();
      await resumed();
      await writer.start();
    },
  },
  {
    name: 'the writer is frozen',
    async make({ writer, resumed }) {
      writer.freeze();
      try {
        await resumed();
      } finally {
        writer.thaw();
      }
      await writer.untilItTakesPart();
    },
  },
  {
    name: 'the writer loses its data',
    async make({ writer, resumed }) {
      await writer.kill();
      writer.wipe();
      await resumed();
      await writer.start();
    },
  },
  {
    name: 'the writer is cut off from the other nodes, and not from the gateways',
    needsNetwork: true,
    async make({ writer, resumed }) {
      await cutOff(writer, 'peers', resumed);
    },
  },
  {
    name: 'the writer is cut off from all',
    needsNetwork: true,
    async make({ writer, resumed }) {
      await cutOff(writer, 'all', resumed);
    },
  },
  {
    name: 'another node is killed',
    async make({ others: [other], resumed }) {
      await other.kill();
      await resumed();
      await other.start();
    },
  },
  {
    name: 'another node is frozen',
    async make({ others: [other], resumed }) {
      other.freeze();
      try {
        await resumed();
      } finally {
        other.thaw();
      }
      await other.untilItTakesPart();
    },
  },
  {
    name: 'another node loses its data',
    async make({ others: [other], resumed }) {
      await other.kill();
      other.wipe();
      await resumed();
      await other.start();
    },
  },
  {
    name: 'another node is cut off from the other nodes, and not from the gateways',
    needsNetwork: true,
    async make({ others: [other], resumed }) {
      await cutOff(other, 'peers', resumed);
    },
  },
  {
    name: 'another node is cut off from all',
    needsNetwork: true,
    async make({ others: [, other], resumed }) {
      await cutOff(other, 'all', resumed);
    },
  },
  {
    name: 'two of three nodes are killed at once, and all are started again',
    async make({ servers, writer, others: [other], resumed }) {
      await Promise.all([writer.kill(), other.kill()]);
      await delay(beforeMs);
      // The third does not know whether it is the majority, and must take no writes.
      await servers.startAll();
      await resumed();
    },
  },
  {
    name: 'all nodes are killed at once',
    async make({ servers, resumed }) {
      await servers.startAll();
      await resumed();
    },
  },
  {
    name: 'another node becomes the writer while the former one lives',
    async make({ servers, others: [other], resumed }) {
      await servers.makeWriter(other, resumed);
    },
  },
  {
    name: 'all nodes are restarted one after the other',
    async make({ servers, resumed }) {
      for (const node of servers.nodes) {
        await node.stop();
        await resumed();
        await node.start();
      }
    },
  },
  {
    name: 'two proxies disagree which node is the writer',
    async make({ cluster, servers, writer, others: [other], gateways, resumed }) {
      const proxies = [await FaultProxy.start(writer.url), await FaultProxy.start(writer.url)] as const;
      const [, wrong] = proxies;
      const url = (cluster.gatewayVariables.MARINA_DATABASE_URL ?? '').replace(hostsOf(servers), writer.host);
      const behind = await Promise.all(
        proxies.map((proxy) => cluster.startGateway({ MARINA_DATABASE_URL: proxy.through(url) })),
      );
      const [right, misled] = behind as [GatewayProcess, GatewayProcess];
      await replace(gateways, behind);
      await resumed();
      const partner = await cluster.newPartner();
      const place = async (gateway: GatewayProcess) => (await gateway.place(partner, { symbol: 'SIM-REST' })).status;
      wrong.retarget(other.url);
      wrong.reset();
      await eventually(async () => assert.equal(await place(misled), 503), resumedWithinMs);
      for (let count = 0; count < 30; count += 1) {
        assert.deepEqual(await Promise.all([place(right), place(misled)]), [201, 503]);
      }
      wrong.retarget(writer.url);
      wrong.reset();
      await resumed();
      for (const gateway of behind) assertNoDefects(gateway);
      await replace(gateways, await Promise.all([cluster.startGateway(), cluster.startGateway()]));
      for (const proxy of proxies) await proxy.close();
    },
  },
  {
    name: 'all nodes migrate at once',
    async make({ cluster, servers, resumed }) {
      const name = new URL(cluster.databaseUrl).pathname.slice(1);
      const next = [...migrations, addsColumn(migrations.length)];
      // A group takes the changes at its primary only.
      const places = servers.takesWritesEverywhere
        ? servers.nodes.map(({ url }) => `${url}/${name}`)
        : Array.from({ length: 2 }, () =>
            cluster.databaseUrl.replace(new URL(cluster.databaseUrl).host, hostsOf(servers)),
          );
      await Promise.all(places.map((url) => migrate(url, next)));
      await resumed();
      await cluster.database.manage(async (manager) => {
        await manager.query('ALTER TABLE orders DROP COLUMN added');
        await manager.query('DELETE FROM migrations WHERE name = ?', [new (next.at(-1) as Migration)().name]);
      });
    },
  },
  {
    name: 'a gateway is killed',
    async make({ cluster, gateways, resumed }) {
      await gateways[0]?.kill();
      gateways.splice(0, 1, await cluster.startGateway());
      await resumed();
    },
  },
];

type Migration = new () => MigrationInterface;

/** A migration as the next release could have. Its name has its place in the order. */
function addsColumn(place: number): Migration {
  return class implements MigrationInterface {
    readonly name = `AddedByTest${4_000_000_000_000 + place}`;

    async up(runner: QueryRunner): Promise<void> {
      await runner.query('ALTER TABLE orders ADD COLUMN added VARCHAR(20) NULL');
      await runner.query('ALTER TABLE orders ADD INDEX orders_added (added)');
    }

    async down(): Promise<void> {}
  };
}

/** Cuts a node off until orders are placed again. */
async function cutOff(node: ServerNode, from: 'peers' | 'all', resumed: () => Promise<void>): Promise<void> {
  node.machine.cut(from);
  try {
    await resumed();
  } finally {
    node.machine.join();
  }
  await node.untilItTakesPart();
}

/** Other gateways take the place of all. */
async function replace(gateways: GatewayProcess[], by: readonly GatewayProcess[]): Promise<void> {
  const former = gateways.splice(0, gateways.length, ...by);
  await Promise.all(former.map((gateway) => gateway.stop()));
}

/** Each fault under orders and allocations of two gateways that know all nodes. After each, everything is compared. */
export function describeFaults(name: string, start: () => Promise<ServerCluster | string>): void {
  describe(`two gateways on a cluster of three nodes: ${name}`, { timeout: suiteTimeoutMs }, () => {
    let servers: ServerCluster | string;
    let cluster: Cluster;
    const gateways: GatewayProcess[] = [];
    before(async () => {
      servers = await start();
      if (typeof servers === 'string') return;
      const databaseServerUrl = servers.nodes[0].url;
      cluster = await Cluster.start({}, { databaseServerUrl, databaseHosts: hostsOf(servers) });
      gateways.push(...(await Promise.all([cluster.startGateway(), cluster.startGateway()])));
    });
    after(async () => {
      await cluster?.stop();
      if (typeof servers !== 'string') await servers?.stop();
    });

    for (const { name, make, needsNetwork = false } of faults) {
      for (let run = 1; run <= runs; run += 1) {
        it(`${name}${runs > 1 ? `, ${run}` : ''}: no order or allocation is lost or sent twice`, async (t) => {
          if (typeof servers === 'string') return t.skip(servers);
          if (needsNetwork && servers.whyNoNetwork !== undefined) return t.skip(servers.whyNoNetwork);
          const there = servers;
          const resumed = () => placedThroughEach(cluster, gateways);
          const makeIt = async () => {
            const [writer, ...others] = await byRole(there);
            await make({
              servers: there,
              writer,
              others: others as [ServerNode, ServerNode],
              gateways,
              cluster,
              resumed,
            });
          };
          await underLoad(t, cluster, gateways, makeIt, () => assertSameEverywhere(cluster, there));
        });
      }
    }
  });
}

/** The node that the gateways write through comes first. */
async function byRole(servers: ServerCluster): Promise<readonly [ServerNode, ...ServerNode[]]> {
  return eventually(async () => {
    for (const node of servers.nodes) {
      if (!(await servers.isWriter(node))) continue;
      return [node, ...servers.nodes.filter((each) => each !== node)] as const;
    }
    throw new Error('no node is the writer');
  });
}

/** Tables that change all the time. */
const living = new Set(['leases', 'writer', 'writer_beats', 'write_checks', 'key_uses']);

/** Every node has the same rows. */
async function assertSameEverywhere(cluster: Cluster, servers: ServerCluster): Promise<void> {
  const database = new URL(cluster.databaseUrl).pathname.slice(1);
  await eventually(async () => {
    const [first, ...others] = await Promise.all(servers.nodes.map((node) => checksums(`${node.url}/${database}`)));
    for (const other of others) assert.deepEqual(other, first, 'the nodes have the same rows');
  }, resumedWithinMs);
}

async function checksums(url: string): Promise<Record<string, string>> {
  const connection = await createConnection({ uri: url, connectTimeout: 2_000 });
  try {
    const [tables] = await connection.query<RowDataPacket[]>(
      'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()',
    );
    const names = tables.map(({ name }) => String(name)).filter((name) => !living.has(name));
    const [sums] = await connection.query<RowDataPacket[]>(`CHECKSUM TABLE ${names.join(', ')}`);
    return Object.fromEntries(sums.map(({ Table: table, Checksum: sum }) => [String(table), String(sum)]));
  } finally {
    connection.destroy();
  }
}
