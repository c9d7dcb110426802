/** Which of our messages a message of the exchange is about, and which orders a gateway may submit. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { orderFrom } from '../../../src/fix-adapter/orders/order-request.ts';
import {
  isOfQuestion,
  isOfSession,
  isSupported,
  mayBeOfOrder,
  orderIdOf,
  orderIdsOf,
  orderIdsOfUnsupported,
  rejectedName,
  rejectedNumber,
} from '../../../src/fix-adapter/orders/references.ts';
import { type Field, FixMessage } from '../../../src/fix-adapter/wire/message.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { OrderType, Side, SubmitOrderRequestSchema, TimeInForce } from '../../../src/gen/marina/broker/v1/orders_pb.ts';

const message = (type: string, ...fields: Field[]) => new FixMessage([[tags.MsgType, type], ...fields]);
const { ClOrdID, OrigClOrdID, RefMsgType, BusinessRejectRefID, RefSeqNum } = tags;

describe('a message of the exchange', () => {
  it('a message of the exchange is of the order by its own name, by that of the order before, or by the name of what was rejected', () => {
    const cases: readonly [FixMessage, string | undefined, readonly string[]][] = [
      [message('8', [ClOrdID, 'ord_a']), 'ord_a', ['ord_a']],
      [message('8', [ClOrdID, 'ord_a.c1'], [OrigClOrdID, 'ord_a']), 'ord_a', ['ord_a']],
      [message('8', [ClOrdID, 'ord_a'], [OrigClOrdID, 'ord_b']), 'ord_a', ['ord_a', 'ord_b']],
      [message('8', [OrigClOrdID, 'ord_b']), 'ord_b', ['ord_b']],
      [message('8', [RefMsgType, 'D'], [BusinessRejectRefID, 'ord_a']), undefined, []],
      [message('j', [RefMsgType, 'D'], [BusinessRejectRefID, 'ord_a']), 'ord_a', ['ord_a']],
      [message('j', [RefMsgType, 'F'], [BusinessRejectRefID, 'ord_a.c2']), 'ord_a', ['ord_a']],
      // A question has the order's name too, and its rejection says nothing about the order.
      [message('j', [RefMsgType, 'H'], [BusinessRejectRefID, 'ord_a']), undefined, []],
      [message('j', [BusinessRejectRefID, 'ord_a']), undefined, []],
      [message('3', [RefMsgType, 'D'], [BusinessRejectRefID, 'ord_a']), undefined, []],
      [message('8'), undefined, []],
    ];
    for (const [given, id, ids] of cases) {
      assert.deepEqual([orderIdOf(given), orderIdsOf(given)], [id, ids], JSON.stringify(given.fields));
    }
  });

  it('a message of the exchange is supported if the record can apply it, and of an order, a question or the session by what it rejects', () => {
    for (const [type, expected] of [
      ['8', true],
      ['9', true],
      ['3', true],
      ['j', true],
      ['B', false],
      ['AE', false],
    ] as const) {
      assert.equal(isSupported(message(type)), expected, type);
    }
    for (const [type, isQuestion, isSession] of [
      ['H', true, false],
      ['AF', true, false],
      ['D', false, false],
      ['F', false, false],
      ...(['0', '1', '2', '3', '4', '5', 'A'] as const).map((each) => [each, false, true] as const),
    ] as const) {
      const reject = message('3', [RefMsgType, type]);
      assert.deepEqual([isOfQuestion(reject), isOfSession(reject)], [isQuestion, isSession], type);
    }
    assert.deepEqual([isOfQuestion(message('3')), isOfSession(message('3'))], [false, false]);
  });

  it('a message of the exchange rejects the message with a number, which only a reject has', () => {
    for (const [type, text, expected] of [
      ['3', '7', 7n],
      ['j', '007', 7n],
      ['3', `${'0'.repeat(15)}7`, 7n],
      ['3', '999999999999999', 999_999_999_999_999n],
      ['3', '1000000000000000', undefined],
      ['3', '7x', undefined],
      ['8', '7', undefined],
    ] as const) {
      assert.equal(rejectedNumber(message(type, [RefSeqNum, text])), expected, `${type} ${text}`);
    }
    assert.equal(rejectedNumber(message('3')), undefined);
    assert.equal(rejectedName(message('j', [RefMsgType, 'D'])), undefined);
  });

  it('a message of the exchange names each order once over all of its groups if its type is not supported, up to a bound that it says', () => {
    const names = (count: number): Field[] => Array.from({ length: count }, (_, at) => [ClOrdID, `ord_${at}`]);
    const few = message('U', [ClOrdID, 'ord_a'], [OrigClOrdID, 'ord_b'], [ClOrdID, 'ord_a.c1']);
    assert.deepEqual(orderIdsOfUnsupported(few), { ids: ['ord_a', 'ord_b'], isComplete: true });
    const full = orderIdsOfUnsupported(message('U', ...names(50)));
    assert.deepEqual([full.ids.length, full.isComplete], [50, true]);
    const over = orderIdsOfUnsupported(message('U', ...names(51)));
    assert.deepEqual([over.ids.length, over.isComplete], [50, false]);
    for (const tag of [ClOrdID, OrigClOrdID, tags.OrderID, tags.ExecID, tags.Side]) {
      assert.equal(mayBeOfOrder(message('U', [tag, '1'])), true, `${tag}`);
    }
    assert.equal(mayBeOfOrder(message('U', [tags.Symbol, 'A'])), false);
  });
});

describe('an order that a gateway submits', () => {
  const request = (more: object = {}) =>
    create(SubmitOrderRequestSchema, {
      ...{ clientOrderId: 'ord_a', account: 'A1', symbol: 'AAA', side: Side.BUY, quantity: 5n, type: OrderType.LIMIT },
      ...{ timeInForce: TimeInForce.DAY, priceKobo: 100n, notAfter: timestampFromMs(9), ...more },
    });

  it('an order that a gateway submits is taken with its own fields, and begins as being sent', () => {
    const row = orderFrom(request({ partner: 'P', note: Buffer.from('n') }), 7, 55n, 70);
    const { id, clOrdId, account, symbol, side, quantity, type, priceKobo, notAfter, receivedAt, state, partner } = row;
    assert.deepEqual([id, clOrdId, account, symbol, side, quantity], ['ord_a', 'ord_a', 'A1', 'AAA', 'buy', 5n]);
    assert.deepEqual([type, priceKobo, notAfter, receivedAt, state, partner], ['limit', 100n, 9, 7, 'sending', 'P']);
    assert.deepEqual([row.referenceKobo, row.filled, row.number, row.timeInForce], [55n, 0n, 0n, 'day']);
    const id20 = `ord_${'a'.repeat(20)}`;
    assert.equal(orderFrom(request({ clientOrderId: id20 }), 7, null, 20).clOrdId, 'a'.repeat(20));
  });

  it('an order that a gateway submits is refused for each field that no order can have, exactly at its bound', () => {
    const market = { type: OrderType.MARKET, priceKobo: undefined };
    for (const [more, wrong] of [
      [{ quantity: 1n }, undefined],
      [{ quantity: 0n }, 'quantity'],
      [{ quantity: 100_000_000n }, undefined],
      [{ quantity: 100_000_001n }, 'quantity'],
      [{ priceKobo: 1n }, undefined],
      [{ priceKobo: 0n }, 'price_kobo'],
      [{ priceKobo: undefined }, 'price_kobo'],
      [market, undefined],
      [{ ...market, priceKobo: 1n }, 'price_kobo'],
      [{ account: 'A'.repeat(64) }, undefined],
      [{ account: 'A'.repeat(65) }, 'account'],
      [{ account: '' }, 'account'],
      [{ account: 'A 1' }, 'account'],
      [{ symbol: 'A'.repeat(32) }, undefined],
      [{ symbol: 'A'.repeat(33) }, 'symbol'],
      [{ symbol: 'Ä' }, 'symbol'],
      [{ clientOrderId: `x${'a'.repeat(63)}` }, undefined],
      [{ clientOrderId: `x${'a'.repeat(64)}` }, 'client_order_id'],
      // The name of a cancel would be taken for that of another order.
      [{ clientOrderId: 'ord_a.c1' }, 'client_order_id'],
      [{ note: Buffer.alloc(2_048) }, undefined],
      [{ note: Buffer.alloc(2_049) }, 'note'],
      [{ partner: 'p'.repeat(65) }, 'partner'],
      [{ side: Side.UNSPECIFIED }, 'side'],
      [{ type: OrderType.UNSPECIFIED, priceKobo: undefined }, 'type'],
      [{ timeInForce: TimeInForce.UNSPECIFIED }, 'time_in_force'],
      [{ notAfter: undefined }, 'not_after'],
    ] as const) {
      const take = () => orderFrom(request(more), 7, null, 70);
      if (wrong === undefined) take();
      else assert.throws(take, (error: Error) => error.message.startsWith(`${wrong} `), `${wrong}`);
    }
  });
});
