/** A bare server: node:http and mysql2, one prepared SELECT of a page of the feed, the stored bytes out, nothing else. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createPool, type RowDataPacket } from 'mysql2';

const pool = createPool({ uri: process.env.BASELINE_DATABASE_URL ?? '', connectionLimit: 32, timezone: 'Z' });
const partnerId = process.env.BASELINE_PARTNER ?? '';
const sql = 'SELECT version, body FROM feed_events WHERE partner_id = ? AND version > ? ORDER BY version LIMIT 26';

const server = createServer((request, response) => {
  const after = (request.url ?? '').slice('/v1/events?cursor='.length);
  pool.execute<RowDataPacket[]>(sql, [partnerId, after], (error, rows = []) => {
    if (error) {
      response.writeHead(500).end();
      return;
    }
    const data = rows.slice(0, 25).map((row) => String(row.body));
    const body = `{"object":"list","has_more":${rows.length > 25},"next_cursor":"${rows[24]?.version}","data":[${data.join(',')}]}`;
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
      .end(body);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
