import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { Metadata } from '@grpc/grpc-js';
import { createConnection } from 'mysql2/promise';
import { type App, startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { MarketSession, Reference } from '../../../../src/gen/marina/gateway/v1/reference_pb.ts';
import { Call } from '../../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../../../src/kit/grpc-client.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { apply, goodApplication } from '../../../support/applications.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultProxy, type Link } from '../../../support/fault-proxy.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { noiseJpeg } from '../../../support/images.ts';
import { scrape } from '../../../support/metrics.ts';
import { patient } from '../../../support/patience.ts';
import { testServers } from '../../../support/servers.ts';

const silent = createLogger({ name: 'test', level: 'silent' });
const sends = [
  ...[Call.SUBMIT_ORDER, Call.SUBMIT_ALLOCATION, Call.SUBMIT_WITHDRAWAL],
  ...[Call.SUBMIT_APPLICATION, Call.SEND_DOCUMENT],
];
const tables = ['orders', 'allocations', 'withdrawals', 'applications', 'documents'];
const order = { symbol: 'SIM-REST', side: 'buy', type: 'limit', price_kobo: 1000 };

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into answers freely, and fails on what is not there.
  readonly body: any;
}

describe('a pause of trading', () => {
  let gateway: TestGateway;
  let other: App;
  /** Between the other replica and the database. */
  let proxy: FaultProxy;
  let partner: TestPartner;
  let application: string;
  let file: Buffer;
  before(async () => {
    gateway = await startGateway();
    proxy = await FaultProxy.start(gateway.databaseUrl);
    const variables = { ...gateway.variables, MARINA_DATABASE_URL: proxy.through(gateway.databaseUrl) };
    other = await startApp(readConfig(variables), silent);
    file = await noiseJpeg();
  });
  after(async () => {
    await other.stop();
    await proxy.close();
    await gateway.stop();
  });
  beforeEach(async () => {
    partner = await gateway.newPartner();
    await gateway.fund(partner, 1_000_000n);
    application = (await apply(gateway, partner)).body.id;
    // Its decoders run by now.
    assert.equal((await send('signature')).status, 200);
    // From here on the gateway knows partner, account and symbol: an order is stored in one round trip.
    for (const quantity of [1, 2]) {
      assert.equal((await gateway.place(partner, { symbol: 'SIM-REST', quantity })).status, 201);
    }
  });

  async function setPaused(paused: boolean, { adminPort }: App): Promise<void> {
    const { trading, options, close } = adminClient(adminPort);
    try {
      if (paused) await trading.pauseTrading({ reason: 'test' }, options);
      else await trading.resumeTrading({ reason: 'test' }, options);
    } finally {
      close();
    }
  }

  async function resume(): Promise<void> {
    await setPaused(false, gateway.app);
    for (const { opsPort } of [gateway.app, other]) {
      await eventually(async () => assert.equal((await scrape(opsPort)).value('marina_trading_paused'), 0));
    }
  }

  /** Locks the partner's row from a connection of its own, and returns what unlocks it. */
  async function lockPartner(): Promise<() => Promise<void>> {
    const connection = await createConnection({ uri: gateway.databaseUrl });
    await connection.query('START TRANSACTION');
    await connection.query('SELECT id FROM partners WHERE id = ? FOR UPDATE', [partner.id]);
    return () => connection.end();
  }

  async function call(app: App, method: string, path: string, type: string, body: string | Buffer): Promise<Answer> {
    const headers: Record<string, string> = { authorization: `Bearer ${partner.key}`, 'content-type': type };
    if (method === 'POST') headers['idempotency-key'] = randomUUID();
    const response = await fetch(`http://127.0.0.1:${app.restPort}${path}`, { method, headers, body });
    return { status: response.status, headers: response.headers, body: await response.json() };
  }

  /** One of each that trading is made of. */
  const starts: Record<string, (app: App) => Promise<Answer>> = {
    orders: (app) => post(app, '/v1/orders', { ...order, account: partner.account, quantity: 7 }),
    allocations: (app) => post(app, '/v1/allocations', { account: partner.account, amount_kobo: 500 }),
    withdrawals: (app) =>
      post(app, '/v1/withdrawals', { account: partner.account, amount_kobo: 500, destination: 'bank_account' }),
    applications: (app) => post(app, '/v1/applications', goodApplication),
    documents: (app) => send('photo', app),
  };

  function send(type: string, app = gateway.app): Promise<Answer> {
    return call(app, 'PUT', `/v1/applications/${application}/documents/${type}`, 'image/jpeg', file);
  }

  function post(app: App, path: string, body: unknown): Promise<Answer> {
    return call(app, 'POST', path, 'application/json', JSON.stringify(body));
  }

  /** Starts one of each, and waits until all of them wait for the partner's lock. */
  async function startAll(app: App): Promise<Promise<Answer>[]> {
    const started = Object.values(starts).map((start) => start(app));
    await eventually(async () => {
      const waiting = (await scrape(app.opsPort)).value('marina_partner_queue_waiting');
      assert.equal(waiting, 4, 'one waits for the lock and four wait behind it');
    });
    return started;
  }

  async function countStored(): Promise<number[]> {
    const counts = tables.map((table) =>
      statement(`SELECT COUNT(*) AS count FROM ${table} WHERE partner_id = ?`, partner.id),
    );
    return (await gateway.database.readAll(counts)).map(([row]) => Number(row?.count));
  }

  async function countSent(): Promise<number> {
    const { messages } = await gateway.controls.listMessages({}, callTimeout);
    return messages.filter((message) => sends.includes(message.call)).length;
  }

  function assertPaused({ status, headers, body }: Answer): void {
    assert.deepEqual([status, body.error?.code, headers.get('retry-after')], [503, 'trading_paused', '30']);
    assert.equal(headers.get('location'), null);
  }

  for (const by of ['the replica that serves them', 'another replica']) {
    it(`stops orders, allocations, withdrawals, applications and documents that waited when ${by} answered it`, async () => {
      const stored = await countStored();
      const sent = await countSent();
      const unlock = await lockPartner();
      try {
        const started = await startAll(gateway.app);
        await setPaused(true, by === 'another replica' ? other : gateway.app);
        await unlock();
        for (const answer of await Promise.all(started)) assertPaused(answer);
        assert.deepEqual(await countStored(), stored);
        assert.equal(await countSent(), sent);
      } finally {
        await resume();
      }
    });
  }

  it('is obeyed by a replica that has not heard of it', async () => {
    const [stored, sent] = [await countStored(), await countSent()];
    try {
      await setPaused(true, other);
      assertPaused(await gateway.place(partner, { symbol: 'SIM-REST', quantity: 8 }));
      assertPaused(await gateway.allocate(partner, {}));
      assertPaused(await gateway.withdraw(partner, {}));
      assertPaused(await apply(gateway, partner));
      assert.deepEqual([await countStored(), await countSent()], [stored, sent]);
    } finally {
      await resume();
    }
  });

  for (const [table, start] of Object.entries(starts)) {
    it(`a pause that a replica hears of between the store of ${table} and the send keeps it from being sent`, async () => {
      const [stored, sent] = [await countStored(), await countSent()];
      let held: Link | undefined;
      proxy.onBytes = (link, direction, bytes) => {
        if (direction !== 'toServer' || !bytes.includes(`INSERT INTO ${table} (`) || !bytes.includes('COMMIT')) return;
        held = link;
        link.set('toClient', { hold: true });
      };
      try {
        const starting = start(other);
        const link = await eventually(() => held ?? assert.fail('nothing was stored yet'));
        await setPaused(true, gateway.app);
        await eventually(async () => {
          assert.equal((await scrape(other.opsPort)).value('marina_trading_paused'), 1);
        });
        link.set('toClient', {});
        const { status, headers, body } = await starting;
        assert.equal(await countSent(), sent);
        if (table === 'documents') {
          assertPaused({ status, headers, body });
          assert.deepEqual(await countStored(), stored, 'another file of the type may come');
          return;
        }
        assert.deepEqual([status, body.error.code], [503, `${table.slice(0, -1)}_not_sent`], JSON.stringify(body));
        const kept = await gateway.rest('GET', headers.get('location') ?? '', { key: partner.key });
        assert.equal(kept.body.state, 'refused');
        assert.match(kept.body.reason, /^Trading was paused before/);
        const wallet = await gateway.rest('GET', '/v1/wallet', { key: partner.key });
        assert.deepEqual([wallet.body.available_kobo, wallet.body.reserved_kobo], [1_000_000, 0]);
      } finally {
        proxy.heal();
        await resume();
      }
    });
  }

  it('a pause holds for an order that meets it on its way: the order is stored before it, or not at all', async () => {
    const connection = await createConnection({ uri: gateway.databaseUrl });
    const server = await createConnection({ uri: (await testServers()).databaseUrl });
    try {
      await connection.query('START TRANSACTION');
      await connection.query('UPDATE environment SET trading_paused_at = NOW(3) WHERE id = 1');
      let isAnswered = false;
      const placing = gateway.place(partner, { symbol: 'SIM-REST', quantity: 3 }).finally(() => {
        isAnswered = true;
      });
      await eventually(async () => {
        const [rows] = await server.query(
          "SELECT 1 FROM information_schema.processlist WHERE db = ? AND info LIKE '%environment WHERE id = 1 LOCK IN SHARE MODE%'",
          [new URL(gateway.databaseUrl).pathname.slice(1)],
        );
        assert.ok(isAnswered || (rows as unknown[]).length > 0, 'the order waits for the lock');
      });
      assert.equal(isAnswered, false, 'it is not stored while the pause may come');
      await connection.query('COMMIT');
      const { status, body } = await placing;
      assert.deepEqual([status, body.error?.code], [503, 'trading_paused']);
    } finally {
      await connection.end();
      await server.end();
      await resume();
    }
  });

  it('lets a known key be answered again, and cancels and estimates go on', async () => {
    const key = randomUUID();
    const placed = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 9 }, key);
    assert.equal(placed.status, 201);
    try {
      await setPaused(true, other);
      const again = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 9 }, key);
      assert.deepEqual([again.status, again.body.id], [200, placed.body.id]);
      const cancelled = await gateway.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key });
      assert.deepEqual([cancelled.status, cancelled.body.state], [200, 'cancelled']);
    } finally {
      await resume();
    }
  });

  it("is told by GetMarket over each protocol as soon as it was answered, and the session stays the exchange's", async () => {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${partner.key}`);
    const reference = createGrpcClient(Reference, `127.0.0.1:${gateway.app.grpcPort}`);
    const assertTold = async (tradingPaused: boolean) => {
      const { body } = await gateway.rest('GET', '/v1/market', { key: partner.key });
      assert.deepEqual([body.session, body.trading_paused], ['open', tradingPaused]);
      const answer = await reference.getMarket({}, { timeoutMs: 5_000, metadata });
      assert.deepEqual([answer.session, answer.tradingPaused], [MarketSession.OPEN, tradingPaused]);
      const connect = await call(gateway.app, 'POST', `/${Reference.typeName}/GetMarket`, 'application/json', '{}');
      assert.equal(connect.body.tradingPaused ?? false, tradingPaused);
    };
    try {
      await assertTold(false);
      await setPaused(true, gateway.app);
      await assertTold(true);
      await setPaused(false, gateway.app);
      await assertTold(false);
    } finally {
      reference.close();
      await resume();
    }
  });

  it('is answered at once while many orders are placed, and none is stored after the answer', async () => {
    let isOver = false;
    let last = 0;
    const placing = Array.from({ length: 8 }, async (_, worker) => {
      for (let at = 0; !isOver; at += 1) {
        const { status } = await gateway.place(partner, { symbol: 'SIM-REST', quantity: 1_000 * worker + at + 10 });
        assert.ok(status === 201 || status === 503, `${status}`);
      }
    });
    try {
      const before = await countStored();
      await eventually(async () => assert.ok((await countStored())[0] ?? 0 > (before[0] ?? 0)));
      const startedAt = performance.now();
      await setPaused(true, other);
      last = (await countStored())[0] ?? 0;
      assert.ok(performance.now() - startedAt < patient(4_000), 'it does not wait for the orders to end');
      await eventually(async () => {
        assertPaused(await gateway.place(partner, { symbol: 'SIM-REST', quantity: 5 }));
      });
    } finally {
      isOver = true;
      await Promise.all(placing);
      const [orders] = await countStored();
      await resume();
      assert.equal(orders, last);
    }
  });
});
