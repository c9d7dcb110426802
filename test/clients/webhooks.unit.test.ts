import assert from 'node:assert/strict';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { IncomingHttpHeaders as Http2Headers } from 'node:http2';
import { describe, it } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { signWebhook, verifyWebhook, type WebhookHeaders, WebhookVerificationError } from '@marina/client';
import { Headers as UndiciHeaders } from 'undici';

const secret = `whsec_${Buffer.alloc(24, 3).toString('base64')}`;
const text = '{"id":"msg_1","type":"order.filled","version":9007199254740993,"note":"₦"}';
const raw = Buffer.from(text);
const signed = await signWebhook(secret, 'msg_1', raw);
const pairs = Object.entries(signed);
const [id, timestamp, signature] = [signed['webhook-id'], signed['webhook-timestamp'], signed['webhook-signature']];
const titled = pairs.map(([name, value]): [string, string] => [
  name.replace(/\b\w/g, (first) => first.toUpperCase()),
  value,
]);
const realm = createContext({ pairs: JSON.stringify(pairs), text });

/** The headers of servers and gateways have a type that the verifier takes. */
export const typed: readonly WebhookHeaders[] = [
  {} as IncomingHttpHeaders,
  {} as Http2Headers,
  {} as IncomingMessage['headersDistinct'],
  {} as IncomingMessage['rawHeaders'],
  new Headers(),
  new UndiciHeaders(),
  new Map<string, string>(),
  new Map<string, string[]>(),
  [] as [string, string][],
  [] as { name: string; value: string }[],
  {} as Record<string, string | undefined>,
  {} as { [name: string]: string[] | undefined },
  {} as { [name: string]: { key?: string; value: string }[] },
  (name: string) => name as string | undefined,
  null,
];

/** Headers of an old library: neither iterable nor plain. */
class OldHeaders {
  readonly #values = new Map(pairs);
  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null;
  }
}

const others = [
  ['accept', '*/*'],
  ['cookie', 'a=1'],
] as const;

