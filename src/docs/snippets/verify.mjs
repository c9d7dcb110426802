import { createHmac, timingSafeEqual } from 'node:crypto';

// body: the raw bytes of the request, as a Buffer. Returns the event, or throws.
export function verify(secret, headers, body, now = Date.now() / 1000) {
  const key = Buffer.from((secret ?? '').replace(/^whsec_/, ''), 'base64');
  // Anybody can sign with an empty key.
  if (key.length === 0) throw new Error('there is no secret');

  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  if (!(Math.abs(now - Number(timestamp)) <= 300)) throw new Error('too old or too new');

  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();

  for (const entry of (headers['webhook-signature'] ?? '').split(' ')) {
    const [version, signature = ''] = entry.split(',');
    const given = Buffer.from(signature, 'base64');
    if (version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)) {
      return JSON.parse(body.toString('utf8'));
    }
  }
  throw new Error('no signature matches');
}
