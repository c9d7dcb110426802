import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { lagosDay } from '../../../src/kit/clock.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { checkEverything } from '../../support/fault/checker.ts';
import { patient } from '../../support/patience.ts';

/** Rows of a partner that a second connection can hold, and what makes it hold them. */
const held: readonly { name: string; lock: (partner: Partner) => [string, unknown[]] }[] = [
  { name: 'the partner', lock: ({ id }) => ['SELECT * FROM partners WHERE id = ? FOR UPDATE', [id]] },
  {
    name: "the day's usage",
    lock: ({ id }) => [
      `INSERT INTO usage_days (partner_id, day, kind, used_kobo) VALUES (?, ?, 'orders', 0)
        ON DUPLICATE KEY UPDATE used_kobo = used_kobo`,
      [id, lagosDay(Date.now())],
    ],
  },
  // Under this isolation level the space between rows is held too, so that nothing can be inserted.
  { name: 'the outbox', lock: ({ id }) => ['SELECT * FROM outbox WHERE partner_id = ? FOR UPDATE', [id]] },
  { name: 'the orders', lock: ({ id }) => ['SELECT * FROM orders WHERE partner_id = ? FOR UPDATE', [id]] },
];

/** Longer than a statement waits for a lock. */
const shortlyMs = 6_500;
/** Longer than all tries of a transaction take. */
const tooLongMs = 16_000;

describe('a gateway whose rows another connection holds', { concurrency: true }, () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  const partners: Partner[] = [];
  const begun: Connection[] = [];
  before(async () => {
    // An order that waits for a lock is still in time to be sent.
    cluster = await Cluster.start({ MARINA_SUBMIT_TIMEOUT_MS: '15000' });
    gateway = await cluster.startGateway();
  });
  after(async () => {
    try {
      await checkEverything(cluster, gateway, partners);
    } finally {
      for (const connection of begun) connection.destroy();
      await cluster.stop();
    }
  });

  async function newPartner(): Promise<Partner> {
    const partner = await cluster.newPartner();
    partners.push(partner);
    const { status } = await gateway.place(partner, { symbol: 'SIM-FILL' });
    assert.equal(status, 201);
    return partner;
  }

  /** A transaction of a second connection's own. */
  async function begin(): Promise<Connection> {
    const connection = await createConnection(cluster.databaseUrl);
    begun.push(connection);
    await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ');
    await connection.query('START TRANSACTION');
    return connection;
  }

  for (const { name, lock } of held) {
    it(`(${name}) for longer than a statement waits: the order goes through once they are let go`, async () => {
      const partner = await newPartner();
      const other = await begin();
      await other.query(...lock(partner));
      const placing = gateway.place(partner, { symbol: 'SIM-PARTS', quantity: 300 });
      await delay(shortlyMs);
      await other.query('ROLLBACK');
      const placed = await placing;
      assert.equal(placed.status, 201, JSON.stringify(placed.body));
    });
  }

  it('requests behind a lock held for too long are refused in bounded time, and go through once it is released', async () => {
    const partner = await newPartner();
    const other = await begin();
    await other.query('SELECT * FROM partners WHERE id = ? FOR UPDATE', [partner.id]);
    const startedAt = performance.now();
    // Twice as many as share a transaction, so that some have to wait for their turn.
    const placing = Array.from({ length: 32 }, (_, index) => ({
      key: `too-long-${partner.id}-${index}`,
      body: { symbol: 'SIM-FILL', quantity: 1_000 + index },
    }));
    const answers = await Promise.all(placing.map(({ key, body }) => gateway.place(partner, body, key)));
    assert.ok(performance.now() - startedAt < patient(tooLongMs));
    const codes = new Set(answers.map(({ body }) => body?.error?.code));
    assert.deepEqual([...codes], ['service_unavailable'], `after ${Math.round(performance.now() - startedAt)} ms`);
    assert.equal((await gateway.request('GET', '/v1/orders', { key: partner.key })).status, 200, 'reads go on');
    await other.query('ROLLBACK');
    for (const { key, body } of placing) assert.equal((await gateway.place(partner, body, key)).status, 201);
  });

  it('an order that meets a lock in a deadlock goes through all the same', async () => {
    const partner = await newPartner();
    const other = await begin();
    // The server undoes the lighter of the two, so this one is made the heavier.
    for (let row = 0; row < 200; row += 1) {
      await other.query('INSERT INTO positions (name, position) VALUES (?, 0)', [`${partner.id} ${row}`]);
    }
    await other.query('SELECT * FROM usage_days WHERE partner_id = ? FOR UPDATE', [partner.id]);
    const placing = gateway.place(partner, { symbol: 'SIM-PARTS', quantity: 300 });
    await eventually(async () => {
      await delay(150); // Asked more often, the server answers the same again.
      const [rows] = await other.query<RowDataPacket[]>(
        `SELECT trx_query FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`,
      );
      assert.equal(rows.filter(({ trx_query: query }) => String(query).includes(partner.id)).length, 1);
    });
    // The gateway holds the partner and waits for the usage; now each waits for the other.
    await other.query('SELECT * FROM partners WHERE id = ? FOR UPDATE', [partner.id]);
    await other.query('ROLLBACK');
    const placed = await placing;
    assert.equal(placed.status, 201, JSON.stringify(placed.body));
  });
});
