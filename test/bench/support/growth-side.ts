import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise';
import { saveChecked, saveRecheck } from '../../../src/gateway/operators/calls/ledger-position.ts';
import { migrate } from '../../../src/gateway/store/migrate.ts';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { type Server, startMariaDb } from '../../../src/sandbox/servers.ts';
import { adminClient } from '../../support/admin.ts';
import type { Cluster, GatewayProcess, Partner } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { createKey } from '../../support/keys.ts';
import { bigPartner, seed } from '../../support/scale/seed.ts';
import type { GrowthClient } from './growth-operations.ts';
import { getOrderOverGrpc } from './operations.ts';
import { RestCalls } from './rest-calls.ts';
import { startSite, withMemoryUpstream } from './setups.ts';
import type { Processes } from './usage.ts';

/** A gateway whose tables have so many orders, and what comes with them. */
export interface GrowthSide {
  readonly gateway: GatewayProcess;
  readonly processes: Processes;
  readonly client: GrowthClient;
  /** Makes events too old to be kept, and settles when they are removed. */
  removeEvents(count: number): Promise<void>;
  stop(): Promise<void>;
}

/** Nothing is old enough to be removed while calls are measured. */
const days = 29;
const sampled = 1_000;

/** Starts a server with room for large tables: on disk, with more memory than a test's. */
export async function startLargeServer(orders: number): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'marina-growth-'));
  sharedKeeper().removeAtEnd(folder);
  const server = await startMariaDb({ dataDir: folder, disposable: true });
  const connection = await createConnection({ uri: server.url });
  await connection.query(`SET GLOBAL innodb_buffer_pool_size = ${(orders > 2_000_000 ? 4 : 1) * 2 ** 30}`);
  await connection.query(`SET GLOBAL innodb_log_file_size = ${2 ** 30}`);
  await connection.end();
  return server;
}

export async function startGrowthSide(database: Server, natsPid: number, orders: number): Promise<GrowthSide> {
  const site = await startSite(withMemoryUpstream, {
    databaseServerUrl: database.url,
    migrate: (url) => fill(url, orders),
  });
  const { cluster } = site;
  const connection = await createConnection({ uri: cluster.databaseUrl, timezone: 'Z' });
  const partner = await makeCaller(cluster, connection);
  const gateway = await site.startGateway();
  const client = await clientOf(gateway, partner, connection);
  return {
    gateway,
    processes: { gateway: gateway.pid, database: database.pid, NATS: natsPid, upstream: site.upstreamPid },
    client,
    removeEvents: (count) => removeEvents(connection, count),
    async stop() {
      await connection.end();
      await client.rest.close();
      client.admin.close();
      await site.stop();
    },
  };
}

async function fill(url: string, orders: number): Promise<void> {
  await migrate(url);
  const connection = await createConnection({ uri: url, timezone: 'Z' });
  await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  await seed(connection, orders, (line) => console.log(`  ${orders} orders, ${line}`), days);
  // Neither work in progress nor keys to forget, of which the larger tables would have more.
  for (const change of [
    "UPDATE orders SET state = 'filled', check_at = NULL WHERE check_at IS NOT NULL",
    'UPDATE orders SET cancel_until = NULL WHERE cancel_until IS NOT NULL',
    "UPDATE allocations SET state = 'booked', check_at = NULL WHERE check_at IS NOT NULL",
    "UPDATE withdrawals SET state = 'completed', check_at = NULL WHERE check_at IS NOT NULL",
    "UPDATE applications SET state = 'opened', check_at = NULL WHERE check_at IS NOT NULL",
    "UPDATE documents SET state = 'delivered', lease_until = NULL WHERE lease_until IS NOT NULL",
    ...['orders', 'allocations', 'withdrawals', 'applications'].map(
      (table) => `UPDATE ${table} SET idempotency_key = NULL WHERE idempotency_key IS NOT NULL`,
    ),
    // Deliveries are listed of an endpoint; an operator has paused it, so that none is sent.
    `DELETE FROM webhook_endpoints WHERE partner_id <> '${bigPartner}'`,
    'UPDATE webhook_endpoints SET held_at = NOW(3), paused_at = NULL, probe_at = NULL, due_at = NULL',
    ...['open_cancels', 'outbox', 'look_ups', 'leases', 'positions'].map((table) => `DELETE FROM ${table}`),
    "UPDATE webhook_deliveries SET queue = NULL, due_at = NULL, state = 'delivered' WHERE queue IS NOT NULL",
  ]) {
    await connection.query(change);
  }
  await passLedgers(connection);
  // An account with as many orders at any size.
  await connection.query(
    `UPDATE orders SET account = (SELECT MIN(account) FROM accounts WHERE partner_id = '${bigPartner}')
      WHERE partner_id = '${bigPartner}' ORDER BY id LIMIT 200`,
  );
  const [tables] = await connection.query<RowDataPacket[]>('SHOW TABLES');
  for (const table of tables) await connection.query(`ANALYZE TABLE ${Object.values(table)[0]}`);
  await untilCalm(connection);
  await connection.end();
}

/** Waits until the server has written to the disk what was filled in, and forgotten what was changed. */
async function untilCalm(connection: Connection): Promise<void> {
  await connection.query('SET GLOBAL innodb_max_dirty_pages_pct = 0');
  await eventually(async () => {
    const [rows] = await connection.query<RowDataPacket[]>(
      `SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_buffer_pool_pages_dirty', 'Innodb_history_list_length')`,
    );
    for (const { Variable_name: name, Value: value } of rows) assert.ok(Number(value) < 1_000, `${name}: ${value}`);
  }, 1_800_000);
  await connection.query('SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT');
}

