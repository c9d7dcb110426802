import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connect, type Msg, type NatsConnection } from 'nats';
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
const passwords = { gateway: '0123456789abcdef', events: '1e5' };
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

  it('lets nobody in without a login', async () => {
    await assert.rejects(connect({ servers: nats.url }), /Authorization/i);
    await assert.rejects(connect({ servers: nats.url, user: 'events', pass: 'wrong' }), /Authorization/i);
  });

  it('has exactly the permissions that docs/EVENTS-NATS.md lists', () => {
    const withoutComments = configuration.replace(/^\s*#.*$/gm, '');
    const [, gateways = ''] = /user: gateway([\s\S]*?)exports:/.exec(withoutComments) ?? [];
    const listed = [...gateways.matchAll(/"([^"\s]+\.[^"\s]+)"/g)].map(([, subject]) => subject);
    assert.ok(listed.length > 15);
    const [, table = ''] = /## Permissions([\s\S]*?)\n## /.exec(page) ?? [];
    const described = new Set([...table.matchAll(/`([^`]+)`/g)].map(([, subject]) => subject));
    assert.deepEqual(
      listed.filter((subject) => !described.has(subject)),
      [],
    );
  });
});
