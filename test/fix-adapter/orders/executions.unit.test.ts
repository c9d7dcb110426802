import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { applyExecution } from '../../../src/fix-adapter/orders/apply-execution.ts';
import { applyMessages, subjectsOf } from '../../../src/fix-adapter/orders/apply-messages.ts';
import type { ExchangeMessage } from '../../../src/fix-adapter/orders/execution.ts';
import { cancelName } from '../../../src/fix-adapter/orders/names.ts';
import { saidNothing } from '../../../src/fix-adapter/orders/reject-reasons.ts';
import type { Executed } from '../../../src/fix-adapter/store/store.ts';
import type { FixOrder, FixOrderState } from '../../../src/fix-adapter/store/table.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { fixMessage as message, fixOrder as order, execution as report, weighing } from '../../support/fix-order.ts';

const about = { ...weighing, timeOf: () => 5, now: 9 };
const context = { ...weighing, at: 1_000, startedAt: 7, executed: new Map<string, Executed>() };

const trade = (quantity: string, price: string) => report('F', { [tags.LastQty]: quantity, [tags.LastPx]: price });
const counted = (quantity: string, cumQty: string) =>
  report('F', { [tags.LastQty]: quantity, [tags.LastPx]: '1.00', [tags.CumQty]: cumQty });
/** An end or a rejection, with the trades that the exchange counts. */
const ended = (execType: string, cumQty = '0', more = {}) => report(execType, { [tags.CumQty]: cumQty, ...more });
const status = (ordStatus: string, cumQty = '0', more = {}) =>
  report('I', {
    ...{ [tags.OrdStatus]: ordStatus, [tags.CumQty]: cumQty, [tags.OrderID]: ordStatus === '8' ? 'NONE' : 'X1' },
    ...more,
  });

const left = (quantity: string) => ({ [tags.LeavesQty]: quantity });
const last = (quantity: string, more = {}) => report('F', { [tags.LastQty]: quantity, [tags.LastPx]: '1.00', ...more });
const filledAt = (quantity: string, ordStatus: string, execType = 'F') =>
  report(execType, { ...{ [tags.LastQty]: quantity, [tags.LastPx]: '1.00' }, [tags.OrdStatus]: ordStatus });

/** The kinds of the reports, the state after them, and the finding. */
function result(row: FixOrder, received: ExchangeMessage) {
  const { order: after, reports, findings, isUnknown } = applyExecution(row, received, context);
  const found = findings.map(({ what }) => what).join(' ');
  return [reports.map(({ kind }) => kind).join(' '), after.state, found === '' && isUnknown ? 'unknown' : found];
}

/** The name of the nth request to cancel the order. */
const cancelIdOf = (nth: number) => cancelName('ord_a', nth, 70) ?? '';

