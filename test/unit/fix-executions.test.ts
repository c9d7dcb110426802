import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { applyMessages, cancelIdOf } from '../../src/fix/orders/apply-messages.ts';
import { applyExecution, type Message } from '../../src/fix/orders/executions.ts';
import type { FixOrder, FixOrderState } from '../../src/fix/store/table.ts';
import { toKobo } from '../../src/fix/wire/prices.ts';
import { tags } from '../../src/fix/wire/tags.ts';

const context = { toKobo: (text: string) => toKobo(text, 'naira'), at: 1_000 };

function order(more: Partial<FixOrder> = {}): FixOrder {
  return {
    ...{ id: 'ord_a', account: 'NG-1', symbol: 'MTNN', side: 'buy', quantity: 100n, type: 'limit', timeInForce: 'day' },
    ...{ priceKobo: 100n, notAfter: 0, receivedAt: 0, note: Buffer.alloc(0), startedAt: 7, number: 12n },
    ...{ state: 'sending', exchangeOrderId: '', filled: 0n },
    ...more,
  } as FixOrder;
}

function message(fields: Readonly<Record<number, string>>, type = '8'): Message {
  return { type, get: (tag) => fields[tag] };
}

function report(execType: string, more: Readonly<Record<number, string>> = {}): Message {
  return message({
    [tags.ExecType]: execType,
    [tags.ExecID]: 'e1',
    [tags.OrderID]: 'X1',
    [tags.ClOrdID]: 'ord_a',
    ...more,
  });
}

const trade = (quantity: string, price: string) => report('F', { [tags.LastQty]: quantity, [tags.LastPx]: price });
const counted = (quantity: string, cumQty: string) =>
  report('F', { [tags.LastQty]: quantity, [tags.LastPx]: '1.00', [tags.CumQty]: cumQty });
const status = (ordStatus: string, cumQty = '0', more = {}) =>
  report('I', { [tags.OrdStatus]: ordStatus, [tags.CumQty]: cumQty, ...more });

/** The kinds of the reports, the state after them, and the finding. */
function result(row: FixOrder, received: Message) {
  const { order: after, reports, finding, isUnknown } = applyExecution(row, received, context);
  return [reports.map(({ kind }) => kind).join(' '), after.state, finding?.what ?? (isUnknown ? 'unknown' : '')];
}

