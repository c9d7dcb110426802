import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { compileDecoder } from '../../../../src/gateway/edge/json/decoder.ts';
import { StatusSchema } from '../../../../src/gen/google/rpc/status_pb.ts';
import { EventSchema } from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import {
  CreateOrderRequestSchema,
  ListOrdersRequestSchema,
  ListOrdersResponseSchema,
  OrderEstimateSchema,
  OrderSide,
  OrderType,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';

const decodeOrder = compileDecoder(CreateOrderRequestSchema);
const decodePage = compileDecoder(ListOrdersResponseSchema);
const decodeEstimate = compileDecoder(OrderEstimateSchema);

function refusal(decode: (bytes: Buffer) => unknown, text: string): { code: string; param: string | undefined } {
  try {
    decode(Buffer.from(text));
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return { code: error.code, param: error.param };
  }
  return assert.fail(`${text} was taken`);
}

test('a body becomes the message it describes', () => {
  const text = `{"account":"abc","symbol":"X\\u0041","side":"buy","quantity":9007199254740991,"type":"limit","price_kobo":-5,
    "client_reference":null}`;
  const expected = create(CreateOrderRequestSchema, {
    account: 'abc',
    symbol: 'XA',
    side: OrderSide.BUY,
    quantity: 9_007_199_254_740_991n,
    type: OrderType.LIMIT,
    priceKobo: -5n,
  });
  assert.deepEqual(decodeOrder(Buffer.from(text)), expected);
});

test('times are read with their offset and fraction', () => {
  const decode = compileDecoder(ListOrdersRequestSchema);
  const read = (text: string) => decode(Buffer.from(JSON.stringify({ updated_since: text }))).updatedSince;
  assert.deepEqual(read('1970-01-01T01:00:00.25+01:00')?.nanos, 250_000_000);
  assert.equal(read('1970-01-01T01:00:00.25+01:00')?.seconds, 0n);
  assert.equal(read('2024-02-29t23:59:59z')?.seconds, 1_709_251_199n);
  assert.equal(read('0001-01-01T00:00:00Z')?.seconds, -62_135_596_800n);
  assert.equal(read('9999-12-31T23:59:59Z')?.seconds, 253_402_300_799n);
});

test('every text that is no time is refused', () => {
  const decode = compileDecoder(ListOrdersRequestSchema);
  const times = ['', '2026-03-02', '2026-03-02T09:30:00', '2026-02-29T00:00:00Z', '2026-13-01T00:00:00Z'];
  times.push('2026-00-10T00:00:00Z', '2026-01-00T00:00:00Z', '2026-01-01T24:00:00Z', '2026-01-01T00:60:00Z');
  times.push('2026-01-01T00:00:60Z', '2026-01-01T00:00:00.Z', '2026-01-01T00:00:00.1234567890Z', '2026-1-1T0:0:0Z');
  times.push(
    '2026-01-01T00:00:00+0100',
    '2026-01-01T00:00:00+24:00',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z\n',
  );
  times.push('0000-01-01T00:00:00Z', '0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01', '2026-01-01 00:00:00Z');
  for (const time of times) {
    const body = JSON.stringify({ updated_since: time });
    assert.deepEqual(refusal(decode, body), { code: 'invalid_request', param: 'updated_since' }, time);
  }
});

test('a body that is not JSON, or not an object, is refused without a param', () => {
  for (const text of ['', '{', '[]', '"a"', '1', 'null', 'true', '{}{}', "{'a':1}", '{"side":"buy",}', '\ufeff{}']) {
    assert.deepEqual(refusal(decodeOrder, text), { code: 'invalid_request', param: undefined }, text);
  }
});

const wrong: readonly [string, string][] = [
  ['{"account":1}', 'account'],
  ['{"account":true}', 'account'],
  ['{"account":{}}', 'account'],
  ['{"account":["abc"]}', 'account'],
  ['{"account":"a\\u0000"}', 'account'],
  ['{"account":"\\ud800"}', 'account'],
  ['{"account":"\\udc00\\ud800"}', 'account'],
  ['{"side":"foo"}', 'side'],
  ['{"side":"BUY"}', 'side'],
  ['{"side":"ORDER_SIDE_BUY"}', 'side'],
  ['{"side":"unspecified"}', 'side'],
  ['{"side":""}', 'side'],
  ['{"side":1}', 'side'],
  ['{"side":"toString"}', 'side'],
  ['{"quantity":"100"}', 'quantity'],
  ['{"quantity":1.5}', 'quantity'],
  ['{"quantity":1.0}', 'quantity'],
  ['{"quantity":1e3}', 'quantity'],
  ['{"quantity":-0}', 'quantity'],
  ['{"quantity":9007199254740992}', 'quantity'],
  ['{"quantity":-9007199254740992}', 'quantity'],
  ['{"quantity":12345678901234567890}', 'quantity'],
  ['{"quantity":false}', 'quantity'],
  ['{"quantity":[]}', 'quantity'],
];

for (const [text, param] of wrong) {
  test(`${text} has the wrong type at ${param}`, () => {
    assert.deepEqual(refusal(decodeOrder, text), { code: 'invalid_request', param });
  });
}

const unknown: readonly [string, string][] = [
  ['{"foo":1}', 'foo'],
  ['{"foo":null}', 'foo'],
  ['{"priceKobo":1}', 'priceKobo'],
  ['{"object":"order"}', 'object'],
  ['{"__proto__":1}', '__proto__'],
  ['{"constructor":1}', 'constructor'],
  ['{"":1}', ''],
  ['{"side":"buy","side":"buy"}', 'side'],
  ['{"side":null,"side":null}', 'side'],
  ['{"quantity":"wrong","b":1,"a":1}', 'b'],
  ['{"account":1,"account":2,"zzz":3}', 'account'],
];

for (const [text, param] of unknown) {
  test(`${text} has an unknown or repeated field ${JSON.stringify(param)}`, () => {
    assert.deepEqual(refusal(decodeOrder, text), { code: 'invalid_request', param });
  });
}

test('of several wrong types the first in the order of the proto is reported', () => {
  assert.equal(refusal(decodeOrder, '{"type":1,"quantity":"1","side":1}').param, 'side');
});

test('fields inside messages and lists are named by their path', () => {
  assert.equal(refusal(decodePage, '{"data":[{},{"quantity":1.5}]}').param, 'data[1].quantity');
  assert.equal(refusal(decodePage, '{"data":[{"foo":1}]}').param, 'data[0].foo');
  assert.equal(refusal(decodePage, '{"data":[{"id":"a","id":"b"}]}').param, 'data[0].id');
  assert.equal(refusal(decodePage, '{"data":[null]}').param, 'data[0]');
  assert.equal(refusal(decodePage, '{"data":[{},7]}').param, 'data[1]');
  assert.equal(refusal(decodePage, '{"data":{}}').param, 'data');
  assert.equal(refusal(decodePage, '{"has_more":"x","data":[{"foo":1}]}').param, 'data[0].foo', 'stage before order');
  assert.equal(refusal(decodeEstimate, '{"fees":[{"name":"a"},{"name":1}]}').param, 'fees[1].name');
});

test('an absurdly long name is not repeated whole', () => {
  assert.equal(refusal(decodeOrder, JSON.stringify({ ['x'.repeat(9_000)]: 1 })).param?.length, 200);
});

test('a body fills in what the path left open', () => {
  const [account, ...rest] = CreateOrderRequestSchema.fields;
  assert.ok(account !== undefined);
  const decode = compileDecoder(CreateOrderRequestSchema, rest);
  const into = create(CreateOrderRequestSchema, { account: 'FROMPATH' });
  assert.equal(decode(Buffer.from('{"symbol":"x"}'), into), into);
  assert.deepEqual([into.account, into.symbol], ['FROMPATH', 'x']);
  assert.equal(refusal((bytes) => decode(bytes), '{"account":"x"}').param, 'account');
});

test('a message that has no strict form in a request stops the start', () => {
  assert.throws(() => compileDecoder(EventSchema));
  assert.throws(() => compileDecoder(StatusSchema));
});
