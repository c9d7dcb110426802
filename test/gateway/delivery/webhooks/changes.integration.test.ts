import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultProxy } from '../../../support/fault-proxy.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { type Received, WebhookReceiver } from '../../../support/webhook-receiver.ts';

const silent = createLogger({ name: 'test', level: 'silent' });

describe("an operator's change of an endpoint", () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  /** Sends the webhooks. Its link to the database can be held. */
  let sender: App;
  let proxy: FaultProxy;
  /** Nothing it says to other processes reaches them. */
  let unheard: App;
  let admin: ReturnType<typeof adminClient>;
  let unheardAdmin: ReturnType<typeof adminClient>;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway({ ...receiver.variables, MARINA_ROLES: 'api,worker' });
    proxy = await FaultProxy.start(gateway.databaseUrl);
    const held = { MARINA_DATABASE_URL: proxy.through(gateway.databaseUrl), MARINA_ROLES: 'webhooks' };
    sender = await startApp(readConfig({ ...gateway.variables, ...held }), silent);
    const prefix = `T${randomBytes(6).toString('hex')}-`;
    const variables = { ...gateway.variables, MARINA_NATS_PREFIX: prefix, MARINA_ROLES: 'api' };
    unheard = await startApp(readConfig(variables), silent);
    admin = adminClient(gateway.app.adminPort);
    unheardAdmin = adminClient(unheard.adminPort);
  });
  after(async () => {
    admin.close();
    unheardAdmin.close();
    await Promise.all([unheard.stop(), sender.stop()]);
    await proxy.close();
    await gateway.stop();
    await receiver.close();
  });

  async function register(path: string): Promise<TestPartner> {
    const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: receiver.url(path) }, admin.options);
    return partner;
  }

  /** Places orders, one after the other, until it is told to stop. */
  function keepPlacing(partner: TestPartner): () => Promise<void> {
    let isOver = false;
    const placing = (async () => {
      for (let quantity = 1; !isOver; quantity += 1) {
        const { status, text } = await gateway.place(partner, { symbol: 'SIM-REST', quantity });
        assert.equal(status, 201, text);
      }
    })();
    return async () => {
      isOver = true;
      await placing;
    };
  }

  /** The ids of the events for which attempts were begun after an instant, by the record of attempts. */
  async function begunAfter(partner: TestPartner, at: number): Promise<Set<string>> {
    const rows = await gateway.database.read(
      statement(
        `SELECT d.event_id FROM webhook_attempts a
          JOIN webhook_deliveries d ON d.partner_id = a.partner_id AND d.version = a.version
          WHERE a.partner_id = ? AND a.at > ?`,
        partner.id,
        new Date(at),
      ),
    );
    return new Set(rows.map((row) => String(row.event_id)));
  }

  const signatures = ({ headers }: Received) => (headers['webhook-signature'] ?? '').split(' ').length;

  /** Makes a change while events are delivered, and answers with those whose attempts began after its answer. */
  async function changing(
    partner: TestPartner,
    path: string,
    change: () => Promise<unknown>,
    isEnough: (ids: ReadonlySet<string>) => Promise<boolean> = async (ids) => ids.size >= 20,
  ): Promise<ReadonlySet<string>> {
    const stop = keepPlacing(partner);
    try {
      await eventually(() => assert.ok(receiver.at(path).length >= 5, 'events are delivered'));
      await change();
      const answeredAt = Date.now();
      return await eventually(async () => {
        const ids = await begunAfter(partner, answeredAt);
        assert.ok(await isEnough(ids), `${ids.size} attempts were begun`);
        return ids;
      });
    } finally {
      await stop();
    }
  }

  it('holds for every attempt begun after the answer: a rotation signs with both secrets', async () => {
    const partner = await register('/rotated');
    const rotate = () => admin.webhooks.rotateSecret({ partnerId: partner.id }, admin.options);
    const begun = await changing(partner, '/rotated', rotate);
    const received = receiver.at('/rotated').filter(({ id }) => begun.has(id));
    assert.ok(received.every((each) => signatures(each) === 2));
  });

  it('holds for every attempt begun after the answer: a move sends to the new URL alone', async () => {
    const partner = await register('/left');
    const move = { partnerId: partner.id, url: receiver.url('/moved') };
    const begun = await changing(partner, '/left', () => admin.webhooks.moveEndpoint(move, admin.options));
    assert.ok(receiver.at('/left').every(({ id }) => !begun.has(id)));
  });

  it('holds for every attempt begun after the answer: a pause lets none begin', async () => {
    const partner = await register('/held');
    const pause = () => admin.webhooks.pauseEndpoint({ partnerId: partner.id }, admin.options);
    const begun = await changing(partner, '/held', pause, async () => {
      const sql = "SELECT COUNT(*) AS count FROM webhook_deliveries WHERE partner_id = ? AND state = 'waiting'";
      const [row] = await gateway.database.read(statement(sql, partner.id));
      return Number(row?.count) >= 20;
    });
    assert.equal(begun.size, 0);
  });

  it('waits for a process that cannot hear of it: after the answer that begins nothing by what was before', async () => {
    const { webhooks, options } = unheardAdmin;
    const changes: Record<string, (partnerId: string) => Promise<unknown>> = {
      '/deaf/rotated': (partnerId) => webhooks.rotateSecret({ partnerId }, options),
      '/deaf/left': (partnerId) => webhooks.moveEndpoint({ partnerId, url: receiver.url('/deaf/moved') }, options),
      '/deaf/held': (partnerId) => webhooks.pauseEndpoint({ partnerId }, options),
    };
    const partners = new Map<string, TestPartner>();
    for (const path of Object.keys(changes)) partners.set(path, await register(path));
    // More deliveries wait than it delivers while it is deaf.
    const preparing = [...partners].map(async ([path, partner]) => {
      receiver.slow(path, 800);
      await admin.webhooks.pauseEndpoint({ partnerId: partner.id }, admin.options);
      for (let quantity = 1; quantity <= 60; quantity += 1) {
        assert.equal((await gateway.place(partner, { symbol: 'SIM-REST', quantity })).status, 201);
      }
      await admin.webhooks.resumeEndpoint({ partnerId: partner.id }, admin.options);
      await eventually(() => assert.ok(receiver.at(path).length >= 5, 'events are delivered'));
    });
    await Promise.all(preparing);
    proxy.set('toClient', { hold: true });
    try {
      const answers = [...partners].map(async ([path, { id }]) => {
        const before = receiver.at(path).length;
        await changes[path]?.(id);
        assert.ok(receiver.at(path).length > before, 'it went on by what it knew');
        return { path, answeredAt: performance.now() };
      });
      const answered = await Promise.all(answers);
      await delay(1_500);
      for (const { path, answeredAt } of answered) {
        // A delivery that began before the answer has arrived a moment later.
        const late = receiver.at(path).filter(({ at }) => at > answeredAt + 400);
        assert.deepEqual(late, [], path);
      }
    } finally {
      proxy.heal();
    }
    await eventually(() => {
      assert.ok(receiver.at('/deaf/rotated').some((each) => signatures(each) === 2));
      assert.ok(receiver.at('/deaf/moved').length > 0);
    });
  });
});
