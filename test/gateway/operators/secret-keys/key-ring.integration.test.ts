import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply } from '../../../support/applications.ts';
import { overRest } from '../../../support/documents.ts';
import { eventually } from '../../../support/eventually.ts';
import { restCaller, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { noisePng } from '../../../support/images.ts';
import { secretKey as old } from '../../../support/keys.ts';
import { SecretFile, secretRefused } from '../../../support/secret-files.ts';
import { verify, WebhookReceiver } from '../../../support/webhook-receiver.ts';

describe('MARINA_SECRET_KEY, changed in two replicas under load', () => {
  const next = randomBytes(32).toString('hex');
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let other: App;
  let partner: TestPartner;
  let webhookSecret: string;
  let admin: ReturnType<typeof adminClient>;
  const file = new SecretFile(old);
  const otherFile = new SecretFile(old);
  const otherLogged: string[] = [];
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway({
      ...receiver.variables,
      MARINA_SECRET_KEY: '',
      MARINA_SECRET_KEY_FILE: file.path,
    });
    const log = createLogger({
      name: 'marina',
      level: 'info',
      destination: { write: (line) => void otherLogged.push(line) },
    });
    other = await startApp(readConfig({ ...gateway.variables, MARINA_SECRET_KEY_FILE: otherFile.path }), log);
    admin = adminClient(gateway.app.adminPort);
    partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
    const registered = await admin.webhooks.registerEndpoint(
      { partnerId: partner.id, url: receiver.url('/ring') },
      admin.options,
    );
    webhookSecret = registered.secret;
  });
  after(async () => {
    admin.close();
    await other.stop();
    await gateway.stop();
    await receiver.close();
  });

  const calls = () => [gateway.rest, restCaller(other)];

  /** Orders that were placed, by their Idempotency-Keys. */
  const placed = new Map<string, { id: string; body: object }>();

  /** Places an order in one replica and repeats the request in the other one. */
  async function placeTwice(number: number): Promise<void> {
    const [first, second] = number % 2 === 0 ? calls() : calls().reverse();
    const idempotencyKey = randomUUID();
    const body = {
      ...{ account: partner.account, symbol: 'SIM-REST', side: 'buy', quantity: number + 1 },
      ...{ type: 'limit', price_kobo: 1000, time_in_force: 'gtc' },
    };
    const request = { key: partner.key, idempotencyKey, body };
    const [one, again] = [await first?.('POST', '/v1/orders', request), await second?.('POST', '/v1/orders', request)];
    assert.deepEqual([one?.status, again?.status], [201, 200], `${one?.text} ${again?.text}`);
    assert.equal(again?.body.id, one?.body.id);
    placed.set(idempotencyKey, { id: one?.body.id, body });
  }

  async function underLoad(work: () => Promise<void>): Promise<void> {
    let isOver = false;
    const load = (async () => {
      while (!isOver) await placeTwice(placed.size);
      for (let more = 0; more < 5; more += 1) await placeTwice(placed.size);
    })();
    try {
      await work();
    } finally {
      isOver = true;
      await load;
    }
  }

  async function repeatAll(): Promise<void> {
    for (const [idempotencyKey, { id, body }] of placed) {
      for (const call of calls()) {
        const again = await call('POST', '/v1/orders', { key: partner.key, idempotencyKey, body });
        assert.deepEqual([again.status, again.body.id], [200, id], again.text);
      }
    }
    const [stored] = await gateway.database.read(
      statement('SELECT COUNT(*) AS found FROM orders WHERE partner_id = ?', partner.id),
    );
    assert.equal(Number(stored?.found), placed.size, 'no order was placed twice');
  }

  const pageAfter = (cursor: string) => `/v1/orders?limit=2&cursor=${encodeURIComponent(cursor)}`;

  async function newCursor(call: TestGateway['rest']): Promise<string> {
    const { status, body } = await call('GET', '/v1/orders?limit=2', { key: partner.key });
    assert.equal(status, 200);
    return body.next_cursor;
  }

  async function assertContinues(cursors: readonly string[]): Promise<void> {
    for (const cursor of cursors) {
      for (const call of calls()) {
        assert.equal((await call('GET', pageAfter(cursor), { key: partner.key })).status, 200);
      }
    }
  }

  it('leaves repeats, cursors, API keys, documents and webhooks as they were, at every step of the change', async () => {
    for (let number = 0; number < 4; number += 1) await placeTwice(number);
    const cursors = [await newCursor(gateway.rest)];
    const { body: application } = await apply(gateway, partner);
    const photo = { key: partner.key, id: application.id, type: 'photo', file: await noisePng() };
    const sendPhoto = async () => {
      for (const { restPort } of [gateway.app, other]) {
        assert.equal((await overRest(restPort)(photo)).outcome, 'delivered', 'the same file');
      }
    };
    await sendPhoto();
    await underLoad(async () => {
      await file.change([old, next], gateway.logged);
      await otherFile.change([old, next], otherLogged);
      cursors.push(await newCursor(restCaller(other)));
      await file.change([next, old], gateway.logged);
      cursors.push(await newCursor(gateway.rest));
      const made = await admin.keys.createKey(
        { partnerId: partner.id, scopes: [1], reason: 'a new one' },
        admin.options,
      );
      for (const call of calls()) {
        assert.equal(
          (await call('GET', '/v1/orders', { key: made.secret })).status,
          200,
          'an API key under the new key',
        );
      }
      await sendPhoto();
      await assertContinues(cursors);
      await otherFile.change([next, old], otherLogged);
    });
    await repeatAll();
    await assertContinues(cursors);
    await sendPhoto();
    await eventually(() => {
      const events = receiver.at('/ring');
      assert.ok(events.length >= placed.size);
      for (const event of events) verify(event, webhookSecret);
    }, 30_000);
  });

  it('stays as it was when its file is wrong, and says so without a word of it', async () => {
    const wrong = [
      ['canary'],
      ['ab'.repeat(32)],
      [next, next],
      Array.from({ length: 6 }, (_, at) => `${at}a`.repeat(32)),
    ];
    for (const lines of wrong) await file.change(lines, gateway.logged, secretRefused);
    assert.ok(gateway.logged.some((line) => line.includes('it must stay as a former one')));
    for (const line of gateway.logged) assert.doesNotMatch(line, /canary|abababab/);
    await placeTwice(placed.size);
    await repeatAll();
    file.put(next, old);
  });
});
