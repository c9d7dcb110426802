import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { AckPolicy, connect, type JsMsg, type NatsConnection } from 'nats';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';

const page = readFileSync(join(import.meta.dirname, '../../../../docs/EVENTS-NATS.md'), 'utf8');
/** The headers that docs/EVENTS-NATS.md promises. */
const promisedHeaders = [...page.matchAll(/^\| `([A-Z][\w-]+)` \|/gm)].map(([, name]) => name);

/** An internal system: a NATS client that knows docs/EVENTS-NATS.md and nothing of Marina's code. */
class Subscriber {
  readonly received: JsMsg[] = [];
  #stop: (() => void) | undefined;
  #reading: Promise<void> | undefined;

  constructor(
    private readonly connection: NatsConnection,
    private readonly prefix: string,
    private readonly name: string,
  ) {}

  async subscribe(subject: string): Promise<void> {
    const stream = `${this.prefix}EVENTS`;
    const manager = await this.connection.jetstreamManager();
    await manager.consumers.add(stream, {
      durable_name: this.name,
      filter_subject: `${this.prefix}events.${subject}`,
      ack_policy: AckPolicy.Explicit,
    });
    await this.resume();
  }

  async resume(): Promise<void> {
    const consumer = await this.connection.jetstream().consumers.get(`${this.prefix}EVENTS`, this.name);
    const messages = await consumer.consume();
    this.#stop = () => messages.stop();
    this.#reading = (async () => {
      for await (const message of messages) {
        this.received.push(message);
        message.ack();
      }
    })();
  }

  async pause(): Promise<void> {
    this.#stop?.();
    await this.#reading;
  }

  has(count: number): Promise<void> {
    return eventually(() => assert.equal(this.received.length, count));
  }

  get versions(): number[] {
    return this.received.map((message) => Number(message.headers?.get('Marina-Version')));
  }
}

describe('an internal system with nothing but a NATS client', () => {
  let nats: RestartableServer;
  let gateway: TestGateway;
  let connection: NatsConnection;
  let quantity = 0;
  const subscribers: Subscriber[] = [];
  before(async () => {
    nats = await startTestNats();
    gateway = await startGateway({ MARINA_NATS_URL: nats.url });
    connection = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  });
  after(async () => {
    await Promise.all(subscribers.map((subscriber) => subscriber.pause()));
    await connection.close();
    await gateway.stop();
    await nats.stop();
  });

  function newSubscriber(name: string): Subscriber {
    const subscriber = new Subscriber(connection, gateway.natsPrefix, name);
    subscribers.push(subscriber);
    return subscriber;
  }

  async function place(partner: TestPartner, count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let number = 0; number < count; number += 1) {
      quantity += 1; // No two orders alike: they would be refused while one is unclear.
      const order = { symbol: 'SIM-REST', time_in_force: 'gtc', quantity };
      const { status, text, body } = await gateway.place(partner, order);
      assert.equal(status, 201, text);
      ids.push(body.id);
    }
    return ids;
  }

  async function readFeed(partner: TestPartner): Promise<{ id: string; type: string; version: number }[]> {
    return (await gateway.rest('GET', '/v1/events?limit=100', { key: partner.key })).body.data;
  }

  it('gets each event whole: its body as in the feed, and its ids and type in subject and headers', async () => {
    const partner = await gateway.newPartner();
    const subscriber = newSubscriber('whole');
    await subscriber.subscribe(`${partner.id}.>`);
    const [orderId] = await place(partner, 1);
    await gateway.fund(partner, 10_000n);
    const { body: allocation } = await gateway.allocate(partner, {});
    await subscriber.has(2);
    const feed = await eventually(async () => {
      const events = await readFeed(partner);
      assert.equal(events.length, 2);
      return events;
    });
    const rows = await gateway.database.read(
      statement('SELECT body FROM feed_events WHERE partner_id = ? ORDER BY version', partner.id),
    );
    for (const [index, object] of [
      { kind: 'order', id: orderId },
      { kind: 'allocation', id: allocation.id },
    ].entries()) {
      const message = subscriber.received[index];
      const event = feed[index];
      assert.ok(message !== undefined && event !== undefined, `event ${index + 1}`);
      assert.equal(message.subject, `${gateway.natsPrefix}events.${partner.id}.${event.type}`);
      assert.equal(message.string(), String(rows[index]?.body), 'byte for byte as in the feed');
      assert.deepEqual(message.json(), event);
      const values = Object.fromEntries(promisedHeaders.map((name = '') => [name, message.headers?.get(name)]));
      assert.deepEqual(values, {
        'Nats-Msg-Id': event.id,
        'Marina-Partner': partner.id,
        'Marina-Version': String(event.version),
        'Marina-Type': event.type,
        'Marina-Object-Kind': object.kind,
        'Marina-Object-Id': object.id,
        'Marina-Mac': message.headers?.get('Marina-Mac'),
      });
      // Only gateways can check it.
      assert.match(message.headers?.get('Marina-Mac') ?? '', /^\d{13} [\w-]{22}$/);
    }
  });

  it('gets what came while it was away, each once and in order, and of other partners and types only what it asked for', async () => {
    const [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
    const subscriber = newSubscriber('away');
    const pending = newSubscriber('pending');
    await subscriber.subscribe(`${partner.id}.>`);
    await pending.subscribe('*.order.cancelled');
    await place(partner, 2);
    await subscriber.has(2);
    await subscriber.pause();
    const [id] = await place(partner, 3);
    await place(other, 1);
    assert.equal((await gateway.rest('DELETE', `/v1/orders/${id}`, { key: partner.key })).status, 200);
    await subscriber.resume();
    await subscriber.has(6);
    assert.deepEqual(subscriber.versions, [1, 2, 3, 4, 5, 6]);
    await pending.has(1);
    assert.equal(pending.received[0]?.headers?.get('Marina-Object-Id'), id);
  });

  it('sees by a gap in the versions what NATS lost, and the feed has it', async () => {
    const partner = await gateway.newPartner();
    const first = newSubscriber('first');
    await first.subscribe(`${partner.id}.>`);
    await place(partner, 1);
    await first.has(1);
    await nats.stop();
    await place(partner, 1);
    await eventually(async () => assert.equal((await readFeed(partner)).length, 2));
    await nats.restart({ empty: true });
    const second = newSubscriber('second');
    // The gateway makes the stream again.
    await eventually(() => second.subscribe(`${partner.id}.>`));
    await eventually(async () => {
      await place(partner, 1);
      assert.ok(second.received.length > 0, 'events come again');
    });
    assert.ok((second.versions[0] ?? 0) > 2, `the first is version ${second.versions[0]}`);
    const versions = await eventually(async () => {
      const feed = (await readFeed(partner)).map(({ version }) => version);
      assert.ok(feed.length >= (second.versions[0] ?? 0));
      return feed;
    });
    assert.deepEqual(
      versions,
      versions.map((_, index) => index + 1),
    );
  });
});
