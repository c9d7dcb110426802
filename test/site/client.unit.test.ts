import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { docUrl } from '../../src/gateway/edge/errors.ts';
import { answered, type Marina, MarinaError, marinaClient } from '../../src/site/snippets/client.mts';

interface Answer {
  status: number;
  body: object;
  headers?: Record<string, string>;
}

const order = { account: 'LAG0012345', symbol: 'ZENITHBANK', side: 'buy', quantity: 100, type: 'market' } as const;
const params = { header: { 'Idempotency-Key': 'an order' } };

let server: Server;
let marina: Marina;
let answers: Answer[] = [];
let requests: { line: string; headers: NodeJS.Dict<string | string[]>; body: Buffer }[] = [];

before(async () => {
  server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    requests.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
    const { status, headers, body: answer } = answers.shift() ?? { status: 200, body: {} };
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(answer));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  marina = marinaClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'marina_test_key');
});

afterEach(() => {
  answers = [];
  requests = [];
});

after(() => server.close());

function refusal(status: number, code: string, retryAfter?: string): Answer {
  const doc = docUrl('http://127.0.0.1', code as 'not_found');
  const error = { type: 'api_error', code, message: 'A sentence.', doc_url: doc };
  return { status, body: { error }, headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter } };
}

describe('the client the pages show', () => {
  it('sends an order with key and Idempotency-Key, and sends the same again when asked to wait', async () => {
    answers = [refusal(429, 'rate_limited', '0.01'), refusal(503, 'service_unavailable', '0.01')];
    answers.push({ status: 201, body: { id: 'ord_1' }, headers: { 'idempotent-replayed': 'true' } });
    const { data, response } = await answered(marina.POST('/v1/orders', { params, body: order }));
    assert.deepEqual([data.id, response.status], ['ord_1', 201]);
    assert.equal(response.headers.get('Idempotent-Replayed'), 'true');
    assert.equal(requests.length, 3);
    for (const { line, headers, body } of requests) {
      assert.equal(line, 'POST /v1/orders');
      assert.deepEqual(
        [headers.authorization, headers['idempotency-key'], headers['content-type']],
        ['Bearer marina_test_key', 'an order', 'application/json'],
      );
      assert.deepEqual(JSON.parse(body.toString()), order);
    }
  });

  it('sends nothing again that could be done twice, or that is not to be done again', async () => {
    answers = [refusal(503, 'service_unavailable', '0.01')];
    const made = await marina.POST('/v1/keys', { body: { scopes: ['read'] } });
    assert.equal(made.error?.error.code, 'service_unavailable');
    for (const [status, code] of [
      [409, 'similar_order_unresolved'],
      [503, 'order_not_sent'],
      [429, 'rate_limited'],
    ] as const) {
      requests = [];
      // Two minutes are more than a call has; what was not sent says no time.
      answers = [refusal(status, code, status === 429 ? '120' : status === 409 ? '0.01' : undefined)];
      const { error } = await marina.POST('/v1/orders', { params, body: order });
      assert.deepEqual([error?.error.code, requests.length], [code, 1]);
    }
  });

  it('sends nothing again at once if a proxy asks it to wait until a date', async () => {
    answers = [refusal(429, 'rate_limited', new Date(Date.now() + 5_000).toUTCString())];
    const { error } = await marina.GET('/v1/wallet');
    assert.deepEqual([error?.error.code, requests.length], ['rate_limited', 1]);
  });

  it('sends a file as it is, as often as it is asked for', async () => {
    const file = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255]);
    answers = [refusal(503, 'document_unconfirmed', '0.01'), { status: 200, body: { state: 'delivered' } }];
    const path = { id: 'app_1', type: 'photo' } as const;
    const headers = { 'Content-Type': 'image/png' };
    const call = marina.PUT('/v1/applications/{id}/documents/{type}', { params: { path }, headers, body: file });
    assert.equal((await answered(call)).data.state, 'delivered');
    assert.equal(requests.length, 2);
    for (const { line, headers, body } of requests) {
      assert.equal(line, 'PUT /v1/applications/app_1/documents/photo');
      assert.deepEqual([headers['content-type'], headers['content-length']], ['image/png', '6']);
      assert.deepEqual(new Uint8Array(body), file);
    }
  });

  it('tells what was refused by its code, and whom nobody described by its status', async () => {
    answers = [refusal(422, 'limit_exceeded')];
    await assert.rejects(answered(marina.POST('/v1/orders', { params, body: order })), (error) => {
      assert.ok(error instanceof MarinaError);
      assert.deepEqual([error.status, error.code], [422, 'limit_exceeded']);
      assert.match(error.message, /^\/v1\/orders was answered 422 limit_exceeded: A sentence\./);
      return true;
    });
    answers = [{ status: 502, body: {} }];
    await assert.rejects(answered(marina.GET('/v1/wallet')), { name: 'MarinaError', status: 502, code: undefined });
  });
});
