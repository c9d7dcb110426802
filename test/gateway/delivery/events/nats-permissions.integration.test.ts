import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { type Consumer, connect, type JsMsg, type Msg, type NatsConnection } from 'nats';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { sharedKeeper } from '../../../../src/sandbox/keeper.ts';
import { natsAccounts, natsLogin } from '../../../../src/sandbox/nats-accounts.ts';
import { type Server, startNats } from '../../../../src/sandbox/servers.ts';
import { eventually } from '../../../support/eventually.ts';
import { temporaryFolder } from '../../../support/folders.ts';
import { restCaller, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';
import { patient } from '../../../support/patience.ts';

const prefix = 'acl-';
const passwords = { gateway: '0123456789abcdef', events: '1e5', 'back-office': 'fedcba9876543210' };
const page = readFileSync(join(import.meta.dirname, '../../../../docs/EVENTS-NATS.md'), 'utf8');
const configuration = readFileSync(join(import.meta.dirname, '../../../../docs/deploy/nats.conf'), 'utf8');

describe('NATS with the accounts and permissions of docs/deploy/nats.conf', () => {
  let nats: Server;
  let gateway: TestGateway;
  let other: App;
  let partner: TestPartner;
  let subscriber: NatsConnection;
  const received: Msg[] = [];
  before(async () => {
    const dataDir = temporaryFolder();
    sharedKeeper().removeAtEnd(dataDir);
    nats = await startNats({ dataDir, disposable: true, further: natsAccounts(passwords, prefix) });
    subscriber = await connect({ servers: nats.url, user: 'events', pass: passwords.events, timeout: patient(20_000) });
    subscriber.subscribe(`${prefix}events.>`, { callback: (_, message) => void received.push(message) });
    await subscriber.flush();
    gateway = await startGateway({
      MARINA_NATS_URL: natsLogin(nats.url, 'gateway', passwords),
      MARINA_NATS_PREFIX: prefix,
      MARINA_NATS_CONSUMERS: 'back-office,another',
    });
    other = await startApp(readConfig({ ...gateway.variables }), createLogger({ name: 'other', level: 'silent' }));
    partner = await gateway.newPartner({ limits: { requestsUnderWay: 2 } });
  });
  after(async () => {
    await subscriber?.close();
    await other?.stop();
    await gateway?.stop();
    await nats?.kill();
  });

  /** How often the server refused something to a user, by its log. */
  const refused = (user: string) =>
    readFileSync(nats.process.logPath, 'utf8')
      .split('\n')
      .filter((line) => /Violation/.test(line) && line.includes(`"${user}"`)).length;

  /** Places an order, whose events the subscriber gets. */
  async function placeOne(): Promise<void> {
    const before = received.length;
    assert.equal((await gateway.place(partner, { symbol: 'SIM-FILL' })).status, 201);
    await eventually(() => assert.ok(received.length > before));
  }

  /** The back office, with an inbox of its own. */
  const connectBackOffice = () =>
    connect({
      servers: nats.url,
      user: 'back-office',
      pass: passwords['back-office'],
      inboxPrefix: '_INBOX_back-office',
      timeout: patient(20_000),
    });

  const consumerOf = (backOffice: NatsConnection): Promise<Consumer> =>
    backOffice.jetstream({ apiPrefix: 'marina.API' }).consumers.get(`${prefix}EVENTS`, 'back-office');

  async function pull(consumer: Consumer): Promise<JsMsg[]> {
    const pulled: JsMsg[] = [];
    for await (const message of await consumer.fetch({ max_messages: 100, expires: 1_000 })) pulled.push(message);
    return pulled;
  }

  /** Calls to JetStream that would change something, or show what others do. */
  const jetStreamCalls = (api: string) => [
    `${api}.STREAM.DELETE.${prefix}EVENTS`,
    `${api}.STREAM.PURGE.${prefix}EVENTS`,
    `${api}.STREAM.INFO.${prefix}EVENTS`,
    `${api}.STREAM.MSG.GET.KV_${prefix}SLOTS`,
    `${api}.DIRECT.GET.KV_${prefix}SLOTS.$KV.${prefix}SLOTS.tokens.rate.${partner.id}`,
    `${api}.STREAM.PURGE.KV_${prefix}SLOTS`,
    `${api}.CONSUMER.CREATE.${prefix}EVENTS.back-office`,
    `${api}.CONSUMER.DELETE.${prefix}EVENTS.back-office`,
    `${api}.CONSUMER.INFO.${prefix}EVENTS.another`,
    `${api}.CONSUMER.MSG.NEXT.${prefix}EVENTS.another`,
    `${api}.CONSUMER.MSG.NEXT.${prefix}EVENTS.${prefix}webhooks`,
    `${api}.CONSUMER.DELETE.${prefix}EVENTS.${prefix}webhooks`,
  ];

  it('lets gateways do all that they need', async () => {
    await placeOne();
    // Each asks the other for its slots, and counts with it.
    for (const app of [other, gateway.app, other]) {
      const answers = await Promise.all([1, 2].map(() => restCaller(app)('GET', '/v1/orders', { key: partner.key })));
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      );
    }
    await eventually(async () => {
      const { body } = await restCaller(other)('GET', '/v1/limits', { key: partner.key });
      assert.equal(body.requests_under_way.limit, 2);
      for (const { opsPort } of [gateway.app, other]) {
        const metrics = await scrape(opsPort);
        for (const part of ['nats', 'jetstream', 'limits']) {
          assert.equal(metrics.has('marina_part_trouble_seconds', { part }), false, part);
        }
        assert.equal(metrics.value('marina_nats_untrusted_total'), 0);
        assert.equal(metrics.value('marina_stream_pending_messages', { consumer: 'webhooks' }), 0);
      }
    });
    assert.equal(refused('gateway'), 0, readFileSync(nats.process.logPath, 'utf8'));
  });

  it('lets a subscriber read events, and publish nothing', async () => {
    const subjects = [
      `${prefix}events.${partner.id}.order.filled`,
      `${prefix}peers.here`,
      `${prefix}say.feed`,
      `$KV.${prefix}SLOTS.tokens.rate.${partner.id}`,
      `$JS.API.STREAM.DELETE.${prefix}EVENTS`,
      `$JS.API.STREAM.PURGE.KV_${prefix}SLOTS`,
      `$JS.API.CONSUMER.CREATE.${prefix}EVENTS`,
      'anything',
    ];
    const before = received.length;
    for (const subject of subjects) subscriber.publish(subject, 'lie 1');
    await subscriber.flush();
    await eventually(() => assert.equal(refused('events'), subjects.length));
    assert.equal(received.length, before);
    await placeOne();
    const { value } = await scrape(gateway.app.opsPort);
    assert.equal(value('marina_nats_untrusted_total'), 0);
  });

  it('lets a subscriber hear nothing but events', async () => {
    for (const subject of ['>', `${prefix}peers.>`, '_INBOX.>', `$KV.${prefix}SLOTS.>`]) {
      const before = refused('events');
      const errors: unknown[] = [];
      subscriber.subscribe(subject, { callback: (error) => void errors.push(error?.message) });
      await subscriber.flush();
      await eventually(() => assert.equal(refused('events'), before + 1, subject));
      assert.match(String(errors), /^[^,]*Permissions Violation[^,]*$/, subject);
    }
  });

  it('lets the back office pull all events from its consumer and acknowledge them, and nothing else', async () => {
    const backOffice = await connectBackOffice();
    try {
      const consumer = await eventually(() => consumerOf(backOffice));
      await placeOne();
      const events = await eventually(async () => {
        const pulled = await pull(consumer);
        assert.ok(pulled.some(({ subject }) => subject === `${prefix}events.${partner.id}.order.filled`));
        return pulled;
      });
      for (const event of events) assert.equal(await event.ackAck(), true);
      await eventually(async () => assert.equal((await consumer.info()).num_ack_pending, 0));
      assert.equal(refused('back-office'), 0);

      const subjects = [
        `${prefix}events.${partner.id}.order.filled`,
        `${prefix}peers.here`,
        `$KV.${prefix}SLOTS.tokens.rate.${partner.id}`,
        ...jetStreamCalls('$JS.API'),
        ...jetStreamCalls('marina.API'),
        `$JS.ACK.${prefix}EVENTS.webhooks.1.1.1.1.0`,
        `$JS.API.CONSUMER.MSG.NEXT.${prefix}EVENTS.back-office`,
      ];
      for (const subject of subjects) backOffice.publish(subject, 'lie 1');
      for (const subject of ['>', `${prefix}events.>`, `$KV.${prefix}SLOTS.>`, '_INBOX.>', '$JS.ACK.>', 'marina.>']) {
        backOffice.subscribe(subject, { callback: () => undefined });
        subjects.push(subject);
      }
      await backOffice.flush();
      await eventually(() => assert.equal(refused('back-office'), subjects.length));
      assert.equal((await scrape(gateway.app.opsPort)).value('marina_nats_untrusted_total'), 0);
      await placeOne();
      await eventually(async () => assert.ok((await pull(consumer)).length > 0));
    } finally {
      await backOffice.close();
    }
  });

  it('brings what the back office asks for to no gateway and no other subscriber', async () => {
    const backOffice = await connectBackOffice();
    const gateways = await connect({ servers: nats.url, user: 'gateway', pass: passwords.gateway });
    const heard: Msg[] = [];
    try {
      await eventually(() => consumerOf(backOffice));
      gateways.subscribe(`${prefix}peers.>`, { callback: (_, message) => void heard.push(message) });
      await gateways.flush();
      await placeOne();
      const asked = `marina.API.CONSUMER.MSG.NEXT.${prefix}EVENTS.back-office`;
      const before = received.length;
      for (const reply of [`${prefix}peers.lie`, `${prefix}events.lie`]) backOffice.publish(asked, '', { reply });
      await placeOne();
      const isLie = ({ subject }: Msg) => subject.endsWith('.lie');
      assert.deepEqual([heard.filter(isLie).length, received.slice(before).filter(isLie).length], [0, 0]);
    } finally {
      await Promise.all([backOffice.close(), gateways.close()]);
    }
  });

  it('gives the back office its consumer back when NATS has lost it', async () => {
    const backOffice = await connectBackOffice();
    const gateways = await connect({ servers: nats.url, user: 'gateway', pass: passwords.gateway });
    try {
      const { created } = await eventually(async () => (await consumerOf(backOffice)).info());
      // A gateway that finds its stream offline deletes it, with its consumers.
      const manager = await gateways.jetstreamManager({ checkAPI: false });
      await manager.streams.delete(`${prefix}EVENTS`);
      await eventually(async () => {
        await gateway.place(partner, { symbol: 'SIM-FILL' });
        assert.notEqual((await (await consumerOf(backOffice)).info()).created, created);
      });
      const consumer = await consumerOf(backOffice);
      // The gateway publishes nothing for a moment after NATS stored nothing.
      await eventually(async () => {
        await gateway.place(partner, { symbol: 'SIM-FILL' });
        assert.ok((await pull(consumer)).length > 0);
      });
    } finally {
      await Promise.all([backOffice.close(), gateways.close()]);
    }
  });

  it('lets nobody in without a login', async () => {
    await assert.rejects(connect({ servers: nats.url }), /Authorization/i);
    await assert.rejects(connect({ servers: nats.url, user: 'events', pass: 'wrong' }), /Authorization/i);
  });

  it('has exactly the permissions that docs/EVENTS-NATS.md lists', () => {
    const withoutComments = configuration.replace(/^\s*#.*$/gm, '');
    const [, gateways = ''] = /user: gateway([\s\S]*?)exports:/.exec(withoutComments) ?? [];
    const [, backOffice = ''] = /user: back-office([\s\S]*)$/.exec(withoutComments) ?? [];
    const listed = [...`${gateways}${backOffice}`.matchAll(/"([^"\s]+\.[^"\s]+)"/g)].map(([, subject]) => subject);
    assert.ok(listed.length > 19);
    const [, table = ''] = /## Permissions([\s\S]*?)\n## /.exec(page) ?? [];
    const described = new Set([...table.matchAll(/`([^`]+)`/g)].map(([, subject]) => subject));
    assert.deepEqual(
      listed.filter((subject) => !described.has(subject)),
      [],
    );
  });
});
