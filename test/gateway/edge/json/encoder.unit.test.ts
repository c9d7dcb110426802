import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { compileByteEncoder, compileEncoder, quote } from '../../../../src/gateway/edge/json/encoder.ts';
import { formatTimestamp } from '../../../../src/gateway/edge/json/reader.ts';
import { decodeStored, materialize, storedMessage } from '../../../../src/gateway/edge/json/stored.ts';
import { EventSchema, ListEventsResponseSchema } from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import { KeySchema } from '../../../../src/gen/marina/gateway/v1/keys_pb.ts';
import {
  ListOrdersResponseSchema,
  OrderEstimateSchema,
  OrderRejectReason,
  OrderSchema,
  OrderSide,
  OrderState,
  OrderType,
  TimeInForce,
} from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { withStoredNames } from '../../../../src/kit/enums.ts';
import { fc } from '../../../support/properties.ts';

const encodeOrder = compileEncoder(OrderSchema);

test('an order is written in the order of its fields, with null for what it has not', () => {
  const order = create(OrderSchema, {
    id: 'ord_abcdefghijklmnopqrst',
    state: OrderState.PARTIALLY_FILLED,
    account: 'ABC',
    symbol: 'GTCO',
    side: OrderSide.SELL,
    quantity: 100n,
    type: OrderType.MARKET,
    timeInForce: TimeInForce.IOC,
    filledQuantity: 40n,
    createdAt: { seconds: 1_795_194_753n, nanos: 999_999_999 },
    updatedAt: { seconds: 1_795_194_753n },
    averageFillPriceKoboDecimal: '25.5',
  });
  assert.equal(
    encodeOrder(order),
    '{"object":"order","id":"ord_abcdefghijklmnopqrst","state":"partially_filled","account":"ABC","symbol":"GTCO",' +
      '"side":"sell","quantity":100,"type":"market","time_in_force":"ioc","price_kobo":null,"filled_quantity":40,' +
      '"exchange_order_id":null,"reason":null,"reject_reason":null,"created_at":"2026-11-20T17:12:33Z",' +
      '"updated_at":"2026-11-20T17:12:33Z","filled_at":null,"average_fill_price_kobo_decimal":"25.5",' +
      '"client_reference":null}',
  );
});

test('an enumeration that is unspecified or unknown is null', () => {
  const json = JSON.parse(
    encodeOrder(create(OrderSchema, { rejectReason: OrderRejectReason.UNSPECIFIED, side: 99 as OrderSide })),
  );
  assert.deepEqual([json.state, json.reject_reason, json.side], [null, null, null]);
});

test('whole numbers are written with every digit', () => {
  const estimate = create(OrderEstimateSchema, {
    amountKobo: 100_000_000_000_000_001n,
    totalKobo: -9_223_372_036_854_775_808n,
  });
  const text = compileEncoder(OrderEstimateSchema)(estimate);
  assert.ok(text.includes('"amount_kobo":100000000000000001,'));
  assert.ok(text.endsWith('"total_kobo":-9223372036854775808}'));
});

test('lists and the messages in them are written whole', () => {
  const encode = compileEncoder(ListOrdersResponseSchema);
  const page = create(ListOrdersResponseSchema, { hasMore: true, nextCursor: 'c', data: [{ id: 'a' }, { id: 'b' }] });
  const json = JSON.parse(encode(page));
  assert.deepEqual(Object.keys(json), ['object', 'has_more', 'next_cursor', 'data']);
  assert.deepEqual(
    json.data.map((each: { id: string }) => each.id),
    ['a', 'b'],
  );
  assert.equal(
    encode(create(ListOrdersResponseSchema)),
    '{"object":"list","has_more":false,"next_cursor":null,"data":[]}',
  );
});

test('any text is written so that JSON.parse gives it back', () => {
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('"', '\\', '\n', '\u0000', '\u007f', '\u2028', 'é', 'a') }),
  );
  fc.assert(
    fc.property(text, (value) => {
      assert.equal(JSON.parse(quote(value)), value);
      assert.equal(quote(value), JSON.stringify(value));
    }),
    { numRuns: 2_000 },
  );
  assert.equal(quote('\ud800'), '"\\ud800"');
});

test('any order is written so that JSON.parse gives its fields back', () => {
  const optionalText = fc.option(fc.string({ unit: 'binary' }), { nil: undefined });
  const seconds = fc.bigInt(-62_135_596_800n, 253_402_300_799n);
  const arbitrary = fc.record({
    id: fc.string(),
    state: fc.integer({ min: 1, max: 9 }),
    quantity: fc.bigInt(0n, BigInt(Number.MAX_SAFE_INTEGER)),
    priceKobo: fc.option(fc.bigInt(0n, 1_000_000_000n), { nil: undefined }),
    reason: optionalText,
    clientReference: optionalText,
    createdAt: fc.record({ seconds, nanos: fc.integer({ min: 0, max: 999_999_999 }) }),
  });
  fc.assert(
    fc.property(arbitrary, (init) => {
      const json = JSON.parse(encodeOrder(create(OrderSchema, init as MessageInitShape<typeof OrderSchema>)));
      assert.equal(json.id, init.id);
      assert.equal(json.state, OrderState[init.state]?.toLowerCase());
      assert.equal(json.quantity, Number(init.quantity));
      assert.equal(json.price_kobo, init.priceKobo === undefined ? null : Number(init.priceKobo));
      assert.equal(json.reason, init.reason ?? null);
      assert.equal(json.client_reference, init.clientReference ?? null);
      const iso = new Date(Number(init.createdAt.seconds) * 1_000).toISOString();
      assert.equal(json.created_at, iso.replace('.000Z', 'Z'));
    }),
    { numRuns: 500 },
  );
});