describe('the headers that the verifier of the client for TypeScript reads', () => {
  const bare = Object.assign(Object.create(null), signed);
  const kinds: [string, unknown][] = [
    ['of node:http, Express, Fastify and Koa', { ...signed, host: 'example.com', 'set-cookie': ['a=1', 'b=2'] }],
    ['of node:http2, which have no prototype', bare],
    ['in any case', Object.fromEntries(titled)],
    ['of fetch', new Headers(signed)],
    ['of fetch with another class', new UndiciHeaders(signed)],
    ['of fetch from another realm, as in Jest', runInContext('new Map(JSON.parse(pairs))', realm)],
    ['of an old library with only a get', new OldHeaders()],
    ["as the promise of Next's headers()", Promise.resolve(new Headers(signed))],
    ['as a Map', new Map(titled)],
    ['as a Map of lists', new Map(pairs.map(([name, value]) => [name, [value]]))],
    ['as pairs', [...others, ...titled]],
    ['as objects with a name', pairs.map(([name, value]) => ({ name, value }))],
    ['as objects with a key', titled.map(([key, value]) => ({ key, value }))],
    ['as headersDistinct of node:http', Object.fromEntries(pairs.map(([name, value]) => [name, [value]]))],
    ['as the entries of a Headers', new Headers(signed).entries()],
    ['as rawHeaders, in turns', [...others, ...titled].flat()],
    ['as rawHeaders of bytes', titled.flat().map((part) => Buffer.from(part))],
    ["as Hono's function", (name: string) => new Headers(signed).get(name) ?? undefined],
    ['of a Lambda behind API Gateway', { ...Object.fromEntries(titled), 'X-Amzn-Trace-Id': undefined }],
    ['of a Lambda, multiValueHeaders', Object.fromEntries(titled.map(([name, value]) => [name, [value]]))],
    ['of CloudFront', Object.fromEntries(titled.map(([key, value]) => [key.toLowerCase(), [{ key, value }]]))],
    ['with blanks around values', Object.fromEntries(pairs.map(([name, value]) => [name, ` ${value}\t`]))],
    ['with a line that a proxy repeated', { ...signed, 'webhook-id': [id, id] }],
    ['with lines that a proxy joined', { ...signed, 'webhook-timestamp': `${timestamp}, ${timestamp}` }],
    ['with signatures in two lines', { ...signed, 'webhook-signature': [`v1,${'A'.repeat(43)}=`, signature] }],
    ['with signatures that a proxy joined', { ...signed, 'webhook-signature': `${signature}, v1,${'A'.repeat(43)}=` }],
    ['with signatures joined without a blank', { ...signed, 'webhook-signature': `v2,x,${signature},v1,AA==` }],
  ];
  for (const [kind, headers] of kinds) {
    it(`may be those ${kind}`, async () => {
      const event = await verifyWebhook(secret, headers as WebhookHeaders, raw);
      assert.equal(event.version, 9_007_199_254_740_993n);
    });
  }

  const refused: [string, unknown][] = [
    ['are none', null],
    ['were left out', undefined],
    ['are empty', {}],
    ['have an empty id', { ...signed, 'webhook-id': '' }],
    ['have two ids', { ...signed, 'webhook-id': [id, 'msg_2'] }],
    ['have two ids in names of two cases', { ...signed, 'Webhook-Id': 'msg_2' }],
    ['have two times', { ...signed, 'webhook-timestamp': [timestamp, String(Number(timestamp) + 1)] }],
    ['have a time that is none', { ...signed, 'webhook-timestamp': 'soon' }],
    ['have no signature', { ...signed, 'webhook-signature': undefined }],
    ['have a signature of another version', { ...signed, 'webhook-signature': signature.replace('v1', 'v2') }],
    ['have a shorter signature', { ...signed, 'webhook-signature': 'v1,AAAA' }],
  ];
  for (const [how, headers] of refused) {
    it(`are refused if they ${how}`, async () => {
      await assert.rejects(verifyWebhook(secret, headers as WebhookHeaders, raw), WebhookVerificationError);
    });
  }

  it('may have a signature that begins as a version does', async () => {
    const begins = /^v1,v\d/;
    for (let now = Date.now(), found = 0; found < 3; now -= 1_000) {
      const headers = await signWebhook(secret, 'msg_1', raw, now);
      if (!begins.test(headers['webhook-signature'])) continue;
      found += 1;
      const two = `v1,${'A'.repeat(43)}=,${headers['webhook-signature']}`;
      for (const given of [headers, { ...headers, 'webhook-signature': two }]) {
        assert.equal((await verifyWebhook(secret, given, raw, { now })).version, 9_007_199_254_740_993n);
      }
    }
  });

  it('have to be headers', async () => {
    for (const headers of ['webhook-id: msg_1', 7, true]) {
      await assert.rejects(verifyWebhook(secret, headers as unknown as WebhookHeaders, raw), TypeError);
    }
  });

  it('cost one HMAC, however many signatures they have', async () => {
    const many = { ...signed, 'webhook-signature': `${`v1,${'A'.repeat(43)}= `.repeat(4_000)}${signature}` };
    const before = process.cpuUsage();
    await verifyWebhook(secret, many, raw);
    assert.ok(process.cpuUsage(before).user < 1_000_000);
  });
});

