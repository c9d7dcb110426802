import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { Site } from '../../src/site/site.ts';

interface Field {
  readonly place: string;
  readonly name?: string;
  readonly value?: string;
  readonly file?: { readonly type?: string };
}
/** The module is JavaScript for browsers, and has no types. */
interface Rules {
  isSandboxKey(text: string): boolean;
  nameIn(hash: string): string;
  stepTo(key: string, at: number, count: number): number | undefined;
  nearestLanguage(names: readonly string[], language: string): string | undefined;
  withAccount(body: string, account: string): string;
  requestOf(
    form: { method: string; path: string; fields: readonly Field[] },
    secret: string,
  ): { method: string; url: string; headers: Record<string, string>; body?: unknown };
  headersShown(headers: ReadonlyMap<string, string>): string;
  indented(text: string): string;
}
const folder = new URL('../../src/site/assets/', import.meta.url);
const rules: Rules = await import(new URL('docs-rules.js', folder).href);

describe('the rules of the pages’ script', () => {
  it('only a key of a sandbox is taken', () => {
    for (const [key, isTaken] of [
      ['marina_test_abc-DEF_123', true],
      ['marina_test_', false],
      ['marina_live_abc', false],
      ['x marina_test_abc', false],
      ['marina_test_abc def', false],
      ['marina_test_abc\nx', false],
      ['', false],
    ] as const)
      assert.equal(rules.isSandboxKey(key), isTaken, key);
  });

  it('a link leads to the name in it, also when a percent sign encodes nothing', () => {
    for (const [hash, name] of [
      ['#order.filled', 'order.filled'],
      ['#a%20b', 'a b'],
      ['#100%', '100%'],
      ['', ''],
    ] as const)
      assert.equal(rules.nameIn(hash), name);
  });

  it('the arrows move from tab to tab and around the ends', () => {
    for (const [key, at, to] of [
      ['ArrowRight', 0, 1],
      ['ArrowRight', 2, 0],
      ['ArrowLeft', 2, 1],
      ['ArrowLeft', 0, 2],
      ['Home', 2, 0],
      ['End', 0, 2],
      ['Enter', 1, undefined],
      ['Tab', 1, undefined],
    ] as const)
      assert.equal(rules.stepTo(key, at, 3), to, `${key} at ${at}`);
  });

  it('a group without the chosen language stays as it is, unless it has one of the same family', () => {
    for (const [names, chosen, shown] of [
      [['curl', 'TypeScript', 'Python'], 'Python', 'Python'],
      [['JavaScript', 'Python'], 'TypeScript', 'JavaScript'],
      [['Python', 'Node', 'Go'], 'JavaScript', 'Node'],
      [['Python', 'TypeScript'], 'Node', 'TypeScript'],
      [['JavaScript', 'TypeScript'], 'TypeScript', 'TypeScript'],
      [['JavaScript', 'Python'], 'Go', undefined],
      [['Python', 'Go'], 'TypeScript', undefined],
    ] as const)
      assert.equal(rules.nearestLanguage(names, chosen), shown, chosen);
  });

  it('an example gets the account of the reader, and nothing else of it changes', () => {
    const body = '{\n  "account": "0000000001",\n  "symbol": "UBA",\n  "account_name": "Ada"\n}';
    assert.equal(rules.withAccount(body, '42'), body.replace('0000000001', '42'));
    assert.equal(rules.withAccount('{"amount_kobo": 5}', '42'), '{"amount_kobo": 5}');
  });
});

