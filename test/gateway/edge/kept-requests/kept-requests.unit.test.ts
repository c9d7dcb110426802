import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { KeptRequests, type KeptRequestsOptions } from '../../../../src/gateway/edge/kept-requests/kept-requests.ts';
import type { ProtocolName } from '../../../../src/gateway/edge/request.ts';
import { CreateApplicationRequestSchema } from '../../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { ListOrdersRequestSchema, Orders } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { gatewayOperations } from '../../../../src/site/gateway-contract.ts';
import { baseUrl, callGrpc, goodOrder, withServers } from '../fixture.ts';

const clock = { now: () => Date.UTC(2026, 10, 25) };

/** A partner's requests, kept after servers have answered some. */
async function keptAfter(
  requests: readonly {
    readonly method?: string;
    readonly path?: string;
    readonly body?: string | null;
    readonly headers?: Record<string, string>;
  }[],
  options: Partial<KeptRequestsOptions> = {},
): Promise<KeptRequests> {
  const kept = new KeptRequests({ clock, baseUrl: () => baseUrl, ...options });
  await withServers({ pipeline: { kept } }, async ({ restPort }) => {
    for (const { method = 'POST', path = '/v1/orders', body = JSON.stringify(goodOrder), headers } of requests) {
      const response = await fetch(`http://127.0.0.1:${restPort}${path}`, {
        method,
        headers: {
          ...{ authorization: 'Bearer full', 'content-type': 'application/json', 'idempotency-key': 'k' },
          ...headers,
        },
        body,
      });
      await response.text();
    }
  });
  return kept;
}

const own = (kept: KeptRequests) => kept.list('par_1', undefined, 1_000);

