import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type JetStreamManager, type NatsConnection } from 'nats';
import { type NatsCluster, startNatsCluster } from '../../../support/clusters/nats-cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { temporaryFolder } from '../../../support/folders.ts';
import { restCaller, startGateway, type TestGateway } from '../../../support/gateway.ts';

describe('a gateway on a cluster of three NATS servers', () => {
  let cluster: NatsCluster;
  let connection: NatsConnection;
  let manager: JetStreamManager;
  let gateway: TestGateway | undefined;
  before(async () => {
    cluster = await startNatsCluster(temporaryFolder());
    connection = await connect({ servers: cluster.url.split(','), maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    manager = await connection.jetstreamManager({ timeout: 1_000, checkAPI: false });
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });
  after(async () => {
    await connection?.close();
    await cluster?.stop();
  });

  async function start(replicas: string, variables: Record<string, string> = {}): Promise<TestGateway> {
    gateway = await startGateway({ ...variables, MARINA_NATS_URL: cluster.url, MARINA_NATS_REPLICAS: replicas });
    return gateway;
  }

  const names = ({ natsPrefix }: TestGateway) => [`${natsPrefix}EVENTS`, `KV_${natsPrefix}SLOTS`];

  /** Waits until the stream and the bucket are there on so many servers. */
  function has(of: TestGateway, copies: number): Promise<void> {
    return eventually(async () => {
      const infos = await Promise.all(names(of).map((name) => manager.streams.info(name)));
      const current = infos.map(({ cluster }) => 1 + (cluster?.replicas ?? []).filter(({ current }) => current).length);
      assert.deepEqual(current, [copies, copies]);
    }, 20_000);
  }

  async function troubles(of: TestGateway): Promise<string[]> {
    const response = await fetch(`http://127.0.0.1:${of.app.opsPort}/readyz`);
    const { degraded } = (await response.json()) as { degraded: { part: string }[] };
    return degraded.map(({ part }) => part);
  }

  const isWell = (of: TestGateway) => eventually(async () => assert.deepEqual(await troubles(of), []), 45_000);

  /** Places orders until the gateway is well: JetStream counts as failing for a minute, or until it stores the next event. */
  async function isWellWith(of: TestGateway, place: () => Promise<unknown>): Promise<void> {
    await eventually(async () => {
      await place();
      await delay(500);
      assert.deepEqual(await troubles(of), []);
    }, 45_000);
  }

  /** Kills the server that leads a stream, and starts it again, with nothing, when the gateway is well without it. */
  async function withoutLeader(of: TestGateway, name: string, work: () => Promise<void>): Promise<void> {
    const leader = Number((await manager.streams.info(name)).cluster?.leader?.at(-1));
    await cluster.servers[leader]?.kill();
    try {
      await work();
      await eventually(async () => {
        const { cluster } = await manager.streams.info(name);
        assert.notEqual(cluster?.leader ?? `node-${leader}`, `node-${leader}`);
      }, 45_000);
      await isWellWith(of, work);
    } finally {
      await cluster.restart(leader, true);
    }
  }

  it('makes a stream and a bucket again that only a server had that is gone', async () => {
    const one = await start('1');
    const partner = await one.newPartner();
    await has(one, 1);
    await isWell(one);
    for (const [index, name] of names(one).entries()) {
      let isShown = false;
      await withoutLeader(one, name, async () => {
        assert.equal((await one.place(partner, { symbol: 'SIM-REST', quantity: 1 })).status, 201);
        // As long as it has no server.
        if (isShown) return;
        const part = index === 0 ? 'jetstream' : 'limits';
        await eventually(async () => assert.ok((await troubles(one)).includes(part), `${part} is shown as trouble`));
        isShown = true;
      });
    }
  });

  it('raises the copies of what a gateway made with fewer', async () => {
    const one = await start('1');
    await has(one, 1);
    await start('3', { MARINA_NATS_PREFIX: one.natsPrefix });
    await has(one, 3);
    await isWell(one);
    await one.stop();
  });

  it('places orders while the server that leads is frozen, and while two of three are gone', async (t) => {
    const three = await start('3');
    const partner = await three.newPartner();
    await has(three, 3);
    await isWell(three);
    let placed = 0;
    const place = async () => {
      const from = performance.now();
      placed += 1;
      const { status } = await three.place(partner, { symbol: 'SIM-REST', quantity: placed });
      assert.equal(status, 201);
      return performance.now() - from;
    };
    const placeSome = async () => {
      const times: number[] = [];
      for (let count = 0; count < 20; count += 1) times.push(await place());
      return Math.round(Math.max(...times));
    };
    const [events = ''] = names(three);
    const leader = Number((await manager.streams.info(events)).cluster?.leader?.at(-1));
    const frozen = cluster.servers[leader];
    assert.ok(frozen !== undefined);
    process.kill(frozen.pid, 'SIGSTOP');
    let longest: number;
    try {
      longest = await placeSome();
    } finally {
      process.kill(frozen.pid, 'SIGCONT');
    }
    await isWellWith(three, place);
    const gone = [0, 1, 2].filter((index) => index !== leader);
    for (const index of gone) await cluster.servers[index]?.kill();
    longest = Math.max(longest, await placeSome());
    for (const index of gone) await cluster.restart(index);
    await has(three, 3);
    await isWellWith(three, place);
    t.diagnostic(`the longest order took ${longest} ms`);
    assert.ok(longest < 5_000, `an order took ${longest} ms`);
    await eventually(async () => {
      const { body } = await restCaller(three.app)('GET', '/v1/events?limit=100', { key: partner.key });
      assert.equal(body.data.length, placed, 'the feed has all events');
    });
  });

  it('keeps three copies, and goes on without the server that led them', async () => {
    const three = await start('3');
    const partner = await three.newPartner();
    await has(three, 3);
    await isWell(three);
    const [events = ''] = names(three);
    const { created } = await manager.streams.info(events);
    await withoutLeader(three, events, async () => {
      assert.equal((await three.place(partner, { symbol: 'SIM-REST', quantity: 1 })).status, 201);
    });
    assert.equal((await manager.streams.info(events)).created, created, 'it is the same stream');
  });
});
