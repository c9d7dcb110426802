import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { create, getOption, ScalarType, toBinary, toJsonString } from '@bufbuild/protobuf';
import { freeTexts, KeptRequests } from '../../../../src/gateway/edge/kept-requests/kept-requests.ts';
import { takesAnyText } from '../../../../src/gateway/edge/kept-requests/shown-parts.ts';
import {
  CreateOrderRequestSchema,
  ListOrdersRequestSchema,
  ListOrdersResponseSchema,
  OrderSchema,
  OrderSide,
  Orders,
  OrderType,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { field as fieldOption } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { gatewayOperations } from '../../../../src/site/gateway-contract.ts';
import { fc } from '../../../support/properties.ts';
import { baseUrl, callGrpc, goodOrder, openServers, order, type Servers } from '../fixture.ts';

/** Values that describe a customer. */
const personal = [
  ['a BVN', '22212345678'],
  ['a NIN', '70123456789'],
  ['a phone number', '08031234567'],
  ['a phone number with its country', '+2348031234567'],
  ['a phone number with blanks', '+234 803 123 4567'],
  ['a mail address', 'ada.okafor@example.com'],
  ['a name', 'Adaeze Okafor'],
  ['a date of birth', '1990-04-01'],
  ['an address', '12 Marina Road, Lagos'],
  ['a file', '/9j/4AAQSkZJRgABAQAAAQABAAD'],
] as const;
const values = personal.map(([, value]) => value);

const credentials = { authorization: 'Bearer full', 'idempotency-key': 'k' };

describe('the requests that a sandbox keeps, with something personal', () => {
  const kept = new KeptRequests({ clock: { now: () => Date.UTC(2026, 10, 25) }, baseUrl: () => baseUrl });
  const references: string[] = [];
  let servers: Servers;
  before(async () => {
    servers = await openServers({
      pipeline: { kept },
      orders: {
        async createOrder({ clientReference, account }) {
          references.push(clientReference ?? '');
          return create(OrderSchema, { ...order, account: account ?? '', ...(clientReference && { clientReference }) });
        },
        async listOrders() {
          const data = references
            .slice(-20)
            .map((clientReference) => create(OrderSchema, { ...order, clientReference }));
          return create(ListOrdersResponseSchema, { data });
        },
      },
    });
  });
  after(() => servers?.close());

  async function rest(method: string, path: string, body?: string, headers: Record<string, string> = {}) {
    const answer = await fetch(`http://127.0.0.1:${servers.restPort}${path}`, {
      method,
      headers: { ...credentials, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body }),
    });
    return { status: answer.status, text: await answer.text() };
  }

  /** A text with the escapes of URLs and of JSON undone, and in the digits of a number that has signs or blanks in it. */
  function plainForms(text: string): string[] {
    const inUrl = text.replace(/%([0-9a-f]{2})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
    const inJson = inUrl.replace(/\\+u([0-9a-f]{4})/gi, (_, code) => String.fromCharCode(Number.parseInt(code, 16)));
    return [text, inUrl, inJson, inJson.replaceAll('\\', '')];
  }

  /** Checks what is shown and logged since the last check, and forgets it. */
  function assertNotShown(value: string, where: string): void {
    const shown = JSON.stringify(kept.list('par_1', undefined, 5));
    const logged = servers.logLines.splice(0).join('');
    for (const text of [...plainForms(shown), ...plainForms(logged)]) {
      assert.ok(!text.includes(value), `${value} in ${where}: ${text}`);
    }
  }

  const encoded = (value: string) => [...Buffer.from(value)].map((byte) => `%${byte.toString(16)}`).join('');
  const escaped = (value: string) =>
    [...value].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

  for (const [kind, value] of personal) {
    it(`show ${kind} neither in a path nor in a query, however it is written`, async () => {
      const written = [encodeURIComponent(value), encoded(value), encodeURIComponent(encodeURIComponent(value))];
      for (const each of written) {
        for (const path of [
          `/v1/${each}`,
          `/v1/orders/${each}`,
          `/v1/orders/${each}/fill/${each}`,
          `/v1/applications/${each}/documents/${each}`,
          `/v1/orders?${each}`,
          `/v1/orders?${each}=1`,
          `/v1/orders?bvn=${each}`,
          `/v1/orders?symbol=${each}`,
          `/v1/orders?account=${each}&client_reference=${each}`,
          `/v1/orders?updated_since=${each}`,
          `/v1/orders?limit=${each}`,
          `/v1/orders?state=${each}&cursor=${each}`,
          `/v1/nowhere?x=1&${each}=${each}=${each}`,
          `/marina.gateway.v1.Orders/${each}`,
          `/marina.gateway.v1.Orders/ListOrders?${each}`,
        ]) {
          await rest('GET', path);
          assertNotShown(value, `GET ${path}`);
          await rest('POST', path, '{}');
          assertNotShown(value, `POST ${path}`);
        }
      }
    });

    it(`show ${kind} in no body of any protocol`, async () => {
      const { client_reference: _, ...plain } = { ...goodOrder, client_reference: '' };
      const json = JSON.stringify(value);
      const number = /^[1-9]\d+$/.test(value) ? value : '1';
      const bodies = [
        ...Object.keys(plain).map((name) => JSON.stringify({ ...plain, [name]: value })),
        ...Object.keys(plain).map((name) => `{"${name}":${number}}`),
        ...Object.keys(plain).map((name) => JSON.stringify({ ...plain, [name]: { bvn: value, [value]: [value] } })),
        ...Object.keys(plain).map((name) => JSON.stringify({ ...plain, [name]: [value, [value], { [value]: 1 }] })),
        JSON.stringify({ ...plain, [value]: 1 }),
        JSON.stringify({ ...plain, client_reference: value }),
        `{"${escaped(value)}":"${escaped(value)}","client_reference":"${escaped(value)}"}`,
        `{"a":{"${value}":${json}},"a":${json}}`,
        `{"account":"${value}`,
        `{"account":${json}}}`,
        `[${json}]`,
        json,
        `${value}=1`,
        '\ufeff{"bvn":1}',
      ];
      for (const body of bodies) {
        const answer = await rest('POST', '/v1/orders', body);
        if (answer.status >= 400 && /^\d+$/.test(value)) assert.ok(!answer.text.includes(value), answer.text);
        assertNotShown(value, `POST /v1/orders ${body}`);
        await rest('POST', '/marina.gateway.v1.Orders/CreateOrder', body);
        assertNotShown(value, `Connect CreateOrder ${body}`);
        await rest('POST', '/v1/applications', body);
        assertNotShown(value, `POST /v1/applications ${body}`);
        await rest('PUT', '/v1/nowhere', body);
        assertNotShown(value, `PUT /v1/nowhere ${body}`);
      }
      await rest('GET', '/v1/orders');
      assertNotShown(value, 'a list with what was sent before');
    });

    it(`show ${kind} in no message of gRPC and Connect, and in no header`, async () => {
      const good = {
        account: 'ABC1',
        symbol: 'X',
        side: OrderSide.BUY,
        type: OrderType.LIMIT,
        quantity: 1n,
        priceKobo: 1n,
      };
      const messages = [
        create(CreateOrderRequestSchema, { ...good, account: value }),
        create(CreateOrderRequestSchema, { ...good, symbol: value }),
        create(CreateOrderRequestSchema, { ...good, clientReference: value }),
        ...(/^[1-9]\d+$/.test(value)
          ? [
              create(CreateOrderRequestSchema, { ...good, quantity: BigInt(value) }),
              create(CreateOrderRequestSchema, { ...good, priceKobo: BigInt(value) }),
            ]
          : []),
      ];
      for (const message of messages) {
        await callGrpc(servers.grpcPort, Orders.method.createOrder, message);
        assertNotShown(value, 'gRPC');
        const bytes = Buffer.from(toBinary(CreateOrderRequestSchema, message));
        await fetch(`http://127.0.0.1:${servers.restPort}/marina.gateway.v1.Orders/CreateOrder`, {
          method: 'POST',
          headers: { ...credentials, 'content-type': 'application/proto' },
          body: bytes,
        });
        assertNotShown(value, 'Connect with protobuf');
        await rest('POST', '/marina.gateway.v1.Orders/CreateOrder', toJsonString(CreateOrderRequestSchema, message));
        assertNotShown(value, 'Connect with JSON');
      }
      await callGrpc(servers.grpcPort, Orders.method.listOrders, Buffer.from(value));
      assertNotShown(value, 'gRPC, not a message');
      await callGrpc(
        servers.grpcPort,
        Orders.method.listOrders,
        create(ListOrdersRequestSchema, { cursor: value, account: value, symbol: value, clientReference: value }),
      );
      assertNotShown(value, 'a list over gRPC');
      const headers = Object.fromEntries(
        ['x-request-id', 'traceparent', 'user-agent', 'cookie', 'bvn', 'x-forwarded-for'].map((name) => [name, value]),
      );
      await rest('POST', '/v1/orders', JSON.stringify(goodOrder), { ...headers, 'idempotency-key': value });
      await rest('POST', '/v1/orders', JSON.stringify(goodOrder), { ...headers, 'content-type': value });
      assertNotShown(value, 'headers');
    });
  }

  it('show it at no place of any JSON', async () => {
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5, depthSize: 'small' },
        fc.constantFrom<unknown>(...values, null, true, 1, 'x'),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(
          fc.constantFrom(...values, 'account', 'symbol', 'client_reference', 'quantity', 'side', 'bvn', 'data'),
          tie('tree'),
          { maxKeys: 4 },
        ),
      ),
    }));
    const paths = ['/v1/orders', '/v1/orders/estimate', '/marina.gateway.v1.Orders/CreateOrder', '/v1/applications'];
    await fc.assert(
      fc.asyncProperty(tree, fc.constantFrom(...paths), async (body, path) => {
        await rest('POST', path, JSON.stringify(body));
        const shown = JSON.stringify(kept.list('par_1', undefined, 1));
        for (const value of values) assert.ok(!shown.includes(value), `${value}: ${shown}`);
      }),
      { numRuns: 150 },
    );
  });

  it('show an amount, an account, a reference, an id and a time as they were sent', async () => {
    for (const reference of ['order-17', 'A1', 'INV_2026.7', '550e8400-e29b-41d4-a716-446655440000']) {
      await rest('POST', '/v1/orders', JSON.stringify({ ...goodOrder, client_reference: reference }));
      const [{ requestBody = '', answerBody = '' } = {}] = kept.list('par_1', undefined, 1);
      assert.deepEqual(JSON.parse(requestBody), { ...goodOrder, client_reference: reference });
      assert.equal(JSON.parse(answerBody).client_reference, reference);
    }
    const target = '/v1/orders?account=abc123&state=pending&updated_since=2026-11-25T10:00:00%2B01:00&limit=5';
    await rest('GET', target);
    assert.equal(kept.list('par_1', undefined, 1)[0]?.path, target);
    await rest('GET', `/v1/orders/${order.id}`);
    assert.equal(kept.list('par_1', undefined, 1)[0]?.path, `/v1/orders/${order.id}`);
    await rest('POST', '/v1/orders', '{"quantitty":5}');
    assert.equal(kept.list('par_1', undefined, 1)[0]?.requestBody, '{"quantitty":"…"}');
    assert.match(kept.list('par_1', undefined, 1)[0]?.answerBody ?? '', /`quantitty` is not a field/);
  });

  it('know every member of an answer in which a partner may have written anything', () => {
    const written = new Set<string>();
    for (const { input, isConfidential } of gatewayOperations) {
      if (isConfidential) continue;
      for (const field of input.fields) if (takesAnyText(field)) written.add(field.name);
    }
    assert.deepEqual(
      [...written],
      [...freeTexts.keys()].map((name) => JSON.parse(name)),
    );
    // A text without a form has one more use than to be written by a partner: it is a cursor.
    for (const { input, isConfidential, file } of gatewayOperations) {
      if (isConfidential || file !== undefined) continue;
      const formless = input.fields.filter(
        (field) => field.scalar === ScalarType.STRING && getOption(field, fieldOption).pattern === '',
      );
      assert.ok(
        formless.every(({ name }) => name === 'cursor'),
        input.name,
      );
    }
  });
});
