import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { catalogue, type ErrorCode } from '../../src/gateway/edge/errors.ts';
import { EventSchema } from '../../src/gen/marina/gateway/v1/events_pb.ts';
import { commentOf, readComments } from '../../src/site/comments.ts';
import { gatewayOperations } from '../../src/site/gateway-contract.ts';
import { eventTypes } from '../../src/site/pages/events.ts';
import { assertDescribed, type DescribedAnswer, described } from '../support/described.ts';

const comments = readComments();

/** A good answer of GET /v1/wallet. */
const wallet: DescribedAnswer = {
  method: 'GET',
  path: '/v1/wallet',
  status: 200,
  header: (name) => ({ 'x-request-id': '1', 'cache-control': 'no-store' })[name],
  text: '{"object":"wallet","available_kobo":1,"reserved_kobo":0,"posted_kobo":100000000000000000,"withdrawn_kobo":0}',
};

function refusal(status: number, code: string, headers: Record<string, string> = {}): DescribedAnswer {
  const error = {
    type: 'api_error',
    code,
    message: 'A sentence.',
    doc_url: `https://marina.example/docs/errors#${code}`,
  };
  const header = (name: string) => headers[name] ?? wallet.header(name);
  return { ...wallet, status, header, text: JSON.stringify({ error }) };
}

describe('the OpenAPI document', () => {
  it('has every operation of REST at its path and method, and its name', () => {
    const documented = Object.entries(described.paths).flatMap(([path, methods]) =>
      Object.entries(methods as Record<string, { operationId: string }>).map(
        ([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`,
      ),
    );
    assert.ok(documented.includes('POST /v1/orders createOrder'));
    assert.ok(documented.includes('PUT /v1/applications/{id}/documents/{type} sendDocument'));
    assert.equal(documented.length, gatewayOperations.filter(({ http }) => http !== undefined).length);
  });

  it('lists with an operation every error its comment names', () => {
    for (const operation of gatewayOperations.filter(({ http }) => http !== undefined)) {
      const named = [...commentOf(comments, operation.method).matchAll(/`([a-z_]+)`/g)].map(([, code]) => code ?? '');
      const missing = named.filter((code) => code in catalogue && !(operation.errors as string[]).includes(code));
      assert.deepEqual(missing, [], operation.name);
    }
  });

  it('has no error that no operation can answer with, but for a path called by another method', () => {
    const answered = new Set(gatewayOperations.flatMap(({ errors }) => errors));
    assert.deepEqual(
      (Object.keys(catalogue) as ErrorCode[]).filter((code) => !answered.has(code)),
      ['method_not_allowed'],
    );
  });

  it('names every type of event in the comment of what has it', () => {
    const comment = commentOf(comments, EventSchema.field.type);
    const reference = { operations: gatewayOperations, comments, examples: { operations: {}, events: {} } };
    const types = eventTypes(reference).flatMap((group) => group.types.map(({ type }) => type));
    assert.ok(types.length > 15, `${types.length} types`);
    assert.deepEqual(
      types.filter((type) => !comment.includes(`\`${type}\``)),
      [],
    );
  });

  it('lets a market order have a price of null and no other price', () => {
    for (const name of ['CreateOrderRequest', 'EstimateOrderRequest']) {
      const [limit, market] = described.components.schemas[name].oneOf;
      assert.equal(limit.properties.price_kobo.type, 'integer');
      assert.ok(limit.required.includes('price_kobo'));
      assert.deepEqual([limit.properties.type.enum, market.properties.type.enum], [['limit'], ['market']]);
      assert.deepEqual(market.properties.price_kobo.type, ['integer', 'null']);
      assert.deepEqual(market.properties.price_kobo.not, { type: 'integer' });
      assert.ok(!market.required.includes('price_kobo'));
    }
  });

  it('takes what may be null for null, and lists of values for open', () => {
    const { properties } = described.components.schemas.Order;
    assert.deepEqual(properties.price_kobo.type, ['integer', 'null']);
    assert.deepEqual(properties.created_at.type, 'string');
    assert.deepEqual(properties.reject_reason.anyOf[1], { type: 'null' });
    const { OrderState } = described.components.schemas;
    assert.equal(OrderState.enum, undefined);
    assert.ok(OrderState['x-extensible-enum'].includes('uncertain'));
  });

  it('gives each operation a short summary of its own, without a full stop', () => {
    const nodes: Record<string, { summary: string }>[] = [
      ...Object.values(described.paths),
      ...Object.values(described.webhooks),
    ] as Record<string, { summary: string }>[];
    const summaries = nodes.flatMap((methods) => Object.values(methods).map(({ summary }) => summary));
    assert.ok(summaries.length > 40);
    assert.equal(new Set(summaries).size, summaries.length);
    assert.deepEqual(
      summaries.filter((summary) => summary.length > 30 || summary.endsWith('.')),
      [],
    );
  });

  it('has no `const`, which many generators read as any value', () => {
    assert.doesNotMatch(JSON.stringify(described), /"const":/);
    assert.deepEqual(described.components.schemas.Event.properties.object.enum, ['event']);
  });

  it('says that an event may be about an object of another kind', () => {
    const { anyOf } = described.components.schemas.Event.properties.data;
    assert.equal(anyOf[0].oneOf.length, 4);
    assert.deepEqual(anyOf[1], { $ref: '#/components/schemas/UnknownObject' });
    assert.deepEqual(described.components.schemas.UnknownObject.required, ['object']);
  });

  it('takes a file for bytes of its media type, and not for a text', () => {
    const { content } = described.paths['/v1/applications/{id}/documents/{type}'].put.requestBody;
    assert.deepEqual(Object.keys(content), ['image/jpeg', 'image/png']);
    for (const [mediaType, { schema }] of Object.entries<Record<string, Record<string, string>>>(content)) {
      assert.equal(schema?.contentMediaType, mediaType);
      assert.equal(schema?.type, undefined);
    }
  });
});

describe('what holds answers against it', () => {
  it('takes one that is as described', () => {
    assertDescribed(wallet);
    assertDescribed(refusal(503, 'service_unavailable', { 'retry-after': '5' }));
    assertDescribed({ ...refusal(404, 'not_found'), path: '/v1/nothing' });
  });

  it('fails on another status, member, type, header or code', () => {
    const wrong: readonly DescribedAnswer[] = [
      { ...wallet, status: 201 },
      { ...wallet, text: wallet.text.replace('}', ',"more":1}') },
      { ...wallet, text: wallet.text.replace(',"reserved_kobo":0', '') },
      { ...wallet, text: wallet.text.replace('"reserved_kobo":0', '"reserved_kobo":0.5') },
      { ...wallet, text: wallet.text.replace('"wallet"', '"order"') },
      { ...wallet, header: () => undefined },
      { ...wallet, header: (name) => (name === 'location' ? '/v1/orders' : wallet.header(name)) },
      refusal(409, 'duplicate_order'),
      refusal(503, 'trading_paused', { 'retry-after': '30' }),
      refusal(401, 'unauthorized'),
    ];
    for (const answer of wrong) assert.throws(() => assertDescribed(answer), assert.AssertionError, answer.text);
  });
});
