import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { ApiError } from '../../../src/gateway/edge/errors.ts';
import { compileFieldRules, compilePattern, readCondition } from '../../../src/gateway/edge/field-rules.ts';
import { ListEventsRequestSchema } from '../../../src/gen/marina/gateway/v1/events_pb.ts';
import { CreateKeyRequestSchema } from '../../../src/gen/marina/gateway/v1/keys_pb.ts';
import {
  CreateOrderRequestSchema,
  GetOrderRequestSchema,
  ListOrdersRequestSchema,
  OrderSide,
  OrderType,
  TimeInForce,
} from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';

const checkOrder = compileFieldRules(CreateOrderRequestSchema, CreateOrderRequestSchema.fields);
const checkList = compileFieldRules(ListOrdersRequestSchema, ListOrdersRequestSchema.fields);
const checkEvents = compileFieldRules(ListEventsRequestSchema, ListEventsRequestSchema.fields);
const checkGet = compileFieldRules(GetOrderRequestSchema, GetOrderRequestSchema.fields);

type OrderInit = MessageInitShape<typeof CreateOrderRequestSchema>;

const limitOrder: OrderInit = {
  account: 'abc',
  symbol: 'brk.b-1',
  side: OrderSide.BUY,
  quantity: 1n,
  type: OrderType.LIMIT,
  priceKobo: 1n,
};

function refusal(attempt: () => void): ApiError | undefined {
  try {
    attempt();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error;
  }
  return undefined;
}

/** Returns the fault of a limit order changed so. */
function wrong(change: OrderInit): string | undefined {
  const error = refusal(() => checkOrder(create(CreateOrderRequestSchema, { ...limitOrder, ...change } as OrderInit)));
  return error && `${error.code} ${error.param}`;
}

test('a good order is settled: upper-case where case does not matter, defaults in place of nothing', () => {
  const message = create(CreateOrderRequestSchema, limitOrder);
  checkOrder(message);
  assert.deepEqual(
    message,
    create(CreateOrderRequestSchema, {
      ...limitOrder,
      account: 'ABC',
      symbol: 'BRK.B-1',
      timeInForce: TimeInForce.DAY,
    } as OrderInit),
  );
  assert.ok(!('clientReference' in message), 'absent stays absent');
});

test('a page has 25 items unless it says otherwise', () => {
  const message = create(ListEventsRequestSchema);
  checkEvents(message);
  assert.equal(message.limit, 25);
});

const cases: readonly [string, OrderInit, string | undefined][] = [
  ['account absent', { account: undefined }, 'missing_required_field account'],
  ['account empty', { account: '' }, 'invalid_request account'],
  ['account of 64', { account: 'a'.repeat(64) }, undefined],
  ['account of 65', { account: 'a'.repeat(65) }, 'invalid_request account'],
  ['account with a line end', { account: 'abc\n' }, 'invalid_request account'],
  ['account outside ASCII', { account: 'abcé' }, 'invalid_request account'],
  ['symbol of 20', { symbol: 'x'.repeat(20) }, undefined],
  ['symbol of 21', { symbol: 'x'.repeat(21) }, 'invalid_request symbol'],
  ['symbol with a space', { symbol: 'A B' }, 'invalid_request symbol'],
  ['side unspecified', { side: OrderSide.UNSPECIFIED }, 'invalid_request side'],
  ['side unknown', { side: 7 as OrderSide }, 'invalid_request side'],
  ['quantity 0', { quantity: 0n }, 'invalid_request quantity'],
  ['quantity -1', { quantity: -1n }, 'invalid_request quantity'],
  ['quantity at its bound', { quantity: 100_000_000n }, undefined],
  ['quantity past it', { quantity: 100_000_001n }, 'invalid_request quantity'],
  ['quantity past 2^53', { quantity: 2n ** 53n }, 'invalid_request quantity'],
  ['price absent on a limit order', { priceKobo: undefined }, 'missing_required_field price_kobo'],
  ['price 0', { priceKobo: 0n }, 'invalid_request price_kobo'],
  ['price at its bound', { priceKobo: 1_000_000_000n }, undefined],
  ['price past it', { priceKobo: 1_000_000_001n }, 'invalid_request price_kobo'],
  ['price on a market order', { type: OrderType.MARKET }, 'invalid_request price_kobo'],
  ['market order without price', { type: OrderType.MARKET, priceKobo: undefined }, undefined],
  ['reference empty', { clientReference: '' }, 'invalid_request client_reference'],
  ['reference of 64', { clientReference: '~ '.repeat(32) }, undefined],
  ['reference of 65', { clientReference: 'x'.repeat(65) }, 'invalid_request client_reference'],
  ['reference with a tab', { clientReference: 'a\tb' }, 'invalid_request client_reference'],
  ['reference with NUL', { clientReference: 'a\u0000' }, 'invalid_request client_reference'],
];

for (const [name, change, expected] of cases) {
  test(`${name}: ${expected ?? 'taken'}`, () => assert.equal(wrong(change), expected));
}