describe('the requests that a sandbox keeps', () => {
  it('have the values of fields that the operation has, with their digits, and no other values', async () => {
    const body = `{"account": "abc123", "quantity": 9007199254740993, "bvn": "22222222222",
      "nested": {"account": "inner", "list": [1, {"symbol": "x"}]}, "acc\\u006funt": "twice", "symbol": ["a", {"bvn": 1}]}`;
    const [request] = own(await keptAfter([{ body }]));
    assert.equal(
      request?.requestBody,
      '{"account":"abc123","quantity":9007199254740993,"bvn":"…","nested":"…","account":"twice","symbol":"…"}',
    );
    assert.deepEqual([request?.status, request?.code], [400, 'invalid_request']);
  });

  it('have no body that is not a JSON object', async () => {
    const bodies = ['', '{"account": "abc', '["22222222222"]', '"22222222222"', 'bvn=22222222222', '{"a":1}}'];
    for (const request of own(await keptAfter(bodies.map((body) => ({ body }))))) {
      assert.equal(request.requestBody, undefined);
    }
  });

  it('have no secret, wherever it stands', async () => {
    const secret = 'marina_test_k3y0123456789abcdefghijklmnopqrstuvwxyz';
    const kept = await keptAfter([
      { body: JSON.stringify({ ...goodOrder, client_reference: `x${secret}` }) },
      { path: `/v1/orders/${secret}` },
      { path: `/v1/orders?symbol=${secret}&unknown=value&flag` },
      { body: JSON.stringify({ ...goodOrder, symbol: 'whsec_c2VjcmV0' }) },
    ]);
    const text = JSON.stringify(own(kept));
    for (const part of ['k3y0123', 'c2VjcmV0', 'Bearer', 'unknown=value']) assert.ok(!text.includes(part), part);
    assert.match(text, /marina_test_…/);
  });

  it('have no secret that is written with the escapes of a URL or of JSON', async () => {
    const encoded = 'marina%5Ftest%5Fk3y0123456789';
    const kept = await keptAfter([
      { method: 'GET', body: null, path: `/v1/orders?symbol=${encoded}&account=abc%20123` },
      { method: 'GET', body: null, path: '/v1/orders?symbol=%6d%61rina%255ftest%25255Fk3y0123456789&flag' },
      { path: `/v1/orders/${encoded}/fill` },
      {
        body: '{"account":"abc\\u0031 \\"%C3%A9\\"","client_reference":"\\u006darina\\u005Ftest_k3y\\u0030123456789!"}',
      },
      { body: JSON.stringify({ client_reference: `https://partner.example/?key=${encoded}` }) },
      { body: '{"client_reference":"whsec\\u005fk3y\\/k3y\\u003d="}' },
    ]);
    const requests = own(kept).toReversed();
    assert.ok(!JSON.stringify(requests).includes('k3y'));
    assert.deepEqual(
      requests.slice(0, 3).map(({ path }) => path),
      ['/v1/orders?symbol=marina_test_…&account=…', '/v1/orders?symbol=marina_test_…&flag', '/v1/orders/marina_test_…'],
    );
    assert.deepEqual(
      requests.slice(3).map(({ requestBody }) => requestBody),
      [
        '{"account":"…","client_reference":"marina_test_…"}',
        '{"client_reference":"marina_test_…"}',
        '{"client_reference":"whsec_…"}',
      ],
    );
  });

  it('are numbered for each partner alone, so that a cursor tells nothing of others', () => {
    const kept = new KeptRequests({ clock, baseUrl: () => baseUrl });
    const keep = (partnerId: string) => {
      const exchanged = { method: 'GET', path: '/v1/limits', query: '', isUnlogged: false };
      const caller = { partnerId, keyId: 'key_1' };
      kept.keep({ exchanged, caller, isIdentified: true, protocol: 'rest', startedMs: 0 } as never, 200, undefined);
    };
    for (const partnerId of ['par_1', 'par_2', 'par_2', 'par_2', 'par_1']) keep(partnerId);
    assert.deepEqual(
      own(kept).map(({ number }) => number),
      [2, 1],
    );
  });

  it('requests of one partner are the last ones, of all only as much as fits, and none is older than it may be', async () => {
    const requests = Array.from({ length: 10 }, () => ({}));
    const few = await keptAfter(requests, { mostEach: 3 });
    assert.deepEqual(
      own(few).map(({ number }) => number),
      [10, 9, 8],
    );
    const all = await keptAfter(requests);
    const each = all.bytes / 10;
    const small = await keptAfter(requests, { mostBytes: 4.5 * each });
    assert.equal(own(small).length, 4);
    assert.ok(small.bytes <= 4.5 * each);
    const old = await keptAfter(requests, { keptMs: 0 });
    assert.deepEqual([own(old).length, old.bytes], [0, 0]);
  });

  it('are of good keys only, and not those that ask to be left out', async () => {
    const kept = await keptAfter([
      { headers: { authorization: 'Bearer revoked' } },
      { headers: { authorization: 'Bearer nobody' } },
      { headers: { 'marina-unlogged': 'true' } },
      { headers: { 'marina-unlisted': 'true' } },
      { headers: { 'marina-unlogged': 'false' } },
    ]);
    assert.deepEqual([own(kept).length, kept.list('par_2', undefined, 10).length], [1, 0]);
  });

  it('over gRPC has the message as REST would write it, and a message without such a form is answered all the same', async () => {
    const kept = new KeptRequests({ clock, baseUrl: () => baseUrl });
    await withServers({ pipeline: { kept } }, async ({ grpcPort }) => {
      for (const seconds of [1_795_000_000n, 2n ** 62n]) {
        const request = create(ListOrdersRequestSchema, { symbol: 'DANGCEM', updatedSince: { seconds, nanos: 0 } });
        await callGrpc(grpcPort, Orders.method.listOrders, request, { authorization: 'Bearer full' });
      }
    });
    const [bad, good] = own(kept);
    assert.equal(bad?.requestBody, undefined);
    assert.match(good?.requestBody ?? '', /"symbol":"DANGCEM".*"updated_since":"2026-/);
    assert.deepEqual([good?.protocol, good?.path, good?.status], ['grpc', '/marina.gateway.v1.Orders/ListOrders', 200]);
  });

  it('the requests kept have neither a body nor an answer of a confidential operation, in any protocol, and those of all others', () => {
    for (const operation of gatewayOperations) {
      const { name, input, output, isConfidential, file } = operation;
      const forms: readonly (readonly [ProtocolName, object])[] = [
        ['rest', { body: Buffer.from('{}'), answer: '{"seen":1}' }],
        ['grpc', { message: create(input), reply: create(output) }],
        ['connect', { message: create(input), reply: create(output) }],
      ];
      for (const [protocol, parts] of forms) {
        const kept = new KeptRequests({ clock, baseUrl: () => baseUrl });
        const exchanged = { method: 'POST', path: '/', query: '', isUnlogged: false, ...parts };
        const caller = { partnerId: 'par_1', keyId: 'key_1' };
        kept.keep(
          { exchanged, caller, isIdentified: true, protocol, startedMs: 0, operation } as never,
          200,
          undefined,
        );
        const [{ requestBody, answerBody } = {}] = own(kept);
        const shown = [requestBody !== undefined, answerBody !== undefined];
        assert.deepEqual(shown, [!isConfidential && file === undefined, !isConfidential], `${name} over ${protocol}`);
      }
    }
  });

  it('have no body of an operation whose fields describe a customer or whose answer is a secret', () => {
    const personal = new Set(CreateApplicationRequestSchema.fields.map(({ name }) => name));
    personal.delete('state');
    for (const { name, input, output, isConfidential, file } of gatewayOperations) {
      const holds =
        input.fields.some((field) => personal.has(field.name)) || output.fields.some((f) => f.name === 'secret');
      if (holds) assert.ok(isConfidential || file !== undefined, `${name} is confidential`);
    }
  });
});
