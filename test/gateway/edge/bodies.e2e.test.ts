import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { goodBody, toJson } from '../../support/e2e/calls.ts';
import type { Refusal } from '../../support/e2e/refusals.ts';
import { useGateway } from '../../support/e2e/suite.ts';
import { assertUntouched } from '../../support/e2e/traces.ts';
import type { WireRequest } from '../../support/e2e/wire.ts';

interface BadBody {
  readonly name: string;
  /** Makes the body of a good order's JSON; undefined: there is none. */
  readonly body: (good: string) => string | Buffer | undefined;
  readonly refusal: Refusal;
}

const notJson: Refusal = { code: 'invalid_request' };
const bad = (param: string): Refusal => ({ code: 'invalid_request', param });

/** The good order with something before its last brace. */
const adding = (text: string) => (good: string) => `${good.slice(0, -1)}${text}}`;
const replacing = (from: string, to: string) => (good: string) => good.replace(from, to);
const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))));

const badBodies: readonly BadBody[] = [
  { name: 'no body', body: () => undefined, refusal: notJson },
  { name: 'an empty body', body: () => '', refusal: notJson },
  { name: 'a body of space', body: () => ' \r\n\t', refusal: notJson },
  { name: 'a word', body: () => 'order', refusal: notJson },
  { name: 'a form', body: () => 'account=A&symbol=B', refusal: notJson },
  { name: 'XML', body: () => '<order/>', refusal: notJson },
  { name: 'a list', body: (good) => `[${good}]`, refusal: notJson },
  { name: 'an empty list', body: () => '[]', refusal: notJson },
  { name: 'a text', body: (good) => JSON.stringify(good), refusal: notJson },
  { name: 'a number', body: () => '5', refusal: notJson },
  { name: 'true', body: () => 'true', refusal: notJson },
  { name: 'null', body: () => 'null', refusal: notJson },
  { name: 'an order cut off', body: (good) => good.slice(0, -1), refusal: notJson },
  { name: 'an order cut off inside a text', body: (good) => good.slice(0, 14), refusal: notJson },
  { name: 'an order with a brace too many', body: (good) => `${good}}`, refusal: notJson },
  { name: 'two orders', body: (good) => good + good, refusal: notJson },
  { name: 'two orders on two lines', body: (good) => `${good}\n${good}`, refusal: notJson },
  { name: 'an order and NUL after it', body: (good) => `${good}\u0000`, refusal: notJson },
  { name: 'an order and a word after it', body: (good) => `${good} x`, refusal: notJson },
  { name: 'a trailing comma', body: adding(','), refusal: notJson },
  { name: 'a leading comma', body: (good) => `{,${good.slice(1)}`, refusal: notJson },
  { name: 'two commas', body: replacing(',', ',,'), refusal: notJson },
  { name: 'a missing comma', body: replacing(',', ' '), refusal: notJson },
  { name: 'a missing colon', body: replacing(':', ' '), refusal: notJson },
  { name: 'a member without a value', body: adding(',"client_reference":'), refusal: notJson },
  { name: 'a member without quotes', body: replacing('"side"', 'side'), refusal: notJson },
  { name: 'single quotes', body: (good) => good.replaceAll('"', "'"), refusal: notJson },
  { name: 'a comment', body: (good) => `/* buy */${good}`, refusal: notJson },
  { name: 'a comment at the end', body: (good) => `${good}// buy`, refusal: notJson },
  { name: 'a byte order mark', body: (good) => `\ufeff${good}`, refusal: notJson },
  { name: 'a no-break space', body: (good) => `\u00a0${good}`, refusal: notJson },
  { name: 'UTF-16', body: (good) => Buffer.from(good, 'utf16le'), refusal: notJson },
  { name: 'a vertical tab', body: (good) => `\u000b${good}`, refusal: notJson },
  { name: 'NaN', body: replacing(':100', ':NaN'), refusal: notJson },
  { name: 'Infinity', body: replacing(':100', ':Infinity'), refusal: notJson },
  { name: 'a number with a plus', body: replacing(':100', ':+100'), refusal: notJson },
  { name: 'a number with a leading zero', body: replacing(':100', ':0100'), refusal: notJson },
  { name: 'a number in hexadecimal', body: replacing(':100', ':0x64'), refusal: notJson },
  { name: 'a number without digits before the point', body: replacing(':100', ':.5'), refusal: notJson },
  { name: 'a number without digits after the point', body: replacing(':100', ':5.'), refusal: notJson },
  { name: 'a number without digits in its exponent', body: replacing(':100', ':1e'), refusal: notJson },
  { name: 'a minus alone', body: replacing(':100', ':-'), refusal: notJson },
  { name: 'a number with underscores', body: replacing(':100', ':1_00'), refusal: notJson },
  { name: 'True', body: replacing(':100', ':True'), refusal: notJson },
  { name: 'undefined', body: replacing(':100', ':undefined'), refusal: notJson },
  { name: 'a line end inside a text', body: replacing('SIM-REST', 'SIM\n'), refusal: notJson },
  { name: 'a tab inside a text', body: replacing('SIM-REST', 'SIM\t'), refusal: notJson },
  { name: 'NUL inside a text', body: replacing('SIM-REST', 'SIM\u0000'), refusal: notJson },
  { name: 'an unknown escape', body: replacing('SIM-REST', 'SIM\\x41'), refusal: notJson },
  { name: 'an escape cut short', body: replacing('SIM-REST', 'SIM\\u00'), refusal: notJson },
  {
    name: 'bytes that are not UTF-8 in a value',
    body: () => bytes('{"account":"', [0xff, 0xfe], '"}'),
    refusal: notJson,
  },
  { name: 'bytes that are not UTF-8 in a name', body: () => bytes('{"', [0xc3], '":1}'), refusal: notJson },
  { name: 'an overlong encoding', body: () => bytes('{"account":"', [0xc1, 0x81], '"}'), refusal: notJson },
  { name: 'a lone surrogate in bytes', body: () => bytes('{"account":"', [0xed, 0xa0, 0x80], '"}'), refusal: notJson },
  {
    name: 'a code point beyond Unicode',
    body: () => bytes('{"account":"', [0xf4, 0x90, 0x80, 0x80], '"}'),
    refusal: notJson,
  },
  { name: '8,000 lists inside each other', body: () => '['.repeat(8000) + ']'.repeat(8000), refusal: notJson },
  { name: '8,000 lists never closed', body: () => '['.repeat(8000), refusal: notJson },
  { name: '3,000 objects inside each other', body: () => '{"a":'.repeat(3000), refusal: notJson },
  { name: 'a member twice', body: adding(',"quantity":100'), refusal: bad('quantity') },
  { name: 'a member twice, null first', body: (good) => `{"account":null,${good.slice(1)}`, refusal: bad('account') },
  { name: 'a member twice, once with escapes', body: adding(',"\\u0073ide":"buy"'), refusal: bad('side') },
  { name: 'a member twice, and of a wrong type', body: adding(',"quantity":"x"'), refusal: bad('quantity') },
  {
    name: 'an optional member twice',
    body: adding(',"client_reference":"a","client_reference":"a"'),
    refusal: bad('client_reference'),
  },
  { name: 'an unknown member twice', body: adding(',"extra":1,"extra":1'), refusal: bad('extra') },
  { name: 'a repeated member before an unknown one', body: adding(',"side":"buy","extra":1'), refusal: bad('side') },
  { name: 'an unknown member before a repeated one', body: adding(',"extra":1,"side":"buy"'), refusal: bad('extra') },
  { name: 'a member in upper case together with the good one', body: adding(',"SIDE":"buy"'), refusal: bad('SIDE') },
  {
    name: 'an escaped NUL in a text',
    body: replacing('SIM-REST', 'SIM\\u0000'),
    refusal: bad('symbol'),
  },
  { name: 'an empty object', body: () => '{}', refusal: { code: 'missing_required_field', param: 'account' } },
];

