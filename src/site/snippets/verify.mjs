import { createHmac, timingSafeEqual } from 'node:crypto';

// headers: `request.headers` of node:http, Express, Fastify or Lambda, or a Headers as in Hono, Next, Deno and Bun.
// body: the raw bytes of the request, as a Buffer, a Uint8Array or an ArrayBuffer. Returns the event, or throws.
export function verify(secret, headers, body, now = Date.now() / 1000) {
  const key = Buffer.from((secret ?? '').replace(/^whsec_/, ''), 'base64');
  // Anybody can sign with an empty key.
  if (key.length === 0) throw new Error('there is no secret');

  const id = header(headers, 'webhook-id');
  const timestamp = header(headers, 'webhook-timestamp');
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now - Number(timestamp)) > 300) throw new Error('too old or too new');

  const bytes = bytesOf(body);
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(bytes).digest();

  for (const [, signature] of header(headers, 'webhook-signature').matchAll(/(?<![^\s,])v1,([\w+/=]+)/g)) {
    const given = Buffer.from(signature, 'base64');
    if (given.length === expected.length && timingSafeEqual(given, expected)) return JSON.parse(bytes.toString('utf8'));
  }
  throw new Error('no signature matches');
}

// The values of a header by its name in any case, in one text.
function header(headers, name) {
  const pairs = typeof headers.entries === 'function' ? [...headers.entries()] : Object.entries(headers);
  const values = pairs.filter(([each]) => String(each).toLowerCase() === name).flatMap(([, value]) => value);
  return values.join(' ');
}

function bytesOf(body) {
  if (typeof body === 'string') return Buffer.from(body);
  if (ArrayBuffer.isView(body)) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (typeof body?.byteLength === 'number') return Buffer.from(body);
  throw new TypeError('pass the raw bytes of the body, before anything parses it');
}