describe('the body that the verifier of the client for TypeScript reads', () => {
  const inside = Buffer.concat([Buffer.alloc(8), raw, Buffer.alloc(8)]);
  const own = new Uint8Array(raw).buffer;
  const padded = `${text}${' '.repeat((4 - (raw.length % 4)) % 4)}`;
  const words = new Uint32Array(new Uint8Array(Buffer.from(padded)).buffer);

  it('may be a Buffer, any view, an ArrayBuffer or the text', async () => {
    const shared = new SharedArrayBuffer(raw.length);
    new Uint8Array(shared).set(raw);
    const bodies = [
      raw,
      inside.subarray(8, 8 + raw.length),
      new Uint8Array(raw),
      new DataView(own),
      own,
      shared,
      text,
      runInContext('new TextEncoder().encode(text)', createContext({ text, TextEncoder })),
      runInContext(`Uint8Array.from(${JSON.stringify([...raw])})`, realm),
      runInContext(`Uint8Array.from(${JSON.stringify([...raw])}).buffer`, realm),
    ];
    for (const body of bodies) assert.equal((await verifyWebhook(secret, signed, body)).id, 'msg_1');
    assert.equal((await verifyWebhook(secret, await signWebhook(secret, 'msg_1', words), padded)).id, 'msg_1');
  });

  it('is told to be the raw bytes if somebody parsed it, read it as a stream or forgot it', async () => {
    const parsed = [JSON.parse(text), [raw], 7, true, null, undefined, new Blob([text]), Promise.resolve(raw)];
    for (const body of [...parsed, raw.toJSON(), new ReadableStream()]) {
      await assert.rejects(verifyWebhook(secret, signed, body as string), (error) => {
        assert.ok(error instanceof TypeError, String(error));
        assert.match(error.message, /^Pass the raw bytes of the body/);
        assert.doesNotMatch(error.message, /msg_1|order\.filled/);
        return true;
      });
    }
  });

  it('is the one that was verified, also if a server uses its buffer again meanwhile', async () => {
    const reused = Buffer.from(text);
    const verifying = verifyWebhook(secret, signed, reused);
    reused.fill(0x20);
    assert.equal((await verifying).id, 'msg_1');
  });

  it('is refused if it is empty, no JSON, no object or another event, although its signature is right', async () => {
    for (const body of ['', 'null', '7', '[]', '"msg_1"', '{"id":"msg_2"}', '{', Buffer.from([0x22, 0xff, 0x22])]) {
      const headers = await signWebhook(secret, 'msg_1', body);
      await assert.rejects(verifyWebhook(secret, headers, body), WebhookVerificationError, String(body));
    }
  });

  it('gives integers as the program asks', async () => {
    assert.equal((await verifyWebhook(secret, signed, raw, { integers: 'string' })).version, '9007199254740993');
    await assert.rejects(verifyWebhook(secret, signed, raw, { integers: 'number' }), { name: 'UnsafeIntegerError' });
    const small = '{"id":"msg_1","version":7}';
    const event = await verifyWebhook(secret, await signWebhook(secret, 'msg_1', small), small, { integers: 'number' });
    assert.equal(event.version, 7);
  });
});

describe('the secret of the client for TypeScript', () => {
  it('is refused if it is empty or none, before anything else is looked at', async () => {
    const wrong = ['', 'whsec_', 'whsec_ ', 'whsec_=', 'whsec_*', secret.slice(6), `${secret}\n`, undefined, null];
    for (const each of wrong as string[]) {
      const expected = { name: 'TypeError', message: 'The secret has to be `whsec_` and base64.' };
      await assert.rejects(verifyWebhook(each, signed, raw), expected);
      await assert.rejects(verifyWebhook(each, {}, raw), expected);
      await assert.rejects(signWebhook(each, 'msg_1', raw), expected);
    }
  });
});

describe('the time of a webhook', () => {
  it('a webhook may be five minutes old or ahead, or as much as the caller allows', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const body = '{"type":"order.filled"}';
    const sentAt = 1_770_000_000_000;
    const headers = await signWebhook(secret, 'evt_1', body, sentAt);
    for (const [offMs, toleranceSeconds, isInTime] of [
      [300_000, undefined, true],
      [300_001, undefined, false],
      [0, 0, true],
      [1, 0, false],
      [10_000, 10, true],
      [10_001, 10, false],
    ] as const) {
      for (const now of [sentAt + offMs, sentAt - offMs]) {
        const error = await verifyWebhook(secret, headers, body, { now, toleranceSeconds }).catch((one) => one);
        assert.equal(/too old/.test(String(error)), !isInTime, `${now - sentAt} ms, ${toleranceSeconds} s: ${error}`);
      }
    }
  });
});