const unsupported: Refusal = { code: 'unsupported_media_type' };

/** The headers that say what the body is, with a good body. */
const badHeaders: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  ['no Content-Type', []],
  ['an empty Content-Type', [['Content-Type', '']]],
  ...[
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    'application/json5',
    'application/jsonp',
    'application/ld+json',
    'application/vnd.api+json',
    'application/grpc',
    'application/*',
    '*/*',
    'json',
    'application / json',
    'application/json, text/plain',
    'text/plain; application/json',
    'application/json; charset=iso-8859-1',
    'application/json; charset=utf-16',
    'application/json; charset=us-ascii',
    'application/json; charset="iso-8859-1"',
    'application/json; charset=',
    'application/json; charset=utf-8x',
    'application/json; charset=utf 8',
    'application/json; charset=utf8; charset=latin1',
  ].map((type) => [`the type ${type}`, [['Content-Type', type]]] as const),
  [
    'two Content-Types',
    [
      ['Content-Type', 'application/json'],
      ['Content-Type', 'text/plain'],
    ],
  ],
  ...['gzip', 'deflate', 'br', 'zstd', 'GZIP', 'x-gzip', 'gzip, identity', 'aes128gcm', 'nonsense'].map(
    (encoding) =>
      [
        `the encoding ${encoding}`,
        [
          ['Content-Type', 'application/json'],
          ['Content-Encoding', encoding],
        ],
      ] as const,
  ),
];

