import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type Client, Metadata } from '@grpc/grpc-js';
import { statement } from '../../../src/gateway/store/statement.ts';
import { OrderSide, Orders, OrderType } from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { adminClient } from '../../support/admin.ts';
import { goodFields, overRest } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { noisePng } from '../../support/images.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';

interface Line {
  readonly msg: string;
  readonly [name: string]: unknown;
}

const newTraceParent = () => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`;

describe("a request's id and its place in a trace", () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let partner: TestPartner;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway(receiver.variables);
    partner = await gateway.newPartner();
    const admin = adminClient(gateway.app.adminPort);
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: receiver.url('/origins') }, admin.options);
    admin.close();
  });
  after(async () => {
    await gateway.stop();
    await receiver.close();
  });

  const lines = () => gateway.logged.map((line) => JSON.parse(line) as Line);
  const linesOf = (requestId: unknown, msg: string) =>
    lines().filter((line) => line.msg === msg && line.requestId === requestId);

  /** Returns the simulator's metadata of a message about an object. */
  async function received(clientOrderId: string, call: Call) {
    const { messages } = await gateway.controls.listMessages({ clientOrderId }, callTimeout);
    const found = messages.filter((message) => message.call === call);
    assert.ok(found.length > 0, `${Call[call]} was received`);
    return found.map(({ requestId, traceparent }) => [requestId, traceparent]);
  }

  const order = (quantity: number) => ({
    account: partner.account,
    symbol: 'SIM-FILL',
    side: 'buy',
    type: 'limit',
    price_kobo: 1000,
    quantity,
  });

  /** Places an order by each protocol, with a traceparent, and answers with its id and its request's. */
  const protocols: Record<string, (traceParent: string) => Promise<{ id: string; requestId: string | null }>> = {
    async rest(traceparent) {
      const answer = await gateway.rest('POST', '/v1/orders', {
        key: partner.key,
        idempotencyKey: randomUUID(),
        body: order(11),
        headers: { traceparent },
      });
      assert.equal(answer.status, 201, answer.text);
      return { id: answer.body.id, requestId: answer.headers.get('x-request-id') };
    },
    async connect(traceparent) {
      const { restPort } = gateway.app;
      const response = await fetch(`http://127.0.0.1:${restPort}/marina.gateway.v1.Orders/CreateOrder`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${partner.key}`,
          'idempotency-key': randomUUID(),
          'content-type': 'application/json',
          traceparent,
        },
        body: JSON.stringify({
          account: partner.account,
          symbol: 'SIM-FILL',
          side: 'ORDER_SIDE_BUY',
          type: 'ORDER_TYPE_LIMIT',
          priceKobo: '1000',
          quantity: '12',
        }),
      });
      const body = (await response.json()) as { id: string };
      assert.equal(response.status, 200, JSON.stringify(body));
      return { id: body.id, requestId: response.headers.get('x-request-id') };
    },
    async grpc(traceparent) {
      const client = createGrpcClient(Orders, `127.0.0.1:${gateway.app.grpcPort}`);
      const metadata = new Metadata();
      metadata.set('authorization', `Bearer ${partner.key}`);
      metadata.set('idempotency-key', randomUUID());
      metadata.set('traceparent', traceparent);
      let requestId: string | null = null;
      watchMetadata(client.grpcClient, (answer) => {
        requestId = String(answer.get('x-request-id')[0]);
      });
      const { id } = await client.createOrder(
        {
          account: partner.account,
          symbol: 'SIM-FILL',
          side: OrderSide.BUY,
          type: OrderType.LIMIT,
          priceKobo: 1000n,
          quantity: 13n,
        },
        { ...callTimeout, metadata },
      );
      client.close();
      return { id: id ?? '', requestId };
    },
  };

  for (const [protocol, place] of Object.entries(protocols)) {
    it(`come with an order placed over ${protocol} to the broker, its events and every line about it`, async () => {
      const traceParent = newTraceParent();
      const traceId = traceParent.slice(3, 35);
      const { id, requestId } = await place(traceParent);
      assert.match(requestId ?? '', /^[0-9a-f-]{36}$/);
      assert.deepEqual(await received(id, Call.SUBMIT_ORDER), [[requestId, traceParent]]);

      const [request, ...others] = linesOf(requestId, 'request');
      assert.deepEqual(others, [], 'one line for the request');
      const { durationMs, ...rest } = request ?? assert.fail('no line for the request');
      assert.equal(typeof durationMs, 'number');
      const { operation, partnerId, keyId, objectId, status, traceId: tracedAs } = rest;
      assert.deepEqual(
        { operation, partnerId, keyId, objectId, status, tracedAs, protocol: rest.protocol },
        {
          operation: 'Orders.CreateOrder',
          partnerId: partner.id,
          keyId: partner.keyId,
          objectId: id,
          status: protocol === 'connect' ? 200 : 201,
          tracedAs: traceId,
          protocol,
        },
      );
      const [sent, ...more] = linesOf(requestId, 'upstream call').filter(
        ({ method }) => method === 'Orders.SubmitOrder',
      );
      assert.deepEqual(more, [], 'one line for the send');
      assert.deepEqual(
        [sent?.partnerId, sent?.objectId, sent?.outcome, sent?.traceId, typeof sent?.durationMs],
        [partner.id, id, 'ok', traceId, 'number'],
      );

      // One event that it was taken, one that it was filled: by whichever way the exchange rest.
      const attempts = await eventually(() => {
        const found = linesOf(requestId, 'webhook attempt');
        assert.equal(found.length, 2, JSON.stringify(found));
        return found;
      });
      for (const attempt of attempts) {
        assert.deepEqual(
          [attempt.partnerId, attempt.objectId, attempt.outcome, attempt.traceId, typeof attempt.durationMs],
          [partner.id, id, 'delivered', traceId, 'number'],
        );
      }
      const rows = await gateway.database.read(
        statement('SELECT body FROM feed_events WHERE request_id = ? AND trace_parent = ?', requestId, traceParent),
      );
      assert.equal(rows.length, 2, 'both events are kept with it');
      for (const { body } of rows) {
        assert.ok(
          !String(body).includes(requestId ?? '') && !String(body).includes(traceId),
          'the body is the contract',
        );
      }
      for (const { headers } of receiver.at('/origins')) assert.equal(headers.traceparent, undefined);
    });
  }

  it('come with every other call about an object too', async () => {
    const traceparent = newTraceParent();
    const send = async (method: string, path: string, body?: unknown) => {
      const answer = await gateway.rest(method, path, {
        key: partner.key,
        ...(method === 'POST' && { idempotencyKey: randomUUID() }),
        ...(body !== undefined && { body }),
        headers: { traceparent },
      });
      assert.ok(answer.status < 300, answer.text);
      return { id: String(answer.body.id), requestId: answer.headers.get('x-request-id') };
    };
    await gateway.fund(partner, 1_000_000n);
    const resting = await send('POST', '/v1/orders', { ...order(14), symbol: 'SIM-REST' });
    const cancel = await send('DELETE', `/v1/orders/${resting.id}`);
    assert.deepEqual(await received(resting.id, Call.CANCEL_ORDER), [[cancel.requestId, traceparent]]);
    const allocation = await send('POST', '/v1/allocations', { account: partner.account, amount_kobo: 1_000 });
    assert.deepEqual(await received(allocation.id, Call.SUBMIT_ALLOCATION), [[allocation.requestId, traceparent]]);
    const application = await send('POST', '/v1/applications', goodFields);
    assert.deepEqual(await received(application.id, Call.SUBMIT_APPLICATION), [[application.requestId, traceparent]]);
    const photo = { key: partner.key, id: application.id, type: 'photo', file: await noisePng() };
    assert.equal((await overRest(gateway.app.restPort)(photo)).outcome, 'delivered');
    const [[documentRequest] = []] = await received(application.id, Call.SEND_DOCUMENT);
    assert.equal(linesOf(documentRequest, 'request')[0]?.operation, 'Applications.SendDocument');
    assert.equal(linesOf(documentRequest, 'request')[0]?.objectId, application.id);
  });

  it('the id and trace of an order that is unclear come with the look-ups that settle it', async () => {
    const traceparent = newTraceParent();
    const answer = await gateway.rest('POST', '/v1/orders', {
      key: partner.key,
      idempotencyKey: randomUUID(),
      body: { ...order(15), symbol: 'SIM-HANG' },
      headers: { traceparent },
    });
    assert.equal(answer.body.state, 'uncertain', answer.text);
    const requestId = answer.headers.get('x-request-id');
    const [sent] = linesOf(requestId, 'upstream call').filter(({ method }) => method === 'Orders.SubmitOrder');
    assert.equal(sent?.outcome, 'deadline_exceeded');
    for (const each of await eventually(() => received(answer.body.id, Call.LOOK_UP_ORDER))) {
      assert.deepEqual(each, [requestId, traceparent]);
    }
  });

  it('a traceparent that is none is as if it were not there', async () => {
    const trace = 'a'.repeat(32);
    const span = 'b'.repeat(16);
    const bad = [
      'canary',
      `00-${trace}-${span}`,
      `00-${trace}-${span}-01-canary`,
      `ff-${trace}-${span}-01`,
      `00-${'0'.repeat(32)}-${span}-01`,
      `00-${trace}-${'0'.repeat(16)}-01`,
      `00-${trace.toUpperCase()}-${span}-01`,
      `00-${trace}-${span}-01, 00-${trace}-${span}-01`,
    ];
    for (const [index, traceparent] of bad.entries()) {
      const answer = await gateway.rest('POST', '/v1/orders', {
        key: partner.key,
        idempotencyKey: randomUUID(),
        body: { ...order(100 + index), symbol: 'SIM-REST' },
        headers: { traceparent },
      });
      assert.equal(answer.status, 201, traceparent);
      const requestId = answer.headers.get('x-request-id');
      assert.deepEqual(await received(answer.body.id, Call.SUBMIT_ORDER), [[requestId, '']], traceparent);
      assert.equal(linesOf(requestId, 'request')[0]?.traceId, undefined);
    }
    // A later version is read as far as it is known.
    const later = await gateway.rest('POST', '/v1/orders', {
      key: partner.key,
      idempotencyKey: randomUUID(),
      body: { ...order(99), symbol: 'SIM-REST' },
      headers: { traceparent: `01-${trace}-${span}-03-more` },
    });
    const [[, passed] = []] = await received(later.body.id, Call.SUBMIT_ORDER);
    assert.equal(passed, `00-${trace}-${span}-01`);
  });

  it('nothing a client wrote that was not checked is in any line', async () => {
    await gateway.rest('GET', '/v1/orders/canary-order', {
      key: partner.key,
      headers: { traceparent: 'canary-trace' },
    });
    await gateway.rest('GET', '/v1/canary-path?canary=canary', { key: partner.key });
    await gateway.rest('GET', '/v1/accounts/CANARYACCOUNT/balance', { key: partner.key });
    await gateway.rest('POST', '/v1/orders', {
      key: partner.key,
      idempotencyKey: `canary-${randomUUID()}`,
      body: { ...order(16), client_reference: 'canary-reference', canary: 'canary' },
      headers: { 'user-agent': 'canary-agent', 'x-canary': 'canary' },
    });
    const { body } = await gateway.rest('POST', '/v1/orders', {
      key: partner.key,
      idempotencyKey: `canary-${randomUUID()}`,
      body: { ...order(17), client_reference: 'canary-reference' },
    });
    await eventually(() => {
      const attempts = lines().filter(({ msg, objectId }) => msg === 'webhook attempt' && objectId === body.id);
      assert.equal(attempts.length, 2);
    });
    const secret = partner.key.slice('marina_test_'.length + 20, -6);
    for (const line of gateway.logged) {
      assert.doesNotMatch(line, /canary/i);
      assert.ok(!line.includes(secret), 'no key');
      assert.ok(!line.includes(partner.account), 'no account');
    }
  });
});

/** Shows the metadata of a client's answers, which its calls do not. */
function watchMetadata(client: Client, seen: (metadata: Metadata) => void): void {
  const make = client.makeUnaryRequest.bind(client) as (...args: unknown[]) => ReturnType<Client['makeUnaryRequest']>;
  client.makeUnaryRequest = ((...args: unknown[]) => make(...args).on('metadata', seen)) as Client['makeUnaryRequest'];
}
