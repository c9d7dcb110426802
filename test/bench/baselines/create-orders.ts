/**
 * A bare script that places orders: the same two durable commits, statement by statement, and one upstream call, with
 * no server, no checks and no events carried anywhere. It says how many it placed per second.
 */
import { randomBytes } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { createPool, type PoolConnection, type RowDataPacket } from 'mysql2/promise';
import { IdMaker } from '../../../src/gateway/edge/ids.ts';
import { Orders, OrderType, Side, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { load } from '../support/load.ts';

const partners = (process.env.BASELINE_PARTNERS ?? '').split(',').map((entry) => entry.split(':') as [string, string]);
const pool = createPool({
  uri: process.env.BASELINE_DATABASE_URL ?? '',
  connectionLimit: 32,
  timezone: 'Z',
  supportBigNumbers: true,
});
const broker = createGrpcClient(Orders, process.env.BASELINE_BROKER ?? '');
const ids = new IdMaker(Date);
let turn = 0;

process.on('message', async ({ atOnce, durationMs }: { atOnce: number; durationMs: number }) => {
  process.send?.({ result: await load(placeOne, atOnce, durationMs) });
});
process.send?.({ port: 0 });

async function placeOne(): Promise<void> {
  const [partnerId = '', account = ''] = partners[turn++ % partners.length] ?? [];
  const id = ids.object('ord');
  const notAfter = new Date(Date.now() + 10_000);
  const now = new Date();
  const day = now.toISOString().slice(0, 10);
  const key = randomBytes(18);
  await transaction(partnerId, async (connection) => {
    await connection.execute('SELECT * FROM orders WHERE partner_id = ? AND idempotency_key = ?', [partnerId, key]);
    await connection.execute(
      `SELECT id FROM orders WHERE partner_id = ? AND state IN ('uncertain', 'sending') AND account = ? AND symbol = ?
        AND side = 'buy' AND type = 'limit' AND quantity = 100 AND price_kobo <=> 1000
        AND (state = 'uncertain' OR check_at <= ?) LIMIT 1`,
      [partnerId, account, 'SIM-REST', now],
    );
    await connection.execute(`SELECT used_kobo FROM usage_days WHERE partner_id = ? AND day = ? AND kind = 'orders'`, [
      partnerId,
      day,
    ]);
    await connection.execute(
      `INSERT INTO orders (partner_id, id, state, account, symbol, side, type, time_in_force, quantity, price_kobo,
        created_at, updated_at, counted_day, counted_price_kobo, idempotency_key, request_digest, not_after, check_at)
        VALUES (?, ?, 'sending', ?, 'SIM-REST', 'buy', 'limit', 'day', 100, 1000, ?, ?, ?, 1000, ?, ?, ?, ?)`,
      [partnerId, id, account, now, now, day, key, randomBytes(32), notAfter, notAfter],
    );
    await connection.execute(
      `INSERT INTO order_steps (partner_id, order_id, sequence, kind, at, state, detail)
        VALUES (?, ?, 1, 'stored', ?, 'sending', 'stored, before it is sent')`,
      [partnerId, id, now],
    );
    await connection.execute(
      `INSERT INTO usage_days (partner_id, day, kind, used_kobo) VALUES (?, ?, 'orders', 100000)
        ON DUPLICATE KEY UPDATE used_kobo = used_kobo + VALUES(used_kobo)`,
      [partnerId, day],
    );
  });
  const { report } = await broker.submitOrder(
    {
      clientOrderId: id,
      account,
      symbol: 'SIM-REST',
      side: Side.BUY,
      quantity: 100n,
      type: OrderType.LIMIT,
      timeInForce: TimeInForce.DAY,
      priceKobo: 1000n,
      notAfter: timestampFromMs(notAfter.getTime()),
    },
    { timeoutMs: 10_000 },
  );
  await transaction(partnerId, async (connection, version) => {
    await connection.execute('SELECT * FROM orders WHERE partner_id = ? AND id = ?', [partnerId, id]);
    const at = new Date();
    const exchangeOrderId = report?.exchangeOrderId ?? '';
    await connection.execute(
      `UPDATE orders SET state = 'pending', exchange_order_id = ?, updated_at = ?, first_answer = 'object',
        last_report = ?, steps = 3, check_at = NULL WHERE partner_id = ? AND id = ?`,
      [exchangeOrderId, at, Number(report?.number ?? 0), partnerId, id],
    );
    await connection.execute(
      `INSERT INTO order_steps (partner_id, order_id, sequence, kind, at, state, detail)
        VALUES (?, ?, 2, 'sent', ?, 'sending', 'sent'), (?, ?, 3, 'report', ?, 'pending', 'accepted')`,
      [partnerId, id, at, partnerId, id, at],
    );
    await connection.execute('UPDATE partners SET version = version + 1 WHERE id = ?', [partnerId]);
    const body = JSON.stringify({
      object: 'event',
      type: 'order.pending',
      data: { id, exchangeOrderId, pad: 'x'.repeat(400) },
    });
    await connection.execute(
      `INSERT INTO outbox (partner_id, version, id, type, body, occurred_at, publish_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [partnerId, version + 1, ids.event(), 'order.pending', body, at, new Date('2100-01-01')],
    );
  });
}

async function transaction(
  partnerId: string,
  work: (connection: PoolConnection, version: number) => Promise<void>,
): Promise<void> {
  const connection = await pool.getConnection();
  try {
    await connection.query('START TRANSACTION');
    const [rows] = await connection.execute<RowDataPacket[]>('SELECT * FROM partners WHERE id = ? FOR UPDATE', [
      partnerId,
    ]);
    await work(connection, Number(rows[0]?.version));
    await connection.query('COMMIT');
  } finally {
    connection.release();
  }
}
