import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import {
  OrderType,
  Side,
  type SubmitOrderRequest,
  SubmitOrderRequestSchema,
  TimeInForce,
} from '../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  checkCount,
  checkPartner,
  instantMs,
  isWhole,
  positive,
  submissionFrom,
  text,
  whole,
} from '../../src/simulator/validation.ts';
import { RpcError } from '../../src/simulator/wire/rpc.ts';

const maxSafe = 2n ** 53n - 1n;

const good = {
  ...{ clientOrderId: 'ord_1', account: 'A1', symbol: 'UBA', side: Side.BUY, type: OrderType.LIMIT },
  ...{ timeInForce: TimeInForce.DAY, quantity: 5n, priceKobo: 1_000n },
};

/** The field that a check refuses; undefined: none. */
function refused(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    assert.ok(error instanceof RpcError && error.code === status.INVALID_ARGUMENT, String(error));
    return /^The value of (\S+) is not valid\.$/.exec(error.message)?.[1];
  }
}

describe('what the simulated broker takes for an order', () => {
  it('an order is read with all of its terms, and with its partner only if it names one', () => {
    const request = create(SubmitOrderRequestSchema, { ...good, timeInForce: TimeInForce.GTC });
    const expected = { ...good, timeInForce: TimeInForce.GTC, quantity: 5, priceKobo: 1_000 };
    assert.deepEqual(submissionFrom(request), expected);
    const market = { ...good, type: OrderType.MARKET, priceKobo: undefined };
    const read = submissionFrom(create(SubmitOrderRequestSchema, { ...market, partner: 'par_1' } as never));
    assert.deepEqual([read.priceKobo, read.type, read.partner], [null, OrderType.MARKET, 'par_1']);
  });

  it('an order that makes no sense is refused by the field that is wrong', () => {
    const long = (length: number) => 'x'.repeat(length);
    const cases: [Partial<Record<keyof SubmitOrderRequest, unknown>>, string | undefined][] = [
      [{ note: new Uint8Array(2_048) }, undefined],
      [{ note: new Uint8Array(2_049) }, 'note'],
      [{ side: Side.UNSPECIFIED }, 'side'],
      [{ side: 3 }, 'side'],
      [{ side: Side.SELL }, undefined],
      [{ type: OrderType.UNSPECIFIED }, 'type'],
      [{ type: 3 }, 'type'],
      [{ type: OrderType.MARKET }, 'price_kobo'],
      [{ priceKobo: undefined }, 'price_kobo'],
      [{ priceKobo: 0n }, 'price_kobo'],
      [{ priceKobo: 1n }, undefined],
      [{ timeInForce: TimeInForce.UNSPECIFIED }, 'time_in_force'],
      [{ timeInForce: TimeInForce.FOK }, undefined],
      [{ timeInForce: TimeInForce.FOK + 1 }, 'time_in_force'],
      [{ clientOrderId: long(64) }, undefined],
      [{ clientOrderId: long(65) }, 'client_order_id'],
      [{ clientOrderId: '' }, 'client_order_id'],
      [{ account: long(64) }, undefined],
      [{ account: long(65) }, 'account'],
      [{ account: 'a b' }, 'account'],
      [{ symbol: long(32) }, undefined],
      [{ symbol: long(33) }, 'symbol'],
      [{ quantity: 0n }, 'quantity'],
      [{ quantity: 1n }, undefined],
      [{ quantity: maxSafe }, undefined],
      [{ quantity: maxSafe + 1n }, 'quantity'],
      [{ partner: long(64) }, undefined],
      [{ partner: long(65) }, 'partner'],
      [{ partner: '' }, 'partner'],
    ];
    for (const [changes, expected] of cases) {
      const request = { ...create(SubmitOrderRequestSchema, good), ...changes } as SubmitOrderRequest;
      assert.equal(
        refused(() => submissionFrom(request)),
        expected,
        String(Object.entries(changes)).slice(0, 80),
      );
    }
  });
});

describe('what the simulated broker takes for a value', () => {
  it('a text is printable ASCII without spaces, of a length', () => {
    for (const [value, isGood] of [
      ['!~', true],
      ['', false],
      [' a', false],
      ['a\n', false],
      ['a\u007f', false],
      ['ä', false],
      ['abc', true],
      ['abcd', false],
    ] as const) {
      assert.equal(refused(() => text(value, 'field', 3)) === undefined, isGood, JSON.stringify(value));
    }
    assert.equal(text('abc', 'field', 3), 'abc');
  });

  it('a whole number begins with 0, a positive one with 1, and both are exact', () => {
    for (const [value, isWholeNumber, isPositive] of [
      [-1n, false, false],
      [0n, true, false],
      [1n, true, true],
      [maxSafe, true, true],
      [maxSafe + 1n, false, false],
    ] as const) {
      assert.equal(isWhole(value), isWholeNumber, String(value));
      assert.equal(
        refused(() => whole(value, 'w')),
        isWholeNumber ? undefined : 'w',
        String(value),
      );
      assert.equal(
        refused(() => positive(value, 'p')),
        isPositive ? undefined : 'p',
        String(value),
      );
    }
    assert.deepEqual([whole(7n, 'w'), positive(7n, 'p')], [7, 7]);
  });

  it('a count lies between 0 and its bound', () => {
    const refusals = [-1, 0, 10, 11].map((value) => refused(() => checkCount(value, 10, 'times')));
    assert.deepEqual(refusals, ['times', undefined, undefined, 'times']);
  });

  it('a directive is of a partner with a name, or of the operator without one', () => {
    for (const [partner, isGood] of [
      ['', true],
      ['par_1', true],
      ['x'.repeat(64), true],
      ['x'.repeat(65), false],
      ['a b', false],
    ] as const) {
      assert.equal(refused(() => checkPartner({ partner })) === undefined, isGood, partner);
    }
  });

  it('an instant is in milliseconds, if there is one', () => {
    assert.deepEqual([instantMs(undefined), instantMs(timestampFromMs(1_500))], [undefined, 1_500]);
  });
});
