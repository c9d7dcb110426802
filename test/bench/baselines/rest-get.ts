/** A bare server: node:http and mysql2, one prepared SELECT, the same bytes out, nothing else. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createPool, type RowDataPacket } from 'mysql2';

const pool = createPool({
  uri: process.env.BASELINE_DATABASE_URL ?? '',
  connectionLimit: 32,
  timezone: 'Z',
  supportBigNumbers: true,
});
const partnerId = process.env.BASELINE_PARTNER ?? '';
const sql = `SELECT id, state, account, symbol, side, quantity, type, time_in_force, price_kobo, filled_quantity,
  exchange_order_id, reason, reject_reason, created_at, updated_at, filled_at, client_reference
  FROM orders WHERE partner_id = ? AND id = ?`;

const server = createServer((request, response) => {
  const id = (request.url ?? '').slice('/v1/orders/'.length);
  pool.execute<RowDataPacket[]>(sql, [partnerId, id], (error, rows) => {
    const row = rows?.[0];
    if (error || row === undefined) {
      response.writeHead(404).end();
      return;
    }
    const body = JSON.stringify({
      object: 'order',
      id: row.id,
      state: row.state,
      account: row.account,
      symbol: row.symbol,
      side: row.side,
      quantity: row.quantity,
      type: row.type,
      time_in_force: row.time_in_force,
      price_kobo: row.price_kobo,
      filled_quantity: row.filled_quantity,
      exchange_order_id: row.exchange_order_id,
      reason: row.reason,
      reject_reason: row.reject_reason,
      created_at: toSecond(row.created_at),
      updated_at: toSecond(row.updated_at),
      filled_at: row.filled_at === null ? null : toSecond(row.filled_at),
      average_fill_price_kobo_decimal: null,
      client_reference: row.client_reference === null ? null : String(row.client_reference),
    });
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
      .end(body);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));

function toSecond(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
