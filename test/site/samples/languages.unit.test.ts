import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Example } from '../../../src/site/examples.ts';
import { gatewayOperations } from '../../../src/site/gateway-contract.ts';
import { curl } from '../../../src/site/samples/curl.ts';
import { grpcurlOf } from '../../../src/site/samples/grpcurl.ts';
import { isList, recordedFile, recordedKey, type SampleRequest, valuesOf } from '../../../src/site/samples/language.ts';
import { languages } from '../../../src/site/samples/languages.ts';

const addresses = { baseUrl: 'https://marina.example', grpcAddress: 'marina.example:50051' };

function operationOf(name: string) {
  const operation = gatewayOperations.find(({ method }) => method.localName === name);
  assert.ok(operation, name);
  return operation;
}

/** A request of an operation as it was recorded. */
function sample(name: string, request: Partial<Example['request']>, baseUrl = addresses.baseUrl): SampleRequest {
  const example = {
    title: '',
    request: { method: 'GET', path: '/', headers: {}, ...request },
    answer: { status: 200, headers: {}, body: {} },
  };
  return { operation: operationOf(name), example, addresses: { ...addresses, baseUrl } };
}

const write = (label: string, request: SampleRequest) => {
  const language = languages.find((each) => each.label === label);
  assert.ok(language, label);
  return language.write(request);
};

const key = { 'idempotency-key': "a'b" };
const json = { 'content-type': 'application/json' };
const order = { account: "O'1", symbol: 'UBA', side: 'buy', quantity: 300, type: 'limit', price_kobo: 1_000 };
const create = sample('createOrder', { method: 'POST', path: '/v1/orders', headers: { ...json, ...key }, body: order });
const list = sample('listOrders', { path: '/v1/orders?limit=2&side=buy&client_reference=12a' });
const get = sample('getOrder', { path: '/v1/orders/ord%5F1' });
const file = sample('sendDocument', {
  method: 'PUT',
  path: '/v1/applications/app_1/documents/photo',
  headers: { 'content-type': 'image/jpeg' },
});

describe('what a recorded request says', () => {
  it('its values are those of path, query and body, by the names of the fields', () => {
    assert.deepEqual(valuesOf(create), order);
    assert.deepEqual(valuesOf(list), { limit: 2, side: 'buy', client_reference: '12a' });
    assert.deepEqual(Object.values(valuesOf(get)), ['ord_1']);
    assert.deepEqual(Object.values(valuesOf(file)), ['app_1', 'photo']);
  });

  it('it has a key or a file only where its operation takes one, and says whether a list answers', () => {
    assert.deepEqual(
      [recordedKey(create), recordedKey(get), recordedFile(file), recordedFile(create)],
      ["a'b", undefined, 'image/jpeg', undefined],
    );
    const unkeyed = sample('getOrder', { headers: key });
    assert.equal(recordedKey(unkeyed), undefined);
    assert.deepEqual([isList(list), isList(get)], [true, false]);
  });
});

