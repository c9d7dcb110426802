/** A bare loop that signs and posts the same bytes by undici's Pool, so many times, and tells how fast. */
import { createHmac } from 'node:crypto';
import { Pool } from 'undici';

const { BASELINE_URL = '', BASELINE_CA = '', BASELINE_COUNT = '0', BASELINE_AT_ONCE = '1' } = process.env;
const body = Buffer.from(process.env.BASELINE_BODY ?? '');
const key = Buffer.alloc(32, 7);
const { origin, pathname } = new URL(BASELINE_URL);
const pool = new Pool(origin, { connections: Number(BASELINE_AT_ONCE), connect: { ca: BASELINE_CA } });
process.send?.({ port: 1 });
let left = Number(BASELINE_COUNT);
const startedAt = performance.now();
const usedBefore = process.cpuUsage();
await Promise.all(Array.from({ length: Number(BASELINE_AT_ONCE) }, client));
const { user, system } = process.cpuUsage(usedBefore);
process.send?.({
  perSecond: (Number(BASELINE_COUNT) * 1_000) / (performance.now() - startedAt),
  cpuUs: (user + system) / Number(BASELINE_COUNT),
});

async function client(): Promise<void> {
  while (left > 0) {
    left -= 1;
    const id = `msg_${String(left).padStart(24, '0')}`;
    const timestamp = Math.floor(Date.now() / 1_000);
    const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
    const { statusCode, body: answer } = await pool.request({
      method: 'POST',
      path: pathname,
      body,
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Marina-Webhooks/1.0',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': `v1,${mac}`,
      },
    });
    await answer.dump();
    if (statusCode !== 200) throw new Error(`answered ${statusCode}`);
  }
}