test('times before 1970 are cut off downwards, and impossible ones are not written', () => {
  const at = (seconds: bigint, nanos = 0) =>
    formatTimestamp({ $typeName: 'google.protobuf.Timestamp', seconds, nanos });
  assert.equal(at(-1n, 999_999_999), '1969-12-31T23:59:59Z');
  assert.equal(at(-86_400n), '1969-12-31T00:00:00Z');
  assert.throws(() => at(253_402_300_800n), RangeError);
  assert.throws(() => at(0n, -1), RangeError);
});

/** As a relay stored it once: members, spaces and escapes another release chose. */
const storedText =
  '{"object":"event", "id":"msg_0123456789abcdef01234567","type":"order.filled","timestamp":"2026-11-20T17:12:33Z",' +
  '"version":7,"later_member":{"x":[1.5]},"data":{"object":"order","id":"ord_abcdefghijklmnopqrst","state":"filled",' +
  '"quantity":9223372036854775807,"reason":"caf\\u00e9 — ok","reject_reason":"some_later_reason","side":"sell"}}';

test('a stored message is written byte for byte, at any place', () => {
  const event = storedMessage(EventSchema, Buffer.from(storedText));
  assert.equal(compileEncoder(EventSchema)(event), storedText);
  const page = create(ListEventsResponseSchema, { data: [event, event], nextCursor: 'c' });
  assert.equal(
    compileEncoder(ListEventsResponseSchema)(page),
    `{"object":"list","has_more":false,"next_cursor":"c","data":[${storedText},${storedText}]}`,
  );
});

test("an answer's bytes are the same text in UTF-8, whatever partners and stored events say", () => {
  const encode = compileEncoder(ListEventsResponseSchema);
  const encodeBytes = compileByteEncoder(ListEventsResponseSchema);
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme', maxLength: 100 }), (text, long) => {
      const order = withStoredNames(create(OrderSchema, { reason: text, clientReference: long }), { state: long });
      const written = create(EventSchema, {
        id: text,
        timestamp: { seconds: 0n },
        data: { case: 'order', value: order },
      });
      const stored = storedMessage(EventSchema, Buffer.from(JSON.stringify({ text, long })));
      const page = create(ListEventsResponseSchema, { data: [written, stored], nextCursor: long });
      const bytes = encodeBytes(page);
      assert.equal(Buffer.from(bytes, 'latin1').toString(), encode(page));
      assert.equal(bytes.length, Buffer.byteLength(encode(page)));
    }),
  );
});

test('a stored message is filled in for protocols that write fields', () => {
  const page = create(ListEventsResponseSchema, { data: [storedMessage(EventSchema, Buffer.from(storedText))] });
  materialize(ListEventsResponseSchema, page);
  const [event] = page.data;
  assert.ok(event?.data.case === 'order');
  assert.equal(event.version, 7n);
  assert.equal(event.timestamp?.seconds, 1_795_194_753n);
  assert.equal(event.data.value.quantity, 9_223_372_036_854_775_807n);
  assert.equal(event.data.value.reason, 'café — ok');
  assert.equal(event.data.value.side, OrderSide.SELL);
  assert.equal(event.data.value.rejectReason, OrderRejectReason.UNSPECIFIED, 'a later name has no number here');
});

test('an event of a kind this release does not know keeps everything else', () => {
  const event = decodeStored(EventSchema, Buffer.from('{"object":"event","id":"a","data":{"object":"mystery"}}'));
  assert.equal(event.id, 'a');
  assert.equal(event.data.case, undefined);
});

test('JSON that we wrote reads back as the message it was written from', () => {
  const event = create(EventSchema, {
    id: 'msg_1',
    type: 'order.pending',
    version: 3n,
    timestamp: { seconds: 5n },
    data: { case: 'order', value: create(OrderSchema, { id: 'ord_1', state: OrderState.PENDING, quantity: 5n }) },
  });
  assert.deepEqual(decodeStored(EventSchema, Buffer.from(compileEncoder(EventSchema)(event))), event);
});

test('a broken record is not read as something else', () => {
  assert.throws(() => decodeStored(EventSchema, Buffer.from('[]')));
  assert.throws(() => decodeStored(EventSchema, Buffer.from('{"id":1}')));
  assert.throws(() => decodeStored(EventSchema, Buffer.from('{"version":"7"}')));
});

test('a name that this version has no number for is written as it was stored, and travels as unspecified', () => {
  const stored = { state: 'on_hold', side: 'buy', rejectReason: 'a "new" one' };
  const order = withStoredNames(
    create(OrderSchema, {
      state: OrderState.UNSPECIFIED,
      side: OrderSide.BUY,
      rejectReason: OrderRejectReason.UNSPECIFIED,
      createdAt: { seconds: 0n },
      updatedAt: { seconds: 0n },
    }),
    stored,
  );
  const written = JSON.parse(encodeOrder(order));
  assert.deepEqual([written.state, written.side, written.type], ['on_hold', 'buy', null]);
  assert.equal(written.reject_reason, 'a "new" one');
  const sent = fromBinary(OrderSchema, toBinary(OrderSchema, order));
  assert.deepEqual([sent.state, sent.side, sent.rejectReason], [0, OrderSide.BUY, 0]);
  const event = create(EventSchema, { timestamp: { seconds: 0n }, data: { case: 'order', value: order } });
  assert.equal(JSON.parse(compileEncoder(EventSchema)(event)).data.state, 'on_hold');
  const key = withStoredNames(create(KeySchema, { scopes: [Scope.READ, 0, Scope.KEYS], createdAt: { seconds: 0n } }), {
    scopes: ['read', 'lend', 'keys'],
  });
  assert.deepEqual(JSON.parse(compileEncoder(KeySchema)(key)).scopes, ['read', 'lend', 'keys']);
});
