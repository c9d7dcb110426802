import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { shownMessage, storedFields } from '../../../src/gateway/trading/shown-message.ts';
import { KeySchema } from '../../../src/gen/marina/gateway/v1/keys_pb.ts';
import {
  ListOrdersRequestSchema,
  OrderSchema,
  OrderSide,
  OrderState,
} from '../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { storedNames } from '../../../src/kit/enums.ts';

const at = Date.UTC(2026, 2, 2, 9, 30, 1, 999);
const key = {
  ...{ id: 'key_a', scopes: ['read', 'trade'], addresses: ['192.0.2.1'], createdAt: at, lastUsedAt: null },
  ...{ revokedAt: undefined, createdBy: 'key_b' },
};

/** The object's message, with fields that the compiler is not asked about. */
const shown = (object: object, more?: object) => shownMessage(KeySchema, object as never, more as never);
const namesIn = (message: object) => (message as { [storedNames]?: unknown })[storedNames];

describe('the message that shows an object', () => {
  it('a message has the fields of the object, instants to the second and names as numbers', () => {
    const message = shown(key);
    assert.deepEqual(
      [message.id, message.scopes, message.addresses, message.createdBy],
      ['key_a', [Scope.READ, Scope.TRADE], ['192.0.2.1'], 'key_b'],
    );
    assert.deepEqual([message.createdAt?.seconds, message.createdAt?.nanos], [BigInt(Math.floor(at / 1_000)), 0]);
    assert.deepEqual([message.lastUsedAt, message.revokedAt, namesIn(message)], [undefined, undefined, undefined]);
  });

  it('a message has nothing that the object has and its schema has not', () => {
    assert.ok(!('secret' in shown({ ...key, secret: 'canary' })));
  });

  it('a given field comes before the one of the object, also if it is none', () => {
    assert.equal(shown(key, { id: 'key_c' }).id, 'key_c');
    assert.equal(shown(key, { createdBy: undefined }).createdBy, undefined);
    assert.equal(shown(key, { createdBy: null }).createdBy, undefined);
  });

  it('a name of another version is kept for REST, and its number is 0', () => {
    const message = shown({ ...key, scopes: ['read', 'later'] });
    assert.deepEqual([message.scopes, namesIn(message)], [[Scope.READ, 0], { scopes: ['read', 'later'] }]);
    const order = shownMessage(OrderSchema, { state: 'later', side: 'buy', type: 'earlier' } as never);
    assert.deepEqual([order.state, order.side, order.type], [0, OrderSide.BUY, 0]);
    assert.deepEqual(namesIn(order), { state: 'later', type: 'earlier' });
    assert.equal(namesIn(shown({ ...key, scopes: [] })), undefined);
  });
});

describe('the fields of a request as in rows', () => {
  it('a field is its value, an instant in milliseconds or a name, and null if it is absent', () => {
    const request = create(ListOrdersRequestSchema, {
      ...{ state: OrderState.PARTIALLY_FILLED, account: 'A1', limit: 7 },
      updatedSince: { seconds: 1_772_443_800n, nanos: 500_000_000 },
    });
    const { $typeName: _, ...fields } = storedFields(ListOrdersRequestSchema, request) as Record<string, unknown>;
    assert.deepEqual(fields, {
      ...{ state: 'partially_filled', account: 'A1', symbol: null, clientReference: null },
      ...{ updatedSince: 1_772_443_800_500, limit: 7, cursor: null },
    });
  });

  it('a field with its empty value is present', () => {
    assert.equal(storedFields(ListOrdersRequestSchema, create(ListOrdersRequestSchema, { account: '' })).account, '');
  });

  it('a number that an enumeration does not have is an error', () => {
    for (const state of [0, 999]) {
      const request = create(ListOrdersRequestSchema, { state: state as OrderState });
      assert.throws(() => storedFields(ListOrdersRequestSchema, request), /OrderState has no value/);
    }
  });
});