/** Seeded rows have no true hashes, so a check of them would begin again each minute and count as work of the calls. */
async function passLedgers(connection: Connection): Promise<void> {
  const [wallets] = await connection.query<RowDataPacket[]>('SELECT partner_id, last_sequence, last_hash FROM wallets');
  for (const { partner_id: partnerId, last_sequence: lastSequence, last_hash: lastHash } of wallets) {
    for (const { sql, values } of [
      saveChecked(partnerId, { lastSequence: BigInt(lastSequence), lastHash }),
      saveRecheck(partnerId, { after: 0n, endedAt: Date.now() }),
    ]) {
      await connection.query(sql, [...values]);
    }
  }
}

/** Lets the partner with the most rows call as often as it likes. */
async function makeCaller(cluster: Cluster, connection: Connection): Promise<Partner> {
  await connection.query(
    `UPDATE partners SET requests_per_second = 1000000, requests_burst = 1000000, requests_under_way = 1000,
      orders_kobo_per_day = 1e17, allocations_kobo_per_day = 1e17, features = 'account_opening,withdrawals' WHERE id = ?`,
    [bigPartner],
  );
  const scopes = [Scope.READ, Scope.TRADE, Scope.APPLY, Scope.FUND, Scope.WITHDRAW];
  const { key } = await createKey(cluster.database, { partnerId: bigPartner, scopes });
  const [accounts] = await connection.query<RowDataPacket[]>(
    'SELECT account FROM accounts WHERE partner_id = ? ORDER BY account LIMIT 1',
    [bigPartner],
  );
  const partner = { id: bigPartner, key, account: String(accounts[0]?.account) };
  await cluster.fund(partner, 10n ** 13n);
  return partner;
}

async function clientOf(gateway: GatewayProcess, partner: Partner, connection: Connection): Promise<GrowthClient> {
  const rest = new RestCalls(gateway.restPort, 32);
  const [[ends]] = await connection.query<RowDataPacket[]>(
    'SELECT MIN(id) AS first, MAX(id) AS last, COUNT(*) AS count FROM orders WHERE partner_id = ?',
    [partner.id],
  );
  const orderIds: string[] = [];
  const step = Math.max(1, Math.floor(Number(ends?.count) / sampled));
  let from = String(ends?.first);
  while (orderIds.length < sampled) {
    const [[row]] = await connection.query<RowDataPacket[]>(
      'SELECT id FROM orders WHERE partner_id = ? AND id >= ? ORDER BY id LIMIT 1 OFFSET ?',
      [partner.id, from, step],
    );
    if (row === undefined) break;
    from = String(row.id);
    orderIds.push(from);
  }
  let turn = 0;
  const next = <Item>(list: readonly Item[]) => list[turn++ % list.length] as Item;
  const orderCursors: string[] = [];
  let page = '';
  while (orderCursors.length < 16) {
    const { next_cursor } = JSON.parse(await rest.get(partner, `/v1/orders?limit=100${page}`));
    orderCursors.push(encodeURIComponent(next_cursor));
    page = `&cursor=${encodeURIComponent(next_cursor)}`;
  }
  const feedCursors: string[] = [];
  let at = '';
  while (feedCursors.length < 64) {
    const { next_cursor } = JSON.parse(await rest.get(partner, `/v1/events?limit=100${at}`));
    feedCursors.push(encodeURIComponent(next_cursor));
    at = `&cursor=${encodeURIComponent(next_cursor)}`;
  }
  return {
    rest,
    admin: adminClient(gateway.adminPort),
    grpcGetOrder: getOrderOverGrpc(gateway.grpcPort, partner, () => next(orderIds)),
    partner,
    orderIds,
    orderCursors,
    feedCursors,
    next,
  };
}

/** The first events of each partner but the largest, as if they were from 40 days ago. */
async function removeEvents(connection: Connection, count: number): Promise<void> {
  const [partners] = await connection.query<RowDataPacket[]>(
    'SELECT id FROM partners WHERE id <> ? ORDER BY id LIMIT 150',
    [bigPartner],
  );
  for (const { id } of partners) {
    // By their versions: with a LIMIT the server would sort all events of a partner.
    const [first] = await connection.query<RowDataPacket[]>(
      'SELECT version FROM feed_events FORCE INDEX (PRIMARY) WHERE partner_id = ? ORDER BY version LIMIT ?',
      [id, Math.ceil(count / partners.length)],
    );
    await connection.query(
      'UPDATE feed_events SET occurred_at = occurred_at - INTERVAL 40 DAY WHERE partner_id = ? AND version IN (?)',
      [id, first.map(({ version }) => version)],
    );
  }
  // By partner: no index has the time alone.
  for (const { id } of partners) {
    await eventually(async () => {
      const [[first]] = await connection.query<RowDataPacket[]>(
        `SELECT occurred_at < NOW(3) - INTERVAL 31 DAY AS is_old FROM feed_events FORCE INDEX (PRIMARY)
          WHERE partner_id = ? ORDER BY version LIMIT 1`,
        [id],
      );
      assert.equal(Number(first?.is_old ?? 0), 0, 'old events are still there');
    }, 120_000);
  }
}