const goodTypes: readonly string[] = [
  'application/json',
  'Application/JSON',
  'application/json; charset=utf-8',
  'application/json;charset=UTF-8',
  'application/json ; charset="utf-8"',
  'application/json; charset=utf8',
  'application/json;charset=UTF8',
  'application/json; Charset="Utf8"; version=1',
];

/** Largest allowed body, and a body of any size around the good order: white space is part of JSON. */
const maxBytes = 16_384;
const padded = (good: string, size: number) => good + ' '.repeat(size - Buffer.byteLength(good));

const tooLarge: readonly { name: string; body: (good: string) => string; chunked?: boolean }[] = [
  { name: 'a good order padded to 16,385 bytes', body: (good) => padded(good, maxBytes + 1) },
  {
    name: 'a good order padded to 16,385 bytes, in chunks',
    body: (good) => padded(good, maxBytes + 1),
    chunked: true,
  },
  { name: '16,385 bytes that are not JSON', body: () => 'x'.repeat(maxBytes + 1) },
  { name: '16,385 bytes that are not JSON, in chunks', body: () => 'x'.repeat(maxBytes + 1), chunked: true },
  { name: '200,000 bytes', body: (good) => padded(good, 200_000) },
  { name: '200,000 bytes in chunks', body: (good) => padded(good, 200_000), chunked: true },
];

for (const path of ['/v1/orders', '/v1/orders/estimate']) {
  describe(`the body of POST ${path}`, () => {
    const suite = useGateway();
    const idempotencyKey = 'one for all';
    const good = () => toJson(goodBody(suite.partner.account));
    const request = (rest: Partial<WireRequest>): WireRequest => ({
      method: 'POST',
      path,
      ...rest,
      headers: [
        ['Authorization', `Bearer ${suite.partner.key}`],
        ['Idempotency-Key', idempotencyKey],
        ...(rest.headers ?? [['Content-Type', 'application/json']]),
      ],
    });

    for (const { name, body, refusal } of badBodies) {
      const answered = `${refusal.code}${refusal.param === undefined ? '' : ` of ${refusal.param}`}`;
      it(`${name} is answered ${answered}`, () => suite.protocols.refusesRaw(request({ body: body(good()) }), refusal));
    }

    for (const [name, headers] of badHeaders) {
      it(`${name} is answered unsupported_media_type`, () =>
        suite.protocols.refusesRaw(request({ headers, body: good() }), unsupported));
    }

    for (const { name, body, chunked } of tooLarge) {
      it(`${name} is answered request_too_large`, () =>
        suite.protocols.refusesRaw(request({ body: body(good()), chunked }), { code: 'request_too_large' }));
    }

    if (path === '/v1/orders/estimate') {
      for (const type of goodTypes) {
        it(`the type ${type} is taken`, async () => {
          const answer = await suite.protocols.raw(request({ headers: [['Content-Type', type]], body: good() }));
          assert.equal(answer.status, 200, answer.text);
        });
      }
      for (const chunked of [false, true]) {
        it(`a good order of 16,384 bytes${chunked ? ' in chunks' : ''} is taken`, async () => {
          const answer = await suite.protocols.raw(request({ body: padded(good(), maxBytes), chunked }));
          assert.equal(answer.status, 200, answer.text);
        });
      }
    }

    it('nothing was stored or sent, and a good order takes the key they all had', () =>
      assertUntouched(suite.gateway, suite.partner, idempotencyKey));
  });
}