describe('the request that a form of the pages makes', () => {
  const form = (fields: readonly Field[], method = 'POST', path = '/v1/orders/{order}/events') =>
    rules.requestOf({ method, path, fields }, 'marina_test_a');

  it('a field of the path is encoded into it', () => {
    const { url, method, headers, body } = form([{ place: 'path', name: 'order', value: 'a/b ?#$&' }], 'GET');
    assert.equal(url, '/v1/orders/a%2Fb%20%3F%23%24%26/events');
    assert.deepEqual([method, headers, body], ['GET', { Authorization: 'Bearer marina_test_a' }, undefined]);
  });

  it('two fields of the path have their own values', () => {
    const { url } = form(
      [
        { place: 'path', name: 'type', value: 'photo' },
        { place: 'path', name: 'id', value: 'app_1' },
      ],
      'PUT',
      '/v1/applications/{id}/documents/{type}',
    );
    assert.equal(url, '/v1/applications/app_1/documents/photo');
  });

  it('a query has the fields with a value only', () => {
    const query = (...values: string[]) =>
      form(
        values.map((value, at) => ({ place: 'query', name: `q${at}`, value })),
        'GET',
        '/v1/orders',
      ).url;
    assert.equal(query('', ''), '/v1/orders');
    assert.equal(query('', '0', 'a b&c'), '/v1/orders?q1=0&q2=a+b%26c');
  });

  it('a body is JSON, and a header is sent beside the key', () => {
    const { headers, body } = form([
      { place: 'header', name: 'Idempotency-Key', value: 'try-1' },
      { place: 'body', value: '{"quantity":1}' },
    ]);
    assert.deepEqual(headers, {
      Authorization: 'Bearer marina_test_a',
      'Idempotency-Key': 'try-1',
      'Content-Type': 'application/json',
    });
    assert.equal(body, '{"quantity":1}');
  });

  it('a file is sent with its own type', () => {
    const file = { type: 'image/png' };
    const { headers, body } = form([{ place: 'file', file }], 'PUT');
    assert.equal(headers['Content-Type'], 'image/png');
    assert.equal(body, file);
    for (const unknown of [undefined, { type: '' }]) {
      assert.equal(form([{ place: 'file', file: unknown }], 'PUT').headers['Content-Type'], 'image/jpeg');
    }
  });

  it('an answer shows its headers that the reader needs, and no others', () => {
    const headers = new Map([
      ['content-type', 'application/json'],
      ['retry-after', '5'],
      ['x-request-id', 'req_1'],
    ]);
    assert.equal(rules.headersShown(headers), 'x-request-id: req_1, retry-after: 5');
    const all = new Map(['idempotent-replayed', 'location', 'x-request-id'].map((name) => [name, 'v']));
    assert.equal(rules.headersShown(all), 'x-request-id: v, location: v, idempotent-replayed: v');
  });
});

describe('the JSON that the pages show', () => {
  it('JSON is broken into lines as JSON.stringify does', () => {
    for (const value of [
      {},
      [],
      { a: {}, b: [], c: [{}] },
      { a: [1, 'x', null, true], b: { c: { d: -1.5 } } },
      [[1], [{ a: 'b' }]],
      'text',
      { 'a"b\\': '{"[,:]}\\"' },
    ])
      assert.equal(rules.indented(JSON.stringify(value)), JSON.stringify(value, undefined, 2));
  });

  it('digits that JavaScript cannot keep are shown as they came, and so is a text that is no JSON', () => {
    assert.equal(rules.indented('{"a":12345678901234567890.10}'), '{\n  "a": 12345678901234567890.10\n}');
    assert.equal(rules.indented(''), '');
  });
});

describe('the scripts of the pages', () => {
  it('every script is served, with every script that it imports', async () => {
    const site = new Site({
      operations: gatewayOperations,
      environment: 'sandbox',
      baseUrl: () => 'https://marina.example',
      grpcAddress: () => 'marina.example:50051',
    });
    const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));
    assert.ok(scripts.length > 4);
    for (const name of scripts) {
      const page = await site.find(`/docs/${name}`);
      assert.equal(page?.contentType, 'text/javascript; charset=utf-8', name);
      const text = readFileSync(new URL(name, folder), 'utf8');
      assert.equal(String(page?.body), text, name);
      for (const [, imported = ''] of text.matchAll(/ from '\.\/([^']+)'/g))
        assert.ok(scripts.includes(imported), imported);
    }
  });
});
