import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { collection } from '../../src/site/collection.ts';
import { readComments } from '../../src/site/comments.ts';
import { readExamples } from '../../src/site/examples.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { titleOf } from '../../src/site/samples/names.ts';

interface Call {
  readonly name: string;
  readonly event?: readonly { readonly script: { readonly exec: readonly string[] } }[];
  readonly request: {
    readonly method: string;
    readonly header: readonly { readonly key: string; readonly value: string }[];
    readonly url: {
      readonly raw: string;
      readonly query: readonly { readonly key: string; readonly disabled: boolean; readonly description: string }[];
      readonly variable: readonly { readonly key: string; readonly value: string; readonly description: string }[];
    };
    readonly body?: { readonly mode: string; readonly raw?: string };
  };
}

const comments = readComments();
const reference = { operations: gatewayOperations, comments, examples: readExamples() };
const addresses = { baseUrl: 'https://marina.example', grpcAddress: 'marina.example:50051' };
const made = collection(reference, addresses) as unknown as {
  readonly auth: object;
  readonly variable: readonly { readonly key: string; readonly value: string }[];
  readonly item: readonly { readonly name: string; readonly description: string; readonly item: readonly Call[] }[];
};

/** The request of an operation. */
function callOf(name: string): Call {
  const call = made.item.flatMap(({ item }) => item).find((each) => each.name === name);
  assert.ok(call, name);
  return call;
}

describe('the collection of calls', () => {
  it('each service is a folder of its own calls, each once', () => {
    const served = gatewayOperations.filter(({ http }) => http !== undefined);
    for (const { name, description, item } of made.item) {
      const own = served.filter(({ method }) => titleOf(method.parent.name) === name);
      assert.deepEqual(
        item.map((call) => call.name),
        own.map(({ method }) => titleOf(method.name)),
        name,
      );
      assert.ok(description.length > 0, name);
    }
    assert.equal(made.item.flatMap(({ item }) => item).length, served.length);
  });

  it('the key is empty and stands in a variable, beside the gateway’s address', () => {
    const values = Object.fromEntries(made.variable.map(({ key, value }) => [key, value]));
    assert.deepEqual(values, { base_url: 'https://marina.example', key: '', account: '' });
    assert.deepEqual(made.auth, { type: 'bearer', bearer: [{ key: 'token', value: '{{key}}', type: 'string' }] });
  });

  it('a call has a key only if its operation takes one, and the type of its body', () => {
    for (const { method, http, takesIdempotencyKey } of gatewayOperations) {
      if (http === undefined) continue;
      const { request } = callOf(titleOf(method.name));
      assert.equal(request.method, http.method);
      assert.equal(
        request.header.some(({ key, value }) => key === 'Idempotency-Key' && value === '{{$guid}}'),
        takesIdempotencyKey,
        method.name,
      );
      assert.equal(request.body?.mode, { json: 'raw', file: 'file', none: undefined }[http.body], method.name);
    }
    const types = callOf('Create order').request.header.filter(({ key }) => key === 'Content-Type');
    assert.deepEqual(types, [{ key: 'Content-Type', value: 'application/json' }]);
    assert.equal(callOf('Get order').request.header.length, 0);
  });

  it('a body is the recorded one with the reader’s account, if it has an account', () => {
    const { account, symbol } = JSON.parse(callOf('Create order').request.body?.raw ?? '') as Record<string, unknown>;
    assert.deepEqual([account, typeof symbol], ['{{account}}', 'string']);
    assert.equal('account' in (JSON.parse(callOf('Create key').request.body?.raw ?? '') as object), false);
  });

  it('a call that creates something keeps its id for the calls after it', () => {
    const script = callOf('Create order').event?.[0]?.script.exec.join() ?? '';
    assert.match(script, /code < 300\) pm\.collectionVariables\.set\('order_id', pm\.response\.json\(\)\.id\)/);
    assert.equal(callOf('Get order').event, undefined);
    const { url } = callOf('Get order').request;
    assert.match(url.raw, /^\{\{base_url\}\}\/v1\/orders\/:\w+$/);
    assert.deepEqual(
      url.variable.map(({ value }) => value),
      ['{{order_id}}'],
    );
    assert.ok(url.variable.every(({ description }) => description.length > 0));
  });

  it('a path has the reader’s account, a stock there is, and the object of its kind in a sandbox', () => {
    const valuesOf = (name: string) => callOf(name).request.url.variable.map(({ key, value }) => `${key} ${value}`);
    assert.deepEqual(valuesOf('Get balance'), ['account {{account}}']);
    assert.deepEqual(valuesOf('Get instrument'), ['symbol ZENITHBANK']);
    assert.deepEqual(
      valuesOf('Send document').map((each) => each.split(' ')[1]),
      ['{{application_id}}', 'photo'],
    );
    assert.deepEqual(valuesOf('Fill order'), ['id {{order_id}}']);
    assert.deepEqual(valuesOf('Decide application'), ['id {{application_id}}']);
  });

  it('the parameters of a query are there and off', () => {
    const { query } = callOf('List orders').request.url;
    assert.ok(query.some(({ key }) => key === 'limit'));
    assert.ok(query.every(({ disabled, description }) => disabled && description.length > 0));
  });
});