describe('the samples in each language', () => {
  it('curl has the method only where it is not the usual one, with every header, and the key in a variable', () => {
    const lines = write('curl', create).split(' \\\n  ');
    assert.deepEqual(lines.slice(0, 4), [
      ...['curl https://marina.example/v1/orders', '-H "Authorization: Bearer $MARINA_KEY"'],
      ...["-H 'Content-Type: application/json'", "-H 'Idempotency-Key: a'\\''b'"],
    ]);
    assert.match(lines[4] ?? '', /^-d '\{\n {4}"account": "O'\\''1",/);
    assert.equal(lines.length, 5);
    assert.match(
      write('curl', list),
      /^curl 'https:\/\/marina\.example\/v1\/orders\?limit=2&side=buy&client_reference=12a' \\/,
    );
    const sent = write('curl', file);
    assert.match(sent, /^curl -X PUT https/);
    assert.match(sent, /--data-binary @photo\.jpg$/);
    const bare = (method: string) =>
      curl(sample('cancelOrder', { method, path: '/v1/orders/x/cancel' }).example, 'http://x');
    assert.deepEqual(
      ['POST', 'DELETE', 'GET'].map((method) => bare(method).split(' http')[0]),
      ['curl -X POST', 'curl -X DELETE', 'curl'],
    );
    assert.doesNotMatch(bare('POST'), /-d|--data/);
  });

  it('TypeScript gives the values, and the key behind them', () => {
    const text = write('TypeScript', create);
    assert.match(text, /import \{ Marina \} from '@marina\/client';/);
    assert.match(text, /baseUrl: 'https:\/\/marina\.example',/);
    assert.match(text, /const answer = await marina\.createOrder\(\n {2}\{\n {4}account: 'O\\'1',\n/);
    assert.match(text, / {4}quantity: 300,/);
    assert.match(text, / {2}\{ idempotencyKey: 'a\\'b' \},\n\);\nconsole\.log\(answer\);$/);
    assert.match(
      write('TypeScript', list),
      /const page = await marina\.listOrders\(\{ limit: 2, side: 'buy', client_reference: '12a' \}\)\.page\(\);\nconsole\.log\(page\);$/,
    );
    const sent = write('TypeScript', file);
    assert.match(sent, /^import \{ readFile \} from 'node:fs\/promises';/);
    assert.match(sent, /file: await readFile\('photo\.jpg'\),\n {2}media_type: 'image\/jpeg',/);
    assert.doesNotMatch(text, /readFile/);
  });

  it('Python gives the values by name, and words of its own as it writes them', () => {
    const text = write('Python', create);
    assert.match(text, /marina = Marina\("https:\/\/marina\.example", os\.environ\["MARINA_KEY"\]\)/);
    assert.doesNotMatch(text, /pathlib/);
    assert.match(text, /answer = marina\.create_order\(\n {4}account="O'1",\n/);
    assert.match(text, / {4}price_kobo=1000,\n {4}idempotency_key="a'b",\n\)\nprint\(answer\)$/);
    assert.match(
      write('Python', list),
      /page = marina\.list_orders\(limit=2, side="buy", client_reference="12a"\)\.page\(\)\nprint\(page\)$/,
    );
    const sent = write('Python', file);
    assert.match(sent, /^import os\nfrom pathlib import Path\n/);
    assert.match(sent, /file=Path\("photo\.jpg"\)\.read_bytes\(\),\n {4}media_type="image\/jpeg",/);
    const literals = sample('createOrder', {
      body: { account: null, symbol: true, side: false, type: ['a', null], from: 1 },
    });
    const other = write('Python', literals);
    assert.match(other, /account=None/);
    assert.match(other, /symbol=True/);
    assert.match(other, /side=False/);
    assert.match(other, /type=\["a", None\]/);
    assert.match(other, /from_=1/);
  });

  it('Go sends the body raw, or quoted if it has a backquote, and imports what it uses', () => {
    const text = write('Go', create);
    assert.match(
      text,
      /http\.NewRequest\("POST", "https:\/\/marina\.example\/v1\/orders", strings\.NewReader\(`\{\n {2}"account": "O'1",/,
    );
    assert.match(text, /\t"strings"\n/);
    assert.match(text, /request\.Header\.Set\("Authorization", "Bearer "\+os\.Getenv\("MARINA_KEY"\)\)/);
    assert.match(text, /request\.Header\.Set\("Idempotency-Key", "a'b"\)/);
    const read = write('Go', get);
    assert.match(read, /http\.NewRequest\("GET", "[^"]*", nil\)/);
    assert.doesNotMatch(read, /strings|os\.Open/);
    const sent = write('Go', file);
    assert.match(sent, /os\.Open\("photo\.jpg"\)[\s\S]*defer file\.Close\(\)[\s\S]*NewRequest\("PUT", "[^"]*", file\)/);
    assert.match(write('Go', sample('createOrder', { body: { account: '`' } })), /NewReader\("\{\\n/);
  });

  it('grpcurl gives the message with whole names of values, and TLS where REST has it', () => {
    const text = write('grpcurl', create);
    assert.match(
      text,
      /^grpcurl -H "authorization: Bearer \$MARINA_KEY" \\\n {2}-H 'idempotency-key: a'\\''b' \\\n {2}-d '\{/,
    );
    assert.match(text, /"account": "O'\\''1"/);
    assert.match(text, /"side": "[A-Z_]*SIDE_BUY"/);
    assert.match(text, /"quantity": 300/);
    assert.match(text, /marina\.example:50051 marina\.gateway\.v1\.Orders\/CreateOrder$/);
    const plain = write('grpcurl', { ...get, addresses: { ...addresses, baseUrl: 'http://127.0.0.1:8080' } });
    assert.match(plain, /^grpcurl -plaintext -H/);
    assert.match(plain, /"ord_1"/);
    const empty = sample('createOrder', { body: { account: null } });
    assert.doesNotMatch(write('grpcurl', empty), / -d /);
    const sent = write('grpcurl', file);
    assert.match(sent, / -d @ marina\.example:50051 \S+\/SendDocument <<JSON\n\{/);
    assert.match(sent, /"[a-z_]+": "\$\(base64 < photo\.jpg \| tr -d '\\n'\)"/);
    assert.match(sent, /: "image\/jpeg"/);
    assert.match(sent, /\nJSON$/);
    const stream = grpcurlOf(operationOf('listOrders'), addresses);
    assert.equal(
      stream,
      'grpcurl -H "authorization: Bearer $MARINA_KEY" \\\n  marina.example:50051 marina.gateway.v1.Orders/ListOrders',
    );
  });
});