describe('what an ExecutionReport says of an order', () => {
  const cases: readonly [string, Partial<FixOrder>, Message, readonly [string, FixOrderState, string]][] = [
    ['new', {}, report('0'), ['accepted', 'open', '']],
    ['new again', { state: 'open' }, report('0'), ['', 'open', '']],
    ['pending new', {}, report('A'), ['', 'sending', '']],
    ['rejected', {}, report('8', { [tags.OrdRejReason]: '2' }), ['rejected', 'final', '']],
    [
      'a duplicate, which the exchange has once',
      {},
      report('8', { [tags.OrdRejReason]: '6' }),
      ['', 'sending', 'not_understood'],
    ],
    ['given up after it was accepted', { state: 'open' }, report('8'), ['rejected', 'final', '']],
    ['a trade before its acceptance', {}, trade('40', '1.00'), ['accepted trade', 'open', '']],
    ['the last trade', { state: 'open', filled: 60n }, trade('40', '1.00'), ['trade', 'final', '']],
    ['more trades than shares', { state: 'open', filled: 80n }, trade('40', '1.00'), ['trade', 'final', 'overfilled']],
    ['a trade after the cancel', { state: 'final', filled: 10n }, trade('40', '1.00'), ['trade', 'final', '']],
    ['a trade at no whole kobo', { state: 'open' }, trade('40', '1.005'), ['', 'open', 'not_understood']],
    ['a trade of no shares', { state: 'open' }, trade('0', '1.00'), ['', 'open', 'not_understood']],
    ['cancelled', { state: 'open' }, report('4'), ['cancelled', 'final', '']],
    ['cancelled before its acceptance', {}, report('4'), ['accepted cancelled', 'final', '']],
    ['cancelled again', { state: 'final' }, report('4'), ['', 'final', '']],
    ['expired', { state: 'open' }, report('C'), ['expired', 'final', '']],
    ['done for the day', { state: 'open' }, report('3'), ['expired', 'final', '']],
    ['done for the day, and good till cancelled', { state: 'open', timeInForce: 'gtc' }, report('3'), ['', 'open', '']],
    ['pending cancel', { state: 'open' }, report('6'), ['', 'open', '']],
    ['a trade taken back', { state: 'open', filled: 40n }, report('H'), ['', 'open', 'trade_cancelled']],
    ['a trade corrected', { state: 'open', filled: 40n }, report('G'), ['', 'open', 'trade_corrected']],
    ['restated as it was', { state: 'open' }, report('D', { [tags.OrderQty]: '100' }), ['', 'open', '']],
    ['restated with fewer shares', { state: 'open' }, report('D', { [tags.OrderQty]: '90' }), ['', 'open', 'restated']],
    ['restated at another price', {}, report('D', { [tags.Price]: '1.01' }), ['accepted', 'open', 'restated']],
    [
      'restated, with trades that did not come',
      {},
      report('D', { [tags.CumQty]: '9' }),
      ['accepted', 'open', 'trades_missing'],
    ],
    ['replaced', { state: 'open' }, report('5'), ['', 'open', 'restated']],
    [
      'a trade behind one that did not come',
      { state: 'open' },
      counted('40', '60'),
      ['trade', 'open', 'trades_missing'],
    ],
    [
      'a trade that the exchange does not count',
      { state: 'open', filled: 40n },
      counted('40', '40'),
      ['trade', 'open', 'counted_twice'],
    ],
    ['a trade, with its count', { state: 'open', filled: 40n }, counted('40', '80'), ['trade', 'open', '']],
    ['what nobody knows', { state: 'open' }, report('Z'), ['', 'open', 'not_understood']],
    ['an order that was thought to be absent', { state: 'unsent' }, report('0'), ['accepted', 'open', 'revived']],
    ['status: new', {}, status('0'), ['accepted', 'open', '']],
    ['status: new, as is known', { state: 'open' }, status('0'), ['', 'open', '']],
    ['status: not there', {}, status('8', '0', { [tags.OrdRejReason]: '5' }), ['', 'sending', 'unknown']],
    ['status: rejected', {}, status('8', '0', { [tags.OrdRejReason]: '2' }), ['rejected', 'final', '']],
    ['status: rejected, of an order that was accepted', { state: 'open' }, status('8'), ['', 'open', 'unknown']],
    ['status: rejected for no reason, and no rejection came', {}, status('8'), ['', 'sending', 'unknown']],
    ['status: cancelled meanwhile', { state: 'open', filled: 40n }, status('4', '40'), ['cancelled', 'final', '']],
    ['status: cancelled, without an earlier report', {}, status('4'), ['accepted cancelled', 'final', '']],
    ['status: trades that did not come', { state: 'open' }, status('1', '40'), ['', 'open', 'trades_missing']],
    ['status: filled, and the trades did not come', {}, status('2', '100'), ['accepted', 'open', 'trades_missing']],
    ['status: filled, as is known', { state: 'final', filled: 100n }, status('2', '100'), ['', 'final', '']],
    [
      'status without its count',
      { state: 'open' },
      report('I', { [tags.OrdStatus]: '1' }),
      ['', 'open', 'not_understood'],
    ],
  ];
  for (const [name, before, received, expected] of cases) {
    it(name, () => assert.deepEqual(result(order(before), received), expected));
  }

  it('is counted once by its ExecID, in the order in which it came, whatever is repeated', () => {
    const executions = fc.array(
      fc.record({ id: fc.integer({ min: 1, max: 8 }), quantity: fc.integer({ min: 1, max: 9 }) }),
    );
    fc.assert(
      fc.property(executions, (all) => {
        const received = all
          .map(({ quantity }) => trade(String(quantity), '1.00'))
          .map((one, at) => ({
            ...one,
            get: (tag: number) => (tag === tags.ExecID ? `e${all[at]?.id}` : one.get(tag)),
          }));
        const { changes } = applyMessages(
          received,
          {
            startedAt: 7,
            orders: [order({ state: 'open', quantity: 1_000n })],
            cancels: [],
            execIds: new Map([['ord_a', new Set(['e1'])]]),
          },
          { ...context, timeOf: () => 5, now: 9 },
        );
        const first = all.filter(({ id }, at) => id !== 1 && all.findIndex((one) => one.id === id) === at);
        assert.deepEqual(
          changes.reports.map(({ execId, quantity }) => [execId, quantity]),
          first.map(({ id, quantity }) => [`e${id}`, BigInt(quantity)]),
        );
        const filled = first.reduce((sum, { quantity }) => sum + BigInt(quantity), 0n);
        assert.equal(changes.orders[0]?.after.filled ?? 0n, filled);
      }),
    );
  });

  it('finds its order where it names the request to cancel, and ends that request', () => {
    const cancel = {
      id: cancelIdOf('ord_a', 1),
      orderId: 'ord_a',
      requestedAt: 0,
      startedAt: 7,
      number: 13n,
      state: 'sending',
    } as const;
    const received = report('4', { [tags.ClOrdID]: cancel.id, [tags.OrigClOrdID]: 'ord_a' });
    const { changes } = applyMessages(
      [received],
      { startedAt: 7, orders: [order({ state: 'open' })], cancels: [cancel], execIds: new Map() },
      { ...context, timeOf: () => 5, now: 9 },
    );
    assert.equal(changes.orders[0]?.after.state, 'final');
    assert.equal(changes.cancels[0]?.after.state, 'done');
  });

  it('finds its order by our own mark, whatever the exchange writes beside it', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], execIds: new Map() };
    const received = report('4', { [tags.ClOrdID]: cancelIdOf('ord_a', 2), [tags.OrigClOrdID]: 'NONE' });
    assert.equal(
      applyMessages([received], known, { ...context, timeOf: () => 5, now: 9 }).changes.orders[0]?.after.state,
      'final',
    );
  });

  it('that rejects a request to cancel rejects no order', () => {
    const row = { orderId: 'ord_a', requestedAt: 0, startedAt: 7, number: 13n } as const;
    const cancel = { ...row, id: cancelIdOf('ord_a', 1), state: 'sending' } as const;
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [cancel], execIds: new Map() };
    const received = report('8', { [tags.ClOrdID]: cancel.id });
    const { changes, result } = applyMessages([received], known, { ...context, timeOf: () => 5, now: 9 });
    assert.deepEqual([changes.orders, changes.reports], [[], []]);
    assert.equal(changes.cancels[0]?.after.state, 'refused');
    assert.equal(result.refusedCancels.length, 1);
    assert.equal(changes.findings[0]?.what, 'not_understood');
  });

  it('is known again by an ExecID that is longer than the record keeps', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], execIds: new Map() };
    const received = (end: string) =>
      report('F', { [tags.LastQty]: '10', [tags.LastPx]: '1.00', [tags.ExecID]: `${'e'.repeat(200)}${end}` });
    const { changes } = applyMessages([received('a'), received('a'), received('b')], known, {
      ...context,
      timeOf: () => 5,
      now: 9,
    });
    assert.equal(changes.reports.length, 2);
    for (const { execId } of changes.reports) assert.ok((execId ?? '').length <= 64);
  });

  it('about an order that is not ours is shown to an operator, unless a mass status names all of the firm', () => {
    const known = { startedAt: 7, orders: [], cancels: [], execIds: new Map() };
    const about = { ...context, timeOf: () => 5, now: 9 };
    assert.equal(applyMessages([report('0')], known, about).changes.findings[0]?.what, 'unknown_order');
    assert.deepEqual(applyMessages([report('I', { [tags.MassStatusReqID]: 'm' })], known, about).changes.findings, []);
  });

  it('as a reject of our message rejects the order with that number, of this numbering alone', () => {
    const received = message({ [tags.RefSeqNum]: '12', [tags.Text]: 'no' }, '3');
    const about = { ...context, timeOf: () => 5, now: 9 };
    const of = (startedAt: number) =>
      applyMessages([received], { startedAt, orders: [order()], cancels: [], execIds: new Map() }, about).changes
        .reports;
    assert.deepEqual(
      of(7).map(({ kind }) => kind),
      ['rejected'],
    );
    assert.deepEqual(of(8), []);
  });

  it('as a BusinessMessageReject rejects the order that it names, if it has no number', () => {
    const received = message({ [tags.BusinessRejectRefID]: 'ord_a', [tags.RefMsgType]: 'D', [tags.Text]: 'no' }, 'j');
    const known = { startedAt: 7, orders: [order()], cancels: [], execIds: new Map() };
    const { reports } = applyMessages([received], known, { ...context, timeOf: () => 5, now: 9 }).changes;
    assert.deepEqual(
      reports.map(({ kind }) => kind),
      ['rejected'],
    );
  });

  for (const [of, type] of [
    ['H', 'j'],
    ['AF', 'j'],
    ['H', '3'],
    [undefined, 'j'],
  ] as const) {
    it(`as a ${type} of a ${of ?? 'message whose type it does not name'}, leaves the order as it is`, () => {
      const named = { [tags.BusinessRejectRefID]: 'ord_a', [tags.Text]: 'no' };
      const refused: Record<number, string> = type === 'j' ? named : { [tags.RefSeqNum]: '12' };
      if (of !== undefined) refused[tags.RefMsgType] = of;
      const known = { startedAt: 7, orders: [order()], cancels: [], execIds: new Map() };
      const { changes, result } = applyMessages([message(refused, type)], known, {
        ...context,
        timeOf: () => 5,
        now: 9,
      });
      assert.deepEqual([changes.orders, changes.reports], [[], []]);
      assert.equal(result.isQuestionRefused, of !== undefined);
    });
  }

  it('as a reject speaks of the later of two orders, if an operator has set our numbers back between them', () => {
    const received = message({ [tags.RefSeqNum]: '12', [tags.Text]: 'no' }, '3');
    const orders = [order({ id: 'ord_b', receivedAt: 2 }), order({ id: 'ord_a', receivedAt: 1 })];
    const known = { startedAt: 7, orders, cancels: [], execIds: new Map() };
    const { reports } = applyMessages([received], known, { ...context, timeOf: () => 5, now: 9 }).changes;
    assert.deepEqual(
      reports.map(({ orderId }) => orderId),
      ['ord_b'],
    );
  });
});