describe('what an ExecutionReport says of an order', () => {
  const cases: readonly [string, Partial<FixOrder>, ExchangeMessage, readonly [string, FixOrderState, string]][] = [
    ['new', {}, report('0'), ['accepted', 'open', '']],
    ['new again', { state: 'open' }, report('0'), ['', 'open', '']],
    ['pending new', {}, report('A'), ['', 'sending', '']],
    ['rejected', {}, ended('8', '0', { [tags.OrdRejReason]: '2' }), ['rejected', 'final', '']],
    [
      'a duplicate, which the exchange has once',
      {},
      report('8', { [tags.OrdRejReason]: '6' }),
      ['', 'sending', 'not_understood'],
    ],
    ['given up after it was accepted', { state: 'open' }, ended('8'), ['rejected', 'final', '']],
    ['rejected while a question has no answer', { asked: true }, ended('8'), ['', 'sending', 'rejection_unproven']],
    [
      'given up while a question has no answer',
      { state: 'open', asked: true },
      ended('8', '0', { [tags.OrdRejReason]: '99' }),
      ['', 'open', 'rejection_unproven'],
    ],
    ['a trade before its acceptance', {}, trade('40', '1.00'), ['accepted trade', 'open', '']],
    ['the last trade', { state: 'open', filled: 60n }, trade('40', '1.00'), ['trade', 'final', '']],
    ['more trades than shares', { state: 'open', filled: 80n }, trade('40', '1.00'), ['trade', 'final', 'overfilled']],
    [
      'a trade after the cancel',
      { state: 'final', filled: 10n },
      trade('40', '1.00'),
      ['trade', 'final', 'end_contradicted'],
    ],
    [
      'a trade that ends the order too',
      { state: 'open' },
      last('40', { ...left('0'), [tags.CumQty]: '40', [tags.OrdStatus]: '4' }),
      ['trade cancelled', 'final', ''],
    ],
    [
      'cancelled, of another quantity',
      { state: 'open' },
      ended('4', '0', { [tags.OrderQty]: '99' }),
      ['', 'open', 'terms_differ'],
    ],
    [
      'a trade of another quantity',
      { state: 'open' },
      last('40', { [tags.OrderQty]: '99' }),
      ['', 'open', 'terms_differ'],
    ],
    [
      'a trade of another quantity that is counted',
      { state: 'open' },
      last('40', { [tags.OrderQty]: '99', [tags.CumQty]: '40' }),
      ['trade', 'open', 'terms_differ'],
    ],
    ['a trade at no whole kobo', { state: 'open' }, trade('40', '1.005'), ['', 'open', 'not_understood']],
    ['a trade of no shares', { state: 'open' }, trade('0', '1.00'), ['', 'open', 'not_understood']],
    ['cancelled', { state: 'open' }, ended('4'), ['cancelled', 'final', '']],
    ['cancelled before its acceptance', {}, ended('4'), ['accepted cancelled', 'final', '']],
    [
      'cancelled, with what did not trade left',
      { state: 'open' },
      ended('4', '0', left('100')),
      ['cancelled', 'final', ''],
    ],
    ['cancelled, with some left', { state: 'open' }, ended('4', '0', left('60')), ['', 'open', 'end_unproven']],
    ['cancelled, and it does not say of how many', { state: 'open' }, report('4'), ['', 'open', 'end_unproven']],
    [
      'cancelled, and it lives',
      { state: 'open' },
      ended('4', '0', { [tags.OrdStatus]: '0' }),
      ['', 'open', 'end_unproven'],
    ],
    [
      'cancelled, with trades that did not come',
      { state: 'open', filled: 40n },
      ended('4', '60'),
      ['', 'open', 'trades_missing'],
    ],
    [
      'cancelled, with fewer trades than came',
      { state: 'open', filled: 40n },
      ended('4', '30'),
      ['', 'open', 'counted_twice'],
    ],
    [
      'cancelled, at another average price',
      { state: 'open', filled: 40n },
      ended('4', '40', { [tags.AvgPx]: '1.20' }),
      ['', 'open', 'average_differs'],
    ],
    [
      'expired, with trades that did not come',
      { state: 'open', filled: 40n },
      ended('C', '60'),
      ['', 'open', 'trades_missing'],
    ],
    ['rejected, with trades that did not come', {}, ended('8', '60'), ['', 'sending', 'trades_missing']],
    ['cancelled again', { state: 'final' }, ended('4'), ['', 'final', '']],
    ['new, of an order that was rejected', { state: 'final' }, report('0'), ['', 'final', 'end_contradicted']],
    ['pending, of an order that was cancelled', { state: 'final' }, report('A'), ['', 'final', 'end_contradicted']],
    ['restated, of an order that was cancelled', { state: 'final' }, report('D'), ['', 'final', 'end_contradicted']],
    ['new, of an order that was filled', { state: 'final', filled: 100n }, report('0'), ['', 'final', '']],
    ['status: pending, of an order that has ended', { state: 'final' }, status('A'), ['', 'final', 'end_contradicted']],
    [
      'cancelled with fewer trades, of an order that was filled',
      { state: 'final', filled: 100n },
      ended('4', '40'),
      ['', 'final', 'counted_twice'],
    ],
    [
      'rejected as unknown, without a question',
      { state: 'open' },
      ended('8', '0', { [tags.OrdRejReason]: '5' }),
      ['', 'open', 'rejection_unproven'],
    ],
    ['a trade of exactly twice the order', { state: 'open' }, last('200'), ['trade', 'final', 'overfilled']],
    ['a trade of more than twice the order', { state: 'open' }, last('201'), ['', 'open', 'overfilled']],
    [
      'a trade without an ExecID',
      { state: 'open' },
      last('40', { [tags.ExecID]: undefined }),
      ['trade', 'open', 'not_understood'],
    ],
    [
      'accepted and over in one',
      {},
      report('0', { [tags.OrdStatus]: '4', [tags.LeavesQty]: '0' }),
      ['accepted', 'open', 'end_unproven'],
    ],
    [
      'a trade that says cancelled, with shares left',
      { state: 'open' },
      filledAt('40', '4'),
      ['trade', 'open', 'end_unproven'],
    ],
    [
      'a trade at another average',
      { state: 'open' },
      last('40', { [tags.AvgPx]: '1.20' }),
      ['trade', 'open', 'average_differs'],
    ],
    ['cancelled again, with more trades', { state: 'final' }, ended('4', '60'), ['', 'final', 'trades_missing']],
    ['expired', { state: 'open' }, ended('C'), ['expired', 'final', '']],
    ['done for the day', { state: 'open' }, ended('3'), ['expired', 'final', '']],
    ['done for the day, and good till cancelled', { state: 'open', timeInForce: 'gtc' }, report('3'), ['', 'open', '']],
    [
      'cancelled under another OrderID',
      { state: 'open', exchangeOrderId: 'X9' },
      ended('4'),
      ['', 'open', 'order_id_differs'],
    ],
    [
      'a trade under another OrderID',
      { state: 'open', exchangeOrderId: 'X9' },
      trade('40', '1.00'),
      ['trade', 'open', 'order_id_differs'],
    ],
    ['restated under another OrderID', { state: 'open', exchangeOrderId: 'X9' }, report('D'), ['', 'open', '']],
    [
      'restated with fewer trades',
      { state: 'open', filled: 40n },
      report('D', { [tags.CumQty]: '0' }),
      ['', 'open', 'counted_twice'],
    ],
    [
      'calculated with nothing left',
      { state: 'open' },
      report('B', { [tags.CumQty]: '0', [tags.LeavesQty]: '0' }),
      ['', 'open', 'end_unproven'],
    ],
    ['suspended', { state: 'open' }, report('9', { [tags.CumQty]: '0', [tags.LeavesQty]: '100' }), ['', 'open', '']],
    ['suspended before it was accepted', {}, report('9'), ['accepted', 'open', '']],
    [
      'done for the day with nothing left, and good till cancelled',
      { state: 'open', timeInForce: 'gtc' },
      report('3', { [tags.CumQty]: '0', [tags.LeavesQty]: '0' }),
      ['', 'open', ''],
    ],
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
    ['the last trade of 60 of 100', { state: 'open' }, filledAt('60', '2'), ['trade', 'open', 'counts_disagree']],
    [
      'a trade after which nothing is left',
      { state: 'open' },
      last('60', left('0')),
      ['trade', 'open', 'counts_disagree'],
    ],
    ['a trade at a worse price', { state: 'open' }, trade('40', '1.01'), ['', 'open', 'worse_than_limit']],
    ['a trade at a better price', { state: 'open' }, trade('40', '0.99'), ['trade', 'open', '']],
    ['a sale at a worse price', { state: 'open', side: 'sell' }, trade('40', '0.99'), ['', 'open', 'worse_than_limit']],
    [
      'a sale at a hundred times the price',
      { state: 'open', side: 'sell' },
      trade('4', '100.00'),
      ['', 'open', 'price_implausible'],
    ],
    [
      'a trade of a market order at a hundred times the price',
      { state: 'open', type: 'market', priceKobo: null, referenceKobo: 100n },
      trade('40', '100.00'),
      ['', 'open', 'price_implausible'],
    ],
    [
      'a trade of another symbol',
      { state: 'open' },
      last('40', { [tags.Symbol]: 'GTCO' }),
      ['', 'open', 'identity_differs'],
    ],
    [
      'a trade of the other side',
      { state: 'open' },
      last('40', { [tags.Side]: '2' }),
      ['', 'open', 'identity_differs'],
    ],
    [
      'a trade of another account',
      { state: 'open' },
      last('40', { [tags.Account]: 'NG-2' }),
      ['', 'open', 'identity_differs'],
    ],
    [
      'an acceptance of another quantity',
      {},
      report('0', { [tags.OrderQty]: '1000' }),
      ['accepted', 'open', 'terms_differ'],
    ],
    ['a trade as FIX 4.2 had it', { state: 'open' }, filledAt('40', '1', '1'), ['trade', 'open', '']],
    ['a trade, with its count', { state: 'open', filled: 40n }, counted('40', '80'), ['trade', 'open', '']],
    ['what nobody knows', { state: 'open' }, report('Z'), ['', 'open', 'not_understood']],
    ['an order that was thought to be absent', { state: 'unsent' }, report('0'), ['accepted', 'open', 'revived']],
    ['status: new', {}, status('0'), ['accepted', 'open', '']],
    ['status: new, as is known', { state: 'open' }, status('0'), ['', 'open', '']],
    ['status: not there', {}, status('8', '0', { [tags.OrdRejReason]: '5' }), ['', 'sending', 'unknown']],
    ['status: rejected', {}, status('8', '0', { [tags.OrdRejReason]: '2' }), ['', 'sending', 'status_rejected']],
    [
      'status as a rejection',
      {},
      ended('8', '0', { [tags.OrdRejReason]: '99', [tags.OrdStatusReqID]: 'q' }),
      ['', 'sending', 'status_rejected'],
    ],
    [
      'status: rejected for a reason, of an order that was accepted',
      { state: 'open' },
      status('8', '0', { [tags.OrdRejReason]: '0' }),
      ['', 'open', 'status_rejected'],
    ],
    [
      'status: not there, of an order that was accepted',
      { state: 'open', receivedAt: 8 },
      status('8'),
      ['', 'open', 'order_forgotten'],
    ],
    ['status: not there, of an order of an earlier day', { state: 'open' }, status('8'), ['', 'open', 'unknown']],
    ['status: new, of an order that has ended', { state: 'final' }, status('0'), ['', 'final', 'end_contradicted']],
    [
      'status: filled with 60 of 100',
      { state: 'open', filled: 60n },
      status('2', '60'),
      ['', 'open', 'counts_disagree'],
    ],
    ...(
      [
        ['the other side', { [tags.Side]: '2' }, 'identity_differs'],
        ['another symbol', { [tags.Symbol]: 'GTCO' }, 'identity_differs'],
        ['another account', { [tags.Account]: 'NG-2' }, 'identity_differs'],
        ['another quantity', { [tags.OrderQty]: '70' }, 'identity_differs'],
        ['another limit', { [tags.Price]: '1.01' }, 'identity_differs'],
        ['the name of another order beside its own', { [tags.OrigClOrdID]: 'ord_b' }, 'identity_differs'],
        ['an OrderID', { [tags.OrderID]: 'X1' }, 'status_rejected'],
        ['shares left', { [tags.LeavesQty]: '100' }, 'status_rejected'],
        ['shares that traded', { [tags.LastQty]: '40', [tags.LastPx]: '1.00' }, 'status_rejected'],
        ['an average price', { [tags.AvgPx]: '1.00' }, 'status_rejected'],
        ['ExecType New', { [tags.ExecType]: '0', [tags.OrdStatusReqID]: 'q' }, 'status_rejected'],
        ['ExecType Pending New', { [tags.ExecType]: 'A', [tags.OrdStatusReqID]: 'q' }, 'status_rejected'],
        ['a MassStatusReqID', { [tags.MassStatusReqID]: 'm' }, 'status_rejected'],
        ['both ids of questions', { [tags.MassStatusReqID]: 'm', [tags.OrdStatusReqID]: 'q' }, 'status_rejected'],
      ] as const
    ).flatMap(([what, more, found]): (typeof cases)[number][] => [
      [`status: not there, with ${what}`, {}, status('8', '0', more), ['', 'sending', found]],
      [
        `status: not there, with ${what}, of an order that was accepted`,
        { state: 'open', receivedAt: 8 },
        status('8', '0', more),
        ['', 'open', found],
      ],
    ]),
    [
      'status: not there, and what must be filled is empty',
      {},
      status('8', '0', {
        ...{ [tags.Symbol]: '[N/A]', [tags.Account]: 'NONE', [tags.OrderQty]: '0', [tags.Price]: '0.00' },
        ...{ [tags.LeavesQty]: '0', [tags.LastQty]: '0', [tags.AvgPx]: '0.00' },
      }),
      ['', 'sending', 'unknown'],
    ],
    ...(['7', '9', 'B'] as const).map((type): (typeof cases)[number] => [
      `${type}, with fewer trades than came`,
      { state: 'open', filled: 40n },
      report(type, { [tags.CumQty]: '20' }),
      ['', 'open', 'counted_twice'],
    ]),
    [
      'pending, with a count that never was',
      { state: 'open', filled: 40n },
      report('6', { [tags.CumQty]: '20' }),
      ['', 'open', 'counted_twice'],
    ],
    [
      'new after a trade, with the count from before it',
      { state: 'open', filled: 40n },
      report('0', { [tags.CumQty]: '0' }),
      ['', 'open', ''],
    ],
    ...(
      [
        ['I', '2'],
        ['B', 'B'],
        ['3', '3'],
        ['D', '2'],
        ['0', '2'],
      ] as const
    ).map(([type, ordStatus]): (typeof cases)[number] => [
      `${type} of a filled order, at another average price`,
      { state: 'final', filled: 100n },
      report(type, { [tags.OrdStatus]: ordStatus, [tags.CumQty]: '100', [tags.AvgPx]: '0.95' }),
      ['', 'final', 'average_differs'],
    ]),
    ...(['0', '1', 'A', '2'] as const).map((ordStatus): (typeof cases)[number] => [
      `cancelled with OrdStatus ${ordStatus}, of an order that was cancelled`,
      { state: 'final' },
      ended('4', '0', { [tags.OrdStatus]: ordStatus, ...left('100') }),
      ['', 'final', 'end_contradicted'],
    ]),
    ...(
      [
        ['Currency USD', { [tags.Currency]: 'USD' }],
        ['PriceType percent', { [tags.PriceType]: '1' }],
        ['QtyType contracts', { [tags.QtyType]: '1' }],
      ] as const
    ).map(([what, more]): (typeof cases)[number] => [
      `a trade with ${what}`,
      { state: 'open' },
      last('40', { [tags.CumQty]: '40', ...more }),
      ['', 'open', 'not_understood'],
    ]),
    [
      'a trade with the units of all',
      { state: 'open' },
      last('40', { [tags.Currency]: 'NGN', [tags.PriceType]: '2', [tags.QtyType]: '0' }),
      ['trade', 'open', ''],
    ],
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

  it('is counted once if it comes again, and a trade that reuses its ExecID is counted if the exchange counts it', () => {
    const executions = fc.array(
      fc.record({
        id: fc.integer({ min: 1, max: 5 }),
        quantity: fc.integer({ min: 1, max: 9 }),
        times: fc.integer({ min: 1, max: 3 }),
      }),
      { maxLength: 10 },
    );
    fc.assert(
      fc.property(executions, (all) => {
        let count = 0;
        const received = all.flatMap(({ id, quantity, times }) => {
          count += quantity;
          const one = last(String(quantity), { [tags.ExecID]: `e${id}`, [tags.CumQty]: String(count) });
          return Array<ExchangeMessage>(times).fill(one);
        });
        const known = { startedAt: 7, orders: [order({ state: 'open', quantity: 1_000n })], cancels: [] };
        const { changes } = applyMessages(
          received,
          { ...known, executed: new Map() },
          { ...weighing, timeOf: () => 5, now: 9 },
        );
        assert.deepEqual(
          changes.reports.map(({ quantity }) => quantity),
          all.map(({ quantity }) => BigInt(quantity)),
        );
        assert.equal(changes.orders[0]?.after.filled ?? 0n, BigInt(count));
        const ids = changes.reports.map(({ execId }) => execId);
        assert.equal(new Set(ids).size, ids.length);
        const reused = all.filter(({ id }, at) => all.findIndex((one) => one.id === id) < at).length;
        assert.equal(changes.findings.filter(({ what }) => what === 'exec_id_reused').length, reused);
      }),
    );
  });

  const known = (order: FixOrder) => ({ startedAt: 7, orders: [order], cancels: [], executed: new Map() });
  const found = (order: FixOrder, ...received: readonly ExchangeMessage[]) =>
    applyMessages(received, known(order), about);

  it('a report that says a decisive field twice is found, and not applied', () => {
    const one = trade('40', '1.00');
    const fields = [[tags.LastQty, '40'] as const, [tags.LastQty, '4'] as const];
    const { changes } = found(order({ state: 'open' }), { ...one, fields });
    assert.deepEqual([changes.reports, changes.findings.map(({ what }) => what)], [[], ['not_understood']]);
  });

  it('a report that names an order in any form makes it one that the exchange has seen, and an unknown order does not', () => {
    const acknowledged = (message: ExchangeMessage) =>
      found(order(), message).changes.orders[0]?.after.acknowledged ?? false;
    assert.ok(acknowledged(report('A')));
    assert.ok(acknowledged(report('6')));
    assert.ok(!acknowledged(status('8', '0', { [tags.OrdRejReason]: '5' })));
    assert.ok(!acknowledged(status('8', '0', { [tags.OrdRejReason]: '99' })));
  });

  const acknowledgedBy = (message: ExchangeMessage) =>
    found(order(), message).changes.orders[0]?.after.acknowledged ?? false;

  it('a report that contradicts an unknown order shows that the exchange has seen it', () => {
    for (const [tag, value] of [
      ...([[tags.Side, '2'] as const, [tags.LeavesQty, '100'] as const, [tags.OrderID, 'X1'] as const] as const),
      ...([[tags.OrderQty, '70'] as const, [tags.CumQty, '40'] as const] as const),
    ]) {
      assert.ok(acknowledgedBy(status('8', '0', { [tag]: value })), `${tag}=${value}`);
    }
  });

  it('a report of a cancel that is refused shows that the exchange has the order, unless it does not know it', () => {
    const refusal = (more: Record<number, string>) =>
      message({ [tags.ClOrdID]: 'ord_a.c1', [tags.OrigClOrdID]: 'ord_a', ...more }, '9');
    const unknown = { [tags.OrderID]: 'NONE', [tags.OrdStatus]: '8', [tags.CxlRejReason]: '1' };
    assert.ok(!acknowledgedBy(refusal(unknown)));
    assert.ok(acknowledgedBy(refusal({ ...unknown, [tags.CxlRejReason]: '2' })));
    assert.ok(acknowledgedBy(refusal({ ...unknown, [tags.OrdStatus]: '0' })));
    assert.ok(acknowledgedBy(refusal({ ...unknown, [tags.OrderID]: 'X1' })));
    assert.deepEqual(
      found(order(), refusal(unknown)).changes.findings.map(({ what }) => what),
      ['not_understood'],
    );
  });

  it('a message of a type that is not supported shows that the exchange has each order that it names, in any of its groups', () => {
    const grouped = (...fields: (readonly [number, string])[]): ExchangeMessage => ({
      ...{ type: 'AE', fields },
      get: (tag) => fields.find(([each]) => each === tag)?.[1],
    });
    const capture = grouped([tags.Side, '1'], [tags.ClOrdID, 'theirs'], [tags.Side, '2'], [tags.ClOrdID, 'ord_a']);
    assert.ok(subjectsOf([capture]).orderIds.includes('ord_a'));
    assert.ok(acknowledgedBy(capture));
    const revived = found(order({ state: 'unsent' }), capture, capture).changes;
    assert.deepEqual(
      revived.findings.map(({ what }) => what),
      ['revived'],
    );
  });

  it('a report that names no order of ours may be about those in doubt, if it can be about an order at all', () => {
    const unmatched = (received: ExchangeMessage) => found(order(), received).changes.unmatched ?? [];
    const cut = (more = {}) => report('0', { [tags.ClOrdID]: 'ord_', ...more });
    assert.deepEqual(unmatched(cut()), [{}]);
    assert.deepEqual(unmatched(report('0', { [tags.ClOrdID]: undefined, [tags.OrderID]: undefined })), [{}]);
    assert.deepEqual(unmatched(message({ [tags.ClOrdID]: 'ORD_A.c1', [tags.CxlRejReason]: '2' }, '9')), [{}]);
    assert.deepEqual(unmatched(message({ [tags.ExecID]: 't1', [tags.Side]: '1' }, 'AE')), [{}]);
    assert.deepEqual(unmatched(message({ [tags.Text]: 'news' }, 'B')), []);
    assert.deepEqual(unmatched(report('0')), []);
    const terms = { [tags.Account]: 'NG-1', [tags.Side]: '1', [tags.OrderQty]: '100', [tags.Price]: '1.00' };
    assert.deepEqual(unmatched(cut({ [tags.MassStatusReqID]: 'm', ...terms })), [{ account: 'NG-1', side: 'buy' }]);
    const none = { [tags.ExecType]: 'I', [tags.OrdStatus]: '8' };
    assert.deepEqual(unmatched(cut({ ...none, [tags.MassStatusReqID]: 'm' })), []);
  });

  it('a report that names an order of ours and is about another one has those of its account and side asked about', () => {
    const misnamed = (received: ExchangeMessage) => found(order({ state: 'open' }), received).changes.misnamed ?? [];
    const trade = { [tags.LastQty]: '40', [tags.CumQty]: '40', [tags.LeavesQty]: '60', [tags.OrdStatus]: '1' };
    assert.deepEqual(misnamed(report('F', { ...trade, [tags.Side]: '2', [tags.Account]: 'NG-1' })), [
      { account: 'NG-1', side: 'sell' },
    ]);
    assert.deepEqual(misnamed(report('F', { ...trade, [tags.Side]: '2', [tags.Account]: undefined })), [
      { side: 'sell' },
    ]);
    assert.deepEqual(misnamed(report('0')), []);
  });

  it('a report that answers a question about another order, or names two orders, is applied to none', () => {
    const known = { startedAt: 7, orders: [order(), order({ id: 'ord_b' })], cancels: [], executed: new Map() };
    const asking = { ...about, askedAbout: (id: string) => (id === 'q' ? 'ord_b' : undefined) };
    const finds = (received: ExchangeMessage) => {
      const { changes, result } = applyMessages([received], known, asking);
      const answers = result.statuses.map(({ answer }) => answer);
      return [...changes.findings.map(({ what }) => what), ...changes.reports.map(({ kind }) => kind), ...answers];
    };
    const unknown = (more: Record<number, string>) => status('8', '0', { [tags.OrdRejReason]: '5', ...more });
    assert.deepEqual(finds(unknown({ [tags.OrdStatusReqID]: 'q' })), ['identity_differs', 'unclear']);
    assert.deepEqual(finds(status('0', '0', { [tags.OrdStatusReqID]: 'q' })), ['identity_differs', 'unclear']);
    assert.deepEqual(finds(unknown({ [tags.OrdStatusReqID]: 'other' })), ['unknown']);
    assert.deepEqual(finds(report('0', { [tags.OrigClOrdID]: 'ord_b' })), ['identity_differs']);
  });

  it('answers a question if it is clear, unless it is a mass status', () => {
    const asked = order({ state: 'open', asked: true, mustAsk: true });
    const marks = (message: ExchangeMessage) => {
      const after = found(asked, message).changes.orders[0]?.after ?? asked;
      return [after.asked, after.mustAsk];
    };
    assert.deepEqual(marks(status('0', '0', { [tags.OrdStatusReqID]: 'q' })), [false, false]);
    assert.deepEqual(marks(status('0', '0', { [tags.MassStatusReqID]: 'm' })), [true, true]);
    assert.deepEqual(marks(status('8', '0', { [tags.OrdRejReason]: '99' })), [false, true]);
    assert.deepEqual(marks(trade('10', '1.00')), [true, true]);
    assert.deepEqual(marks(trade('100', '1.00')), [false, false]);
  });

  it('is unclear each time that an answer proves nothing, and found once', () => {
    const unclear = status('8', '0', { [tags.OrdRejReason]: '99' });
    const { changes, result } = found(order({ state: 'open' }), unclear, unclear);
    assert.deepEqual(
      result.statuses.map(({ answer }) => answer),
      ['unclear', 'unclear'],
    );
    assert.equal(changes.findings.length, 1);
    const other = (tag: number, value: string) => status('0', '0', { [tag]: value });
    const others = found(order({ state: 'open' }), other(tags.Side, '2'), other(tags.Symbol, 'GTCO'));
    assert.equal(others.changes.findings.length, 2);
  });

  it('states when it happened unless it is an answer', () => {
    const times = (...received: readonly ExchangeMessage[]) =>
      found(order(), ...received).changes.reports.map(({ at }) => at);
    assert.deepEqual(times(report('0'), ended('4', '0', { [tags.ExecID]: 'e2' })), [5, 5]);
    assert.deepEqual(times(status('4')), [null, null]);
  });

  it("has the exchange's id of the order, and NONE is none", () => {
    const ids = (id: string) =>
      found(order(), report('0', { [tags.OrderID]: id })).changes.orders[0]?.after.exchangeOrderId;
    assert.deepEqual([ids('X9'), ids('NONE')], ['X9', '']);
  });

  it('has a reason for each OrdRejReason that we know', () => {
    const reason = (code: string) =>
      found(order(), ended('8', '0', { [tags.OrdRejReason]: code })).changes.reports[0]?.rejectReason;
    assert.deepEqual(['1', '2', '15', '99'].map(reason), [
      'unknown_symbol',
      'market_closed',
      'account_not_at_broker',
      'rejected_by_exchange',
    ]);
  });

  it('a report that the order lives ends the wait for trades of an end', () => {
    const live = status('1', '40', { [tags.OrdStatusReqID]: 'q' });
    const { changes } = found(order({ state: 'open', filled: 40n }), ended('4', '60'), live);
    assert.equal(changes.orders[0]?.after.endedAs, null);
    assert.ok(changes.findings.some(({ what }) => what === 'end_contradicted'));
  });

  it('a report with a known ExecID is found if what it says differs, of whatever kind it is', () => {
    const open = order({ state: 'open', filled: 30n });
    const first = { kind: 'trade', quantity: 30n, priceKobo: 100n, counted: 30n, execRefId: null } as const;
    const executed = new Map([
      [
        'ord_a',
        new Map<string, Executed>([
          ['t1', first],
          ['t2', first],
        ]),
      ],
    ]);
    const run = (...received: readonly ExchangeMessage[]) =>
      applyMessages(received, { ...known(open), executed }, about).changes.findings.map(({ what }) => what);
    const bust = (ref: string) => report('H', { [tags.ExecID]: 'b', [tags.ExecRefID]: ref });
    assert.deepEqual(run(bust('t1'), bust('t1')), ['trade_cancelled']);
    assert.ok(run(bust('t1'), bust('t2')).includes('exec_id_reused'));
    const fix = (quantity: string) =>
      report('G', { [tags.ExecID]: 'g', [tags.ExecRefID]: 't1', [tags.LastQty]: quantity, [tags.LastPx]: '1.00' });
    assert.deepEqual(run(fix('20'), fix('20')), ['trade_corrected']);
    assert.ok(run(fix('20'), fix('3')).includes('exec_id_reused'));
  });

  it('a report that comes again without its CumQty is a repetition, and of a trade one that is found once', () => {
    const plain = { quantity: null, priceKobo: null, execRefId: null };
    const executed = new Map([
      [
        'ord_a',
        new Map<string, Executed>([
          ['n1', { kind: 'accepted', counted: 0n, ...plain }],
          ['t1', { kind: 'trade', counted: 40n, ...plain, quantity: 40n, priceKobo: 100n }],
          ['b1', { kind: 'trade_cancelled', counted: 0n, ...plain, quantity: 0n, execRefId: 't1' }],
        ]),
      ],
    ]);
    const row = order({ state: 'open', filled: 40n, adjusted: -40n });
    const run = (received: ExchangeMessage) => {
      const { changes } = applyMessages([received, received], { ...known(row), executed }, about);
      return [changes.reports.length, changes.tradeChanges.length, ...changes.findings.map(({ what }) => what)];
    };
    assert.deepEqual(run(report('0', { [tags.ExecID]: 'n1' })), [0, 0]);
    assert.deepEqual(run(report('H', { [tags.ExecID]: 'b1', [tags.ExecRefID]: 't1' })), [0, 0]);
    assert.deepEqual(run(last('40', { [tags.ExecID]: 't1' })), [0, 0, 'exec_id_reused']);
  });

  it('a report that rejects an order proves nothing while a request to cancel it may be what is answered', () => {
    const row = { ...{ id: 'ord_a.c1', orderId: 'ord_a', requestedAt: 1, startedAt: 7, number: 13n }, ...saidNothing };
    const run = (state: 'sending' | 'lost' | 'done' | 'refused' | 'unsent') =>
      applyMessages([ended('8')], { ...known(order({ state: 'open' })), cancels: [{ ...row, state }] }, about).changes;
    for (const state of ['sending', 'lost'] as const) {
      assert.deepEqual(
        run(state).findings.map(({ what }) => what),
        ['rejection_unproven'],
        state,
      );
    }
    for (const state of ['done', 'refused', 'unsent'] as const) {
      assert.deepEqual(
        run(state).reports.map(({ kind }) => kind),
        ['rejected'],
        state,
      );
    }
  });

  it('a report with an ExecID of the version before is a new trade if the count has risen', () => {
    const first = { kind: 'trade', quantity: 40n, priceKobo: 100n, counted: null, execRefId: null } as const;
    const executed = new Map([['ord_a', new Map<string, Executed>([['e1', first]])]]);
    const run = (cumQty: string) =>
      applyMessages([counted('40', cumQty)], { ...known(order({ state: 'open', filled: 40n })), executed }, about)
        .changes;
    assert.equal(run('40').reports.length, 0);
    assert.equal(run('80').reports.length, 1);
  });

  it('a report that takes back a trade which was corrected twice takes back what was left of it', () => {
    const first = last('30', { [tags.ExecID]: 'e1', [tags.CumQty]: '30' });
    const change = (type: string, execId: string, ref: string, quantity: string, count: string) =>
      report(type, {
        ...{ [tags.ExecID]: execId, [tags.ExecRefID]: ref, [tags.LastQty]: quantity, [tags.LastPx]: '1.00' },
        ...{ [tags.CumQty]: count, [tags.OrdStatus]: '0' },
      });
    const all = [
      change('G', 'e2', 'e1', '20', '20'),
      change('G', 'e3', 'e2', '25', '25'),
      change('H', 'e4', 'e3', '25', '0'),
    ];
    const { changes } = found(order({ state: 'open' }), first, ...all, ended('4', '0', { [tags.ExecID]: 'e5' }));
    assert.equal(changes.orders[0]?.after.adjusted, -30n);
    assert.equal(changes.orders[0]?.after.state, 'final');
    assert.deepEqual(
      changes.tradeChanges.map(({ kind }) => kind),
      ['corrected', 'corrected', 'cancelled'],
    );
  });

  it('a report of a cancel that is refused is matched by its name, by OrigClOrdID with the last one, and never undoes one that is done', () => {
    const row = (nth: number, state: 'sending' | 'done') =>
      ({
        orderId: 'ord_a',
        requestedAt: nth,
        startedAt: 7,
        number: 13n,
        id: `ord_a.c${nth}`,
        state,
        exchangeReason: null,
        exchangeText: null,
      }) as const;
    const refused = (cancels: readonly ReturnType<typeof row>[], fields: Record<number, string>) =>
      applyMessages([message(fields, '9')], { ...known(order({ state: 'open' })), cancels }, about).changes;
    const two = [row(1, 'sending'), row(2, 'sending')];
    assert.equal(refused(two, { [tags.ClOrdID]: 'ord_a.c1' }).cancels[0]?.after.id, 'ord_a.c1');
    assert.equal(refused(two, { [tags.OrigClOrdID]: 'ord_a' }).cancels[0]?.after.id, 'ord_a.c2');
    assert.deepEqual(refused([row(1, 'done')], { [tags.ClOrdID]: 'ord_a.c1' }).cancels, []);
    const reason = (code: string) => refused(two, { [tags.ClOrdID]: 'ord_a.c1', [tags.CxlRejReason]: code });
    assert.equal(reason('0').orders[0]?.after.acknowledged, true);
    assert.deepEqual(
      reason('1').findings.map(({ what }) => what),
      ['order_forgotten'],
    );
  });

  it('a report that rejects an order that was acknowledged rejects nothing, and is found', () => {
    const received = message({ [tags.RefSeqNum]: '12', [tags.RefMsgType]: 'D' }, '3');
    const { changes } = found(order({ acknowledged: true }), received);
    assert.deepEqual([changes.reports, changes.findings.map(({ what }) => what)], [[], ['not_understood']]);
  });

  it('a report with a known ExecID and other shares is found and not counted if the exchange does not count it', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open', filled: 40n })], cancels: [] };
    const trades = { quantity: 40n, priceKobo: 100n, counted: 40n, execRefId: null };
    const executed = new Map([['ord_a', new Map<string, Executed>([['e1', { kind: 'trade', ...trades }]])]]);
    const { changes } = applyMessages([counted('30', '40')], { ...known, executed }, about);
    assert.deepEqual([changes.reports, changes.findings.map(({ what }) => what)], [[], ['exec_id_reused']]);
  });

  it('a report that shows a missing trade as large as an earlier one, which came late, is found again', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const late = last('10', { [tags.ExecID]: 'e1', [tags.CumQty]: '10' });
    const agreed = applyMessages([status('1', '10'), late], known, about).changes;
    const second = applyMessages(
      [status('1', '20'), status('1', '20')],
      { ...known, orders: agreed.orders.map(({ after }) => after) },
      about,
    );
    const kinds = [...agreed.findings, ...second.changes.findings].map(({ what }) => what);
    assert.deepEqual(kinds, ['trades_missing', 'trades_missing'], 'once for each trade');
  });

  it('a report that rejects an order while another question about it is open is found and rejects nothing', () => {
    const open = order({ state: 'open', asked: true });
    const rejection = ended('8', '0', { [tags.OrdRejReason]: '99', [tags.ExecID]: 'e2' });
    const after = (answer: ExchangeMessage, leavesNone: boolean) => {
      const known = { startedAt: 7, orders: [open], cancels: [], executed: new Map() };
      const { changes } = applyMessages([answer, rejection], known, { ...about, leavesNone: () => leavesNone });
      return [changes.reports.map(({ kind }) => kind).join(), changes.findings.map(({ what }) => what).join()];
    };
    const answer = status('0', '0', { [tags.OrdStatusReqID]: 'q1' });
    assert.deepEqual(after(answer, false), ['', 'rejection_unproven']);
    assert.deepEqual(after(answer, true), ['rejected', '']);
    const again = status('0', '0', { [tags.PossDupFlag]: 'Y' });
    assert.deepEqual(after(again, true), ['', 'rejection_unproven'], 'an answer of an earlier connection');
  });

  it('a report that does not know an order of this day is found, also if a numbering has begun since it was sent', () => {
    const known = {
      startedAt: 2_000,
      orders: [order({ state: 'open', receivedAt: 1_000 })],
      cancels: [],
      executed: new Map(),
    };
    const foundOn = (dayStartedAt: number) =>
      applyMessages([status('8')], known, { ...about, dayStartedAt }).changes.findings.map(({ what }) => what);
    assert.deepEqual(foundOn(500), ['order_forgotten']);
    assert.deepEqual(foundOn(1_500), [], 'its day is over, and it is asked about until its end is known');
  });

  it('a report that ends an order with trades that did not come ends it when they come', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open', filled: 40n })], cancels: [], executed: new Map() };
    const late = last('20', { [tags.ExecID]: 'e2', [tags.CumQty]: '60' });
    const { changes } = applyMessages([ended('4', '60'), late], known, about);
    assert.deepEqual(
      changes.reports.map(({ kind }) => kind),
      ['trade', 'cancelled'],
    );
    assert.equal(changes.orders[0]?.after.state, 'final');
  });

  it('a report that takes a trade back is a fact with which later counts agree', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const first = last('30', { [tags.ExecID]: 'e1', [tags.CumQty]: '30' });
    const bust = report('H', {
      [tags.ExecID]: 'e2',
      [tags.ExecRefID]: 'e1',
      [tags.CumQty]: '0',
      [tags.OrdStatus]: '0',
    });
    const all = last('100', { [tags.ExecID]: 'e3', [tags.CumQty]: '100' });
    const { changes } = applyMessages([first, bust, bust, all], known, about);
    assert.deepEqual(
      changes.findings.map(({ what }) => what),
      ['trade_cancelled'],
    );
    const after = changes.orders[0]?.after;
    assert.deepEqual([after?.filled, after?.adjusted, after?.state], [130n, -30n, 'final']);
    assert.equal(changes.tradeChanges.length, 1);
  });

  it('a report that corrects a trade twice counts its last shares', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const first = last('30', { [tags.ExecID]: 'e1', [tags.CumQty]: '30' });
    const correction = (execId: string, execRefId: string, quantity: string) =>
      report('G', {
        ...{ [tags.ExecID]: execId, [tags.ExecRefID]: execRefId, [tags.LastQty]: quantity },
        ...{ [tags.LastPx]: '1.00', [tags.CumQty]: quantity },
      });
    const { changes } = applyMessages(
      [first, correction('e2', 'e1', '20'), correction('e3', 'e2', '25')],
      known,
      about,
    );
    assert.equal(changes.orders[0]?.after.adjusted, -5n);
  });

  it('a report of which a part cannot be read is found with its bytes', () => {
    const received = { ...report('F'), isWhole: false, bytes: Buffer.from('8=FIX.4.4|…') };
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const { changes } = applyMessages([received], known, about);
    assert.deepEqual(
      changes.findings.map(({ what, orderId, bytes }) => [what, orderId, bytes]),
      [['unreadable', 'ord_a', received.bytes]],
    );
    assert.ok(changes.passedOver);
  });

  it('finds its order where it names the request to cancel, and ends that request', () => {
    const cancel = {
      id: cancelIdOf(1),
      orderId: 'ord_a',
      requestedAt: 0,
      startedAt: 7,
      number: 13n,
      state: 'sending',
      ...saidNothing,
    } as const;
    const received = ended('4', '0', { [tags.ClOrdID]: cancel.id, [tags.OrigClOrdID]: 'ord_a' });
    const { changes } = applyMessages(
      [received],
      { startedAt: 7, orders: [order({ state: 'open' })], cancels: [cancel], executed: new Map() },
      { ...context, timeOf: () => 5, now: 9 },
    );
    assert.equal(changes.orders[0]?.after.state, 'final');
    assert.equal(changes.cancels[0]?.after.state, 'done');
  });

  it('finds its order by our own mark, whatever the exchange writes beside it', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
    const received = ended('4', '0', { [tags.ClOrdID]: cancelIdOf(2), [tags.OrigClOrdID]: 'NONE' });
    assert.equal(
      applyMessages([received], known, { ...context, timeOf: () => 5, now: 9 }).changes.orders[0]?.after.state,
      'final',
    );
  });

  it('a report that rejects a request to cancel rejects no order', () => {
    const row = { orderId: 'ord_a', requestedAt: 0, startedAt: 7, number: 13n, ...saidNothing } as const;
    const cancel = { ...row, id: cancelIdOf(1), state: 'sending' } as const;
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [cancel], executed: new Map() };
    const received = report('8', { [tags.ClOrdID]: cancel.id });
    const { changes, result } = applyMessages([received], known, { ...context, timeOf: () => 5, now: 9 });
    assert.deepEqual([changes.orders, changes.reports], [[], []]);
    assert.equal(changes.cancels[0]?.after.state, 'refused');
    assert.equal(result.refusedCancels.length, 1);
    assert.equal(changes.findings[0]?.what, 'not_understood');
  });

  it('is known again by an ExecID that is longer than the record keeps', () => {
    const known = { startedAt: 7, orders: [order({ state: 'open' })], cancels: [], executed: new Map() };
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
    const known = { startedAt: 7, orders: [], cancels: [], executed: new Map() };
    const about = { ...context, timeOf: () => 5, now: 9 };
    assert.equal(applyMessages([report('0')], known, about).changes.findings[0]?.what, 'unknown_order');
    assert.deepEqual(applyMessages([report('I', { [tags.MassStatusReqID]: 'm' })], known, about).changes.findings, []);
  });

  it('a reject of our message rejects the order with that number, of this numbering alone', () => {
    const received = message({ [tags.RefSeqNum]: '12', [tags.RefMsgType]: 'D', [tags.Text]: 'no' }, '3');
    const about = { ...context, timeOf: () => 5, now: 9 };
    const of = (startedAt: number) =>
      applyMessages([received], { startedAt, orders: [order()], cancels: [], executed: new Map() }, about).changes
        .reports;
    assert.deepEqual(
      of(7).map(({ kind }) => kind),
      ['rejected'],
    );
    assert.deepEqual(of(8), []);
  });

  it('a BusinessMessageReject rejects the order that it names, if it has no number', () => {
    const received = message({ [tags.BusinessRejectRefID]: 'ord_a', [tags.RefMsgType]: 'D', [tags.Text]: 'no' }, 'j');
    const known = { startedAt: 7, orders: [order()], cancels: [], executed: new Map() };
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
    it(`a ${type} of a ${of ?? 'message whose type it does not name'} leaves the order as it is`, () => {
      const named = { [tags.BusinessRejectRefID]: 'ord_a', [tags.Text]: 'no' };
      const refused: Record<number, string> = type === 'j' ? named : { [tags.RefSeqNum]: '12' };
      if (of !== undefined) refused[tags.RefMsgType] = of;
      const known = { startedAt: 7, orders: [order()], cancels: [], executed: new Map() };
      const { changes, result } = applyMessages([message(refused, type)], known, {
        ...context,
        timeOf: () => 5,
        now: 9,
      });
      assert.deepEqual([changes.orders, changes.reports], [[], []]);
      assert.equal(result.isQuestionRefused, of !== undefined);
    });
  }

  it('a reject speaks of the later of two orders, if an operator has set our numbers back between them', () => {
    const received = message({ [tags.RefSeqNum]: '12', [tags.RefMsgType]: 'D', [tags.Text]: 'no' }, '3');
    const orders = [order({ id: 'ord_b', receivedAt: 2 }), order({ id: 'ord_a', receivedAt: 1 })];
    const known = { startedAt: 7, orders, cancels: [], executed: new Map() };
    const { reports } = applyMessages([received], known, { ...context, timeOf: () => 5, now: 9 }).changes;
    assert.deepEqual(
      reports.map(({ orderId }) => orderId),
      ['ord_b'],
    );
  });
});
