import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { checkEverything } from '../../fault/support/checker.ts';
import { Load } from '../../fault/support/load.ts';
import { checkMoney } from '../../fault/support/money.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { hostsOf, type ServerCluster, type ServerNode } from './server-node.ts';

/** How often each fault is made. */
const runs = Number(process.env.RUNS || 1);
/** Until orders are placed again after a fault: the longest wait of the engines, and what the gateways take to follow. */
const resumedWithinMs = 60_000;
/** How long orders are placed before a fault, so that it meets some on their way. */
const beforeMs = 1_500;

/** What a fault is made on. */
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
      writer.machine.cut('peers');
      await resumed();
      writer.machine.join();
      await writer.untilItTakesPart();
    },
  },
  {
    name: 'the writer is cut off from all',
    needsNetwork: true,
    async make({ writer, resumed }) {
      writer.machine.cut('all');
      await resumed();
      writer.machine.join();
      await writer.untilItTakesPart();
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
    name: 'a table is changed',
    async make({ cluster, resumed }) {
      // As a migration does, at the node that takes writes.
      const column = `added_${randomUUID().slice(0, 8)}`;
      const change = (sql: string) => cluster.database.manage((manager) => manager.query(sql));
      await change(`ALTER TABLE orders ADD COLUMN ${column} VARCHAR(20) NULL`);
      await change(`ALTER TABLE orders ADD INDEX ${column} (${column})`);
      await resumed();
      await change(`ALTER TABLE orders DROP COLUMN ${column}`);
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

/** Each fault under orders and allocations of two gateways that know all nodes. After each, everything is compared. */
export function describeFaults(name: string, start: () => Promise<ServerCluster | string>): void {
  describe(`two gateways on a cluster of three nodes: ${name}`, { timeout: 240_000 + runs * 1_200_000 }, () => {
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
          await underLoad(t, servers, make);
        });
      }
    }

    async function underLoad(t: TestContext, servers: ServerCluster, make: Fault['make']): Promise<void> {
      const [trader, funder] = [await cluster.newPartner(), await cluster.newPartner()];
      await cluster.fund(funder, 1_000_000_000n);
      const load = Load.start({
        gateways: () => gateways,
        partners: [trader],
        symbols: ['SIM-REST', 'SIM-PARTS'],
        restMs: 60,
        cancels: true,
        longestMs: 300_000,
      });
      const allocating = new Allocating(gateways, funder);
      const last = gateways.at(-1) as GatewayProcess;
      let gap: number;
      try {
        await delay(beforeMs);
        const [writer, ...others] = await byRole(servers);
        const began = performance.now();
        const resumed = () => placedThroughEach(cluster, gateways);
        await make({ servers, writer, others: others as [ServerNode, ServerNode], gateways, cluster, resumed });
        await delay(beforeMs);
        gap = load.longestGapMs(began);
      } finally {
        await Promise.all([load.settle(last, resumedWithinMs), allocating.settle()]);
      }
      for (const gateway of gateways) {
        const defects = gateway.logged().filter(({ msg }) => msg === 'a request failed');
        assert.deepEqual(defects, [], 'no answer is internal_error');
      }
      await checkEverything(cluster, last, [trader], resumedWithinMs);
      await checkMoney(cluster, last, [funder], resumedWithinMs);
      await assertSameEverywhere(cluster, servers);
      const counts = `${load.count} orders, ${allocating.count} allocations`;
      t.diagnostic(`no order for ${(gap / 1_000).toFixed(1)} s; ${counts}; lost 0, sent twice 0`);
    }
  });
}

/** Clients that allocate all the time, and repeat what has no clear answer with its key. */
class Allocating {
  count = 0;
  #stopping = false;
  readonly #done: Promise<void>;

  constructor(gateways: readonly GatewayProcess[], partner: Partner) {
    this.#done = this.#run(gateways, partner);
  }

  async settle(): Promise<void> {
    this.#stopping = true;
    await this.#done;
  }

  async #run(gateways: readonly GatewayProcess[], partner: Partner): Promise<void> {
    while (!this.#stopping) {
      this.count += 1;
      const amount = 1_000 + this.count;
      const key = randomUUID();
      await eventually(async () => {
        const gateway = gateways[Math.floor(Math.random() * gateways.length)] as GatewayProcess;
        const { status, body } = await gateway.allocate(partner, { amount_kobo: amount }, key);
        const isClear = status === 200 || status === 201 || body?.error?.code === 'allocation_not_sent';
        assert.ok(isClear, `answered ${status} ${body?.error?.code}`);
      }, resumedWithinMs);
      await delay(100);
    }
  }
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

async function placedThroughEach(cluster: Cluster, gateways: readonly GatewayProcess[]): Promise<void> {
  const partner = await eventually(() => cluster.newPartner(), resumedWithinMs);
  for (const gateway of gateways) {
    const key = randomUUID();
    await eventually(async () => {
      const { status } = await gateway.place(partner, { symbol: 'SIM-REST' }, key);
      assert.ok(status === 201 || status === 200, `answered ${status}`);
    }, resumedWithinMs);
  }
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
