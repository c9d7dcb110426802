import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type JetStreamManager, type NatsConnection } from 'nats';
import { Cluster, type GatewayProcess } from '../../../support/cluster.ts';
import { type NatsCluster, startNatsCluster } from '../../../support/clusters/nats-cluster.ts';
import {
  beforeMs,
  placedThroughEach,
  resumedWithinMs,
  runs,
  suiteTimeoutMs,
  underLoad,
} from '../../../support/clusters/under-load.ts';
import { eventually } from '../../../support/eventually.ts';
import { temporaryFolder } from '../../../support/folders.ts';

/** The cluster that a fault hits: the server that leads the stream of events, and the others. */
interface Scene {
  readonly nats: NatsCluster;
  readonly leader: number;
  readonly others: readonly [number, number];
  /** Waits until orders are placed, and goes on for a while. */
  placed(): Promise<void>;
  /** Waits until the others of NATS go on without a server. */
  leftOut(index: number): Promise<void>;
}

interface Fault {
  readonly name: string;
  /** Makes the fault, and mends it. */
  readonly make: (scene: Scene) => Promise<void>;
}

/** Each kind of fault of one server. */
const ofOne: readonly { readonly what: string; make(scene: Scene, index: number): Promise<void> }[] = [
  {
    what: 'is killed',
    async make({ nats, placed }, index) {
      await nats.servers[index]?.kill();
      await placed();
      await nats.restart(index);
    },
  },
  {
    what: 'is frozen',
    async make({ nats, placed }, index) {
      const pid = nats.servers[index]?.pid ?? 0;
      process.kill(pid, 'SIGSTOP');
      try {
        await placed();
      } finally {
        process.kill(pid, 'SIGCONT');
      }
    },
  },
  {
    what: 'loses its data',
    async make({ nats, placed }, index) {
      await nats.servers[index]?.kill();
      await placed();
      await nats.restart(index, true);
    },
  },
  {
    what: 'is cut off from the other servers, and not from the gateways',
    async make({ nats, placed, leftOut }, index) {
      nats.cut(index, 'peers');
      await placed();
      await leftOut(index);
      nats.join(index);
    },
  },
  {
    what: 'is cut off from all',
    async make({ nats, placed, leftOut }, index) {
      nats.cut(index, 'all');
      await placed();
      await leftOut(index);
      nats.join(index);
    },
  },
];

const faults: readonly Fault[] = [
  ...ofOne.map(({ what, make }) => ({
    name: `the leading server of NATS ${what}`,
    make: (scene: Scene) => make(scene, scene.leader),
  })),
  ...ofOne.map(({ what, make }) => ({
    name: `another server of NATS ${what}`,
    make: (scene: Scene) => make(scene, scene.others[0]),
  })),
  {
    name: 'all servers of NATS are restarted one after the other',
    async make({ nats, placed }) {
      for (const [index, server] of [...nats.servers.entries()]) {
        await server.stop();
        await placed();
        await nats.restart(index);
      }
    },
  },
  {
    name: 'all servers of NATS lose their data at once',
    async make({ nats, placed }) {
      await Promise.all(nats.servers.map((server) => server.kill()));
      await placed();
      await Promise.all(nats.servers.map((_, index) => nats.restart(index, true)));
    },
  },
];

/** Each fault under orders and allocations of two gateways. After each, everything is compared. */
describe('two gateways on a cluster of three NATS servers', { timeout: suiteTimeoutMs }, () => {
  let nats: NatsCluster;
  let connection: NatsConnection;
  let manager: JetStreamManager;
  let cluster: Cluster;
  const gateways: GatewayProcess[] = [];
  before(async () => {
    nats = await startNatsCluster(temporaryFolder());
    connection = await connect({ servers: nats.url.split(','), maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    manager = await connection.jetstreamManager({ timeout: 1_000, checkAPI: false });
    cluster = await Cluster.start({ MARINA_NATS_REPLICAS: '3' }, { natsUrl: nats.url });
    gateways.push(...(await Promise.all([cluster.startGateway(), cluster.startGateway()])));
  });
  after(async () => {
    await cluster?.stop();
    await connection?.close();
    await nats?.stop();
  });

  /** Waits until all servers have stream and bucket, and answers which one leads the stream. */
  function whole(): Promise<number> {
    const prefix = cluster.gatewayVariables.MARINA_NATS_PREFIX;
    return eventually(async () => {
      const infos = [
        await manager.streams.info(`${prefix}EVENTS`),
        await manager.streams.info(`KV_${prefix}SLOTS`),
      ] as const;
      for (const { cluster } of infos) {
        assert.equal((cluster?.replicas ?? []).filter(({ current }) => current).length, 2, 'it is on three servers');
      }
      return Number(infos[0].cluster?.leader?.at(-1));
    }, resumedWithinMs);
  }

  async function leftOut(index: number): Promise<void> {
    const other = await connect({ servers: nats.urls[(index + 1) % 3] ?? '' });
    try {
      const { streams } = await other.jetstreamManager({ timeout: 1_000, checkAPI: false });
      await eventually(async () => {
        const { cluster: found } = await streams.info(`${cluster.gatewayVariables.MARINA_NATS_PREFIX}EVENTS`);
        const isThere = (found?.replicas ?? []).some(({ name, current }) => name === `node-${index}` && current);
        assert.ok(found?.leader !== `node-${index}` && !isThere, 'the others go on without it');
      }, resumedWithinMs);
    } finally {
      await other.close();
    }
  }

  for (const { name, make } of faults) {
    for (let run = 1; run <= runs; run += 1) {
      it(`${name}${runs > 1 ? `, ${run}` : ''}: no order or allocation is lost or sent twice`, async (t) => {
        const placed = async () => {
          await delay(beforeMs);
          await placedThroughEach(cluster, gateways);
        };
        const leader = await whole();
        const others = [0, 1, 2].filter((index) => index !== leader) as [number, number];
        await underLoad(
          t,
          cluster,
          gateways,
          () => make({ nats, leader, others, placed, leftOut }),
          async () => {
            await whole();
          },
        );
      });
    }
  }
});
