import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { walkLedger } from '../../../src/gateway/operators/calls/ledger.ts';
import { openDatabase } from '../../../src/gateway/store/database.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { goodApplication } from '../../support/applications.ts';
import { exchangeOrders } from '../../support/brokers-record.ts';
import { type Answer, Cluster, callTimeout, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { dump, restore } from '../../support/dump.ts';
import { eventually } from '../../support/eventually.ts';
import { patient } from '../../support/patience.ts';
import { createTestDatabase, type TestDatabase } from '../../support/servers.ts';
import { checkWorld } from '../../support/world.ts';

/** A request with its key, and what it was answered with before the database was lost. */
interface Sent {
  readonly partner: Partner;
  readonly path: '/v1/orders' | '/v1/allocations' | '/v1/applications' | '/v1/withdrawals';
  readonly key: string;
  readonly body: Record<string, unknown>;
  answer: Answer | undefined;
}

const submitCalls = [Call.SUBMIT_ORDER, Call.SUBMIT_ALLOCATION, Call.SUBMIT_APPLICATION, Call.SUBMIT_WITHDRAWAL];
const destinations = ['wallet', 'bank_account'];

describe('a database that is lost while orders flow, and restored from a backup made some time before', () => {
  let cluster: Cluster;
  let restored: TestDatabase;
  before(async () => {
    cluster = await Cluster.start();
    restored = await createTestDatabase();
  });
  after(async () => {
    // The database that was lost tells nothing of what came later.
    await cluster.stop(['outbox', 'deliveries', 'exchange']);
    await restored.drop();
  });

  it('is completed from what the broker was given: no request is sent again, no order, booking or application is lost', async (t) => {
    const partners = [await cluster.newPartner(), await cluster.newPartner()];
    for (const partner of partners) await cluster.fund(partner, 10_000_000n);
    const [first] = partners as [Partner, Partner];
    const old = await cluster.startGateway();

    const sent: Sent[] = [];
    let stopping = false;
    let number = 0;
    async function send(gateway: GatewayProcess, one: Sent): Promise<Answer> {
      const { partner, path, key, body } = one;
      return gateway.request('POST', path, { key: partner.key, idempotencyKey: key, body });
    }
    async function hand(): Promise<void> {
      while (!stopping) {
        const at = number++;
        const partner = partners[at % 2] as Partner;
        const { account } = partner;
        const symbol = ['SIM-PARTS', 'SIM-REST', 'SIM-FILL', 'SIM-REJECT', 'SIM-HALF'][at % 5];
        const order = { account, symbol, side: 'buy', quantity: 100 + at, type: 'limit', price_kobo: 1000 };
        const common = { partner, key: randomUUID(), answer: undefined };
        const one: Sent =
          at % 7 === 3
            ? { ...common, path: '/v1/allocations', body: { account, amount_kobo: 1_000 + at } }
            : at % 11 === 5
              ? { ...common, path: '/v1/applications', body: goodApplication }
              : at % 13 === 6
                ? {
                    ...common,
                    path: '/v1/withdrawals',
                    body: { account, destination: destinations[at % 3 === 0 ? 1 : 0], amount_kobo: 1_000 + at },
                  }
                : { ...common, path: '/v1/orders', body: { ...order, client_reference: `ref ${at}` } };
        sent.push(one);
        one.answer = await send(old, one);
        await delay(10);
      }
    }
    const hands = Array.from({ length: 4 }, hand);
    // If the test fails before, its file must end.
    t.after(() => {
      stopping = true;
    });
    const answered = () => sent.filter(({ answer }) => answer?.status === 201).length;

    // The backup, while orders flow; then as many again.
    await eventually(() => assert.ok(answered() > 60, 'orders flow'), 30_000);
    const file = join(cluster.folder, 'backup.sql');
    await dump(cluster.databaseUrl, file);
    const atBackup = sent.length;
    await eventually(() => assert.ok(answered() > atBackup + 60, 'orders flow on'), 30_000);

    // The partner's copy of the feed up to here.
    const seen = await readFeed(old, first);
    const cursor = seen.cursor;
    const lastSeen = Math.max(...seen.events.map(({ version }) => version));

    // The database is lost, and everything that used it.
    await old.kill();
    stopping = true;
    await Promise.all(hands);
    await restore(file, restored.url);
    const database = await openDatabase({ url: restored.url, environment: 'sandbox', poolSize: 4 });
    try {
      const [lost] = await database.read(statement('SELECT COUNT(*) AS count FROM orders'));
      assert.ok(Number(lost?.count) < answered(), 'the backup lacks orders');

      const gateway = await cluster.startGateway({ MARINA_DATABASE_URL: restored.url });
      // Partners whose requests broke off, and those who are not sure, repeat them at once.
      const repeated = await Promise.all(
        sent.map(async (one) => {
          for (const end = performance.now() + patient(120_000); ; ) {
            assert.ok(performance.now() < end, 'it is not answered in time');
            const answer = await send(gateway, one);
            // A connection can be refused while hundreds come at once, and says nothing of the request.
            const isAnswered = answer.status !== undefined && answer.status !== 503 && answer.status !== 429;
            if (isAnswered && answer.body?.error?.code !== 'similar_order_unresolved') return { ...one, again: answer };
            await delay(50);
          }
        }),
      );
      for (const { answer, again, key } of repeated) {
        if (answer?.status !== 201) continue;
        assert.equal(again.status, 200, `${key}: ${JSON.stringify(again.body)}`);
        assert.equal(again.body.id, answer.body.id, 'it leads to what it led to before');
        assert.equal(again.headers?.get('idempotent-replayed'), 'true');
      }

      const logged = gateway.logged().filter(({ msg }) => msg.startsWith('what the database had lost was restored'));
      assert.ok(logged.length > 30, `${logged.length} objects were restored`);

      // Everything comes to rest, and agrees with the broker.
      await eventually(async () => {
        for (const table of ['orders', 'allocations', 'applications', 'withdrawals']) {
          const unclear = await database.read(
            statement(`SELECT id, state FROM ${table} WHERE state IN ('sending', 'uncertain')`),
          );
          assert.deepEqual(unclear, [], `${table} are still unclear`);
        }
        assert.deepEqual(await database.read(statement('SELECT id FROM outbox')), [], 'events are on their way');
        const stored = await database.read(statement('SELECT id, filled_quantity FROM orders ORDER BY id'));
        const there = await exchangeOrders(cluster.controls);
        assert.deepEqual(
          stored.map((row) => [row.id, BigInt(String(row.filled_quantity))]),
          there
            .map((order) => [order.clientOrderId, order.filledQuantity] as const)
            .sort(([one], [other]) => (one < other ? -1 : 1)),
          'every order of the exchange is stored, with what has filled',
        );
      }, 60_000);
      await checkSentOnce(sent.length);
      for (const partner of partners) {
        await checkMoney(partner);
        await checkFeed(gateway, partner);
      }

      // A reader goes on from where it was, and sees no version again.
      const later = await readFeed(gateway, first, cursor);
      assert.ok(later.events.length > 0, 'there is news');
      for (const { version } of later.events) assert.ok(version > lastSeen, `version ${version} was not told before`);
      await checkWorld({ database, controls: cluster.controls, gateways: [gateway] });

      async function checkMoney({ id, account }: Partner): Promise<void> {
        const { accounts } = await cluster.controls.listAccounts({}, callTimeout);
        const atBroker = accounts.find((each) => each.account === account)?.cashKobo;
        const booked = await database.read(
          statement(`SELECT SUM(amount_kobo) AS kobo FROM allocations WHERE partner_id = ? AND state = 'booked'`, id),
        );
        const [taken] = await database.read(
          statement(
            `SELECT COALESCE(SUM(amount_kobo), 0) AS kobo, COALESCE(SUM(IF(destination = 'wallet', amount_kobo, 0)), 0) AS in_wallet
             FROM withdrawals WHERE partner_id = ? AND state = 'completed'`,
            id,
          ),
        );
        const posted = BigInt(String(booked[0]?.kobo));
        const left = posted - BigInt(String(taken?.kobo));
        assert.equal(left, atBroker, 'what is booked and not withdrawn here is on the account');
        const wallets = await database.read(statement('SELECT * FROM wallets WHERE partner_id = ?', id));
        assert.equal(BigInt(String(wallets[0]?.posted_kobo)), posted);
        assert.equal(BigInt(String(wallets[0]?.withdrawn_kobo)), BigInt(String(taken?.in_wallet)));
        assert.equal(Number(wallets[0]?.reserved_kobo), 0);
        const walked = await walkLedger(database, id, 0n);
        assert.deepEqual(walked?.faults, []);
      }
    } finally {
      await database.close();
    }
  });

  /** Each request led to one send at most, before the loss and after it together. */
  async function checkSentOnce(requests: number): Promise<void> {
    const times = new Map<string, number>();
    for (let afterNumber = 0n; ; ) {
      const { messages, hasMore } = await cluster.controls.listMessages({ afterNumber }, callTimeout);
      for (const { call, clientOrderId } of messages) {
        if (!submitCalls.includes(call)) continue;
        times.set(clientOrderId, (times.get(clientOrderId) ?? 0) + 1);
      }
      afterNumber = messages.at(-1)?.number ?? afterNumber;
      if (!hasMore) break;
    }
    assert.ok(
      [...times.values()].every((count) => count === 1),
      'nothing was received twice',
    );
    assert.ok(times.size <= requests, `${times.size} were received of ${requests} that were asked for`);
  }

  /** The last event of each object is what its GET returns, and versions only rise. */
  async function checkFeed(gateway: GatewayProcess, partner: Partner): Promise<void> {
    const { events } = await readFeed(gateway, partner);
    const versions = events.map(({ version }) => version);
    assert.deepEqual(
      versions,
      [...new Set(versions)].sort((one, other) => one - other),
    );
    const last = new Map(events.map((event) => [event.data.id, event.data]));
    for (const [id, data] of last) {
      const kind = { ord: 'orders', alc: 'allocations', app: 'applications', wdr: 'withdrawals' }[
        String(id).slice(0, 3) as 'ord'
      ];
      const { body } = await gateway.request('GET', `/v1/${kind}/${id}`, { key: partner.key });
      assert.deepEqual(data, body);
    }
  }

  interface FeedEvent {
    readonly version: number;
    // biome-ignore lint/suspicious/noExplicitAny: compared whole with what the object's GET returns.
    readonly data: any;
  }

  async function readFeed(gateway: GatewayProcess, partner: Partner, from?: string) {
    const events: FeedEvent[] = [];
    for (let cursor = from; ; ) {
      const query = cursor === undefined ? '' : `&cursor=${cursor}`;
      const { status, body } = await gateway.request('GET', `/v1/events?limit=100${query}`, { key: partner.key });
      assert.equal(status, 200, JSON.stringify(body));
      events.push(...body.data);
      cursor = body.next_cursor;
      if (!body.has_more) return { events, cursor };
    }
  }
});