test('of several mistakes the earliest stage is reported, then the order of the proto', () => {
  assert.equal(wrong({ account: '', quantity: undefined, symbol: undefined }), 'missing_required_field symbol');
  assert.equal(wrong({ account: undefined, side: 9 as OrderSide }), 'invalid_request side');
  assert.equal(wrong({ priceKobo: undefined, quantity: 0n }), 'missing_required_field price_kobo');
  assert.equal(wrong({ quantity: 0n, account: '-' }), 'invalid_request account');
});

test('messages say what the value must be', () => {
  const message = (init: OrderInit) =>
    refusal(() => checkOrder(create(CreateOrderRequestSchema, { ...limitOrder, ...init } as OrderInit)))?.message;
  assert.equal(message({ quantity: 0n }), '`quantity` must be 1 to 100,000,000.');
  assert.equal(message({ symbol: '!' }), '`symbol` must be 1 to 20 letters, digits, dots and hyphens.');
  assert.equal(message({ side: undefined }), '`side` is required.');
  assert.equal(message({ priceKobo: undefined }), '`price_kobo` is required when `type` is `limit`.');
  assert.equal(message({ type: OrderType.MARKET }), '`price_kobo` must be absent unless `type` is `limit`.');
});

test('a field can go with one value of another field or with several', () => {
  const read = (text: string) => readCondition(text, CreateOrderRequestSchema.fields);
  assert.deepEqual(read('type=ORDER_TYPE_LIMIT').words, ['limit']);
  assert.deepEqual(read('type=ORDER_TYPE_LIMIT|ORDER_TYPE_MARKET').words, ['limit', 'market']);
  for (const text of ['type=', 'type=LIMIT', 'type=ORDER_TYPE_LIMIT|', 'symbol=ORDER_TYPE_LIMIT', 'kind=X', 'type']) {
    assert.throws(() => read(text), /no such field and value/);
  }
});

test('a malformed id is answered as an object that is not there', () => {
  for (const id of [
    '',
    'ord_',
    'ord_ABCDEFGHIJKLMNOPQRST',
    'app_abcdefghijklmnopqrst',
    'ord_abcdefghijklmnopqrs1',
    '\u0000',
  ]) {
    const error = refusal(() => checkGet(create(GetOrderRequestSchema, { id })));
    assert.deepEqual([error?.code, error?.param], ['order_not_found', undefined], id);
  }
  assert.equal(refusal(() => checkGet(create(GetOrderRequestSchema)))?.code, 'missing_required_field');
});

test('a list is bounded by its limit and its cursor', () => {
  const list = (init: MessageInitShape<typeof ListOrdersRequestSchema>) =>
    refusal(() => checkList(create(ListOrdersRequestSchema, init)))?.param;
  assert.equal(list({ limit: 0 }), 'limit');
  assert.equal(list({ limit: 101 }), 'limit');
  assert.equal(list({ limit: 1 }), undefined);
  assert.equal(list({ limit: 100 }), undefined);
  assert.equal(list({ cursor: '' }), 'cursor');
  assert.equal(list({ cursor: 'x'.repeat(512) }), undefined);
  assert.equal(list({ cursor: 'x'.repeat(513) }), 'cursor');
  assert.equal(list({ cursor: 'é'.repeat(257) }), 'cursor', 'bytes are counted, not characters');
  assert.equal(list({ updatedSince: { seconds: 253_402_300_800n } }), 'updated_since');
});

test('a pattern that could take long over a crafted text stops the start', () => {
  for (const pattern of ['a*', 'a+', '(a{1,9}){1,9}', '(ab)?', 'a{2,}']) assert.throws(() => compilePattern(pattern));
  for (const pattern of ['[a*+]{1,3}', '\\+\\*', 'a{1,3}b?', '(?:x|y)'])
    assert.doesNotThrow(() => compilePattern(pattern));
  const matches = compilePattern('a|b');
  assert.deepEqual(
    [matches('a'), matches('b'), matches('ax'), matches('xb'), matches('a\n')],
    [true, true, false, false, false],
  );
});

test('a list that must have something in it is missing when it is empty, and is looked at before its items', () => {
  const check = compileFieldRules(CreateKeyRequestSchema, CreateKeyRequestSchema.fields);
  const code = (init: MessageInitShape<typeof CreateKeyRequestSchema>) => {
    const error = refusal(() => check(create(CreateKeyRequestSchema, init)));
    return error && `${error.code} ${error.param}`;
  };
  const scopes = [Scope.READ];
  assert.equal(code({ scopes }), undefined);
  assert.equal(code({}), 'missing_required_field scopes');
  assert.equal(code({ scopes: Array<Scope>(10).fill(Scope.READ) }), undefined);
  assert.equal(code({ scopes: Array<Scope>(11).fill(Scope.READ) }), 'invalid_request scopes');
  assert.equal(code({ scopes: [Scope.READ, Scope.UNSPECIFIED] }), 'invalid_request scopes[1]');
  assert.equal(code({ scopes, addresses: [''] }), 'invalid_request addresses[0]');
  assert.equal(code({ scopes, addresses: ['', ...Array(20).fill('::1')] }), 'invalid_request addresses');
});
