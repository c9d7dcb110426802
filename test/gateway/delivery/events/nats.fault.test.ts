import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, headers, type NatsConnection } from 'nats';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { Cluster, type GatewayProcess, isTraffic, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { checkEverything } from '../../../support/fault/checker.ts';
import { FeedWatch } from '../../../support/fault/feed-watch.ts';
import { Load } from '../../../support/fault/load.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';

/** The promise: an event can be read this soon after its commit. */
const promisedMs = 5_000;

describe('events, when NATS', () => {
  let nats: RestartableServer;
  let proxy: FaultProxy;
  let cluster: Cluster;
  let gateway: GatewayProcess;
  const partners: Partner[] = [];
  before(async () => {
    nats = await startTestNats();
    proxy = await FaultProxy.start(nats.url);
    cluster = await Cluster.start({}, { natsUrl: proxy.through(nats.url) });
    gateway = await cluster.startGateway();
    for (let count = 0; count < 3; count += 1) partners.push(await cluster.newPartner());
  });
  after(async () => {
    await cluster.stop();
    await proxy.close();
    await nats.kill();
  });

  /** Does something to NATS while orders are placed, and holds the outcome against what is promised. */
  async function underLoad(disturb: () => Promise<void>): Promise<void> {
    const watch = FeedWatch.start(cluster.database);
    const load = Load.start({ gateways: () => [gateway], partners, restMs: 20 });
    await delay(300);
    await disturb();
    await delay(500);
    await load.settle(gateway);
    const longestMs = await watch.stop();
    assert.ok(longestMs < promisedMs, `an event could be read only after ${Math.round(longestMs)} ms`);
    await checkEverything(cluster, gateway, partners);
  }

  async function withNats(work: (connection: NatsConnection, stream: string) => Promise<void>): Promise<void> {
    const connection = await connect({ servers: nats.url });
    try {
      await work(connection, `${cluster.gatewayVariables.MARINA_NATS_PREFIX}EVENTS`);
    } finally {
      await connection.close();
    }
  }

  /** Publishes a message for each event there ever was, under its own id or under others. */
  async function publishAllAgain(messageId: (id: string) => string): Promise<void> {
    const prefix = cluster.gatewayVariables.MARINA_NATS_PREFIX;
    const rows = await cluster.database.read(statement('SELECT partner_id, version, id FROM feed_events'));
    await withNats(async (connection) => {
      const jetStream = connection.jetstream();
      const publish = (row: (typeof rows)[number]) => {
        const head = headers();
        head.set('Marina-Partner', String(row.partner_id));
        head.set('Marina-Version', String(row.version));
        const msgID = messageId(String(row.id));
        return jetStream.publish(`${prefix}events.${row.partner_id}.again`, undefined, { headers: head, msgID });
      };
      for (let first = 0; first < rows.length; first += 200) {
        await Promise.all(rows.slice(first, first + 200).map(publish));
      }
    });
    assert.ok(rows.length > 0);
  }

  it('is killed and started again with its store', () =>
    underLoad(async () => {
      await nats.kill();
      await delay(1_500);
      await nats.restart();
      await delay(1_000);
    }));

  it('is killed and started again without its store', () =>
    underLoad(async () => {
      await nats.kill();
      await delay(500);
      await nats.restart({ empty: true });
      await delay(1_500);
    }));

  it('loses the stream', () =>
    underLoad(() =>
      withNats(async (connection, stream) => {
        const manager = await connection.jetstreamManager();
        assert.equal(await manager.streams.delete(stream), true);
        await delay(2_000);
      }),
    ));

  it('loses the consumer', () =>
    underLoad(() =>
      withNats(async (connection, stream) => {
        const manager = await connection.jetstreamManager();
        const [consumer] = await manager.consumers.list(stream).next();
        assert.ok(consumer !== undefined, 'the webhooks have a consumer');
        assert.equal(await manager.consumers.delete(stream, consumer.name), true);
        await delay(2_000);
      }),
    ));

  it('loses every message right after it took it', () =>
    underLoad(() =>
      withNats(async (connection, stream) => {
        const manager = await connection.jetstreamManager();
        for (const end = performance.now() + 2_000; performance.now() < end; ) await manager.streams.purge(stream);
      }),
    ));

  it('gives the messages to another, who never acknowledges them', () =>
    underLoad(() =>
      withNats(async (connection, stream) => {
        const durable = `${cluster.gatewayVariables.MARINA_NATS_PREFIX}webhooks`;
        const consumer = await connection.jetstream().consumers.get(stream, durable);
        const stolen = await consumer.consume({ max_messages: 500, expires: 5_000 });
        await delay(2_000);
        stolen.stop();
      }),
    ));

  it('resets its connections again and again', () =>
    underLoad(async () => {
      for (let count = 0; count < 10; count += 1) {
        proxy.reset();
        await delay(150);
      }
    }));

  it('swallows everything on the connections there are', () =>
    underLoad(async () => {
      proxy.set('both', { blackhole: true }, 'present');
      await delay(2_500);
      proxy.reset(); // As the network does in the end; to wait for the client's own pings would take long.
      await delay(500);
    }));

  it('answers late', () =>
    underLoad(async () => {
      proxy.set('both', { delayMs: 700 });
      await delay(3_000);
      proxy.heal();
    }));

  it('stands still and goes on', () =>
    underLoad(async () => {
      proxy.set('both', { hold: true });
      await delay(3_000);
      proxy.heal();
    }));

  it('brings every event once more, within the time it remembers ids and after: nothing changes', async () => {
    const readAll = () => cluster.database.read(statement('SELECT partner_id, version, id, body FROM feed_events'));
    const before = await readAll();
    await publishAllAgain((id) => id);
    await publishAllAgain((id) => `${id}-again`);
    await withNats(async (connection, stream) => {
      const manager = await connection.jetstreamManager();
      await eventually(async () => {
        const [consumer] = await manager.consumers.list(stream).next();
        assert.deepEqual([consumer?.num_pending, consumer?.num_ack_pending], [0, 0]);
      });
    });
    assert.deepEqual(await readAll(), before);
    await checkEverything(cluster, gateway, partners);
  });

  it('brings messages that make no sense: events go on', async () => {
    const prefix = cluster.gatewayVariables.MARINA_NATS_PREFIX;
    await withNats(async (connection) => {
      const jetStream = connection.jetstream();
      const nonsense: [string | undefined, string | undefined][] = [
        [undefined, undefined],
        ['nobody', '1'],
        [partners[0]?.id, '999999999999999999'],
        [partners[0]?.id, '-1'],
        [partners[0]?.id, "1' OR '1'='1"],
        ['', '1'],
      ];
      for (const [partner, version] of nonsense) {
        const head = headers();
        if (partner !== undefined) head.set('Marina-Partner', partner);
        if (version !== undefined) head.set('Marina-Version', version);
        await jetStream.publish(`${prefix}events.nonsense`, 'nonsense', { headers: head });
      }
    });
    await underLoad(async () => undefined);
  });

  it('is away for good: events go from hand to hand, and little is logged', () =>
    underLoad(async () => {
      const before = gateway.logged().length;
      await nats.kill();
      await delay(5_000);
      const lines = gateway
        .logged()
        .slice(before)
        .filter((line) => !isTraffic(line));
      assert.ok(lines.length < 50, `${lines.length} lines in 5 seconds: ${JSON.stringify(lines.slice(-5))}`);
    }));
});
