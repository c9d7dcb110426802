import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { applyExecution } from '../../../src/fix-adapter/orders/apply-execution.ts';
import type { ExchangeMessage } from '../../../src/fix-adapter/orders/execution.ts';
import type { Executed } from '../../../src/fix-adapter/store/store.ts';
import type { FixOrder, FixOrderState } from '../../../src/fix-adapter/store/table.ts';
import { tags } from '../../../src/fix-adapter/wire/tags.ts';
import { fixOrder as order, execution as report, weighing } from '../../support/fix-order.ts';
import { counted, ended, last, status, trade } from '../../support/fix-reports.ts';

const context = { ...weighing, at: 1_000, startedAt: 7, executed: new Map<string, Executed>() };

const left = (quantity: string) => ({ [tags.LeavesQty]: quantity });
const filledAt = (quantity: string, ordStatus: string, execType = 'F') =>
  report(execType, { ...{ [tags.LastQty]: quantity, [tags.LastPx]: '1.00' }, [tags.OrdStatus]: ordStatus });

/** The kinds of the reports, the state after them, and the finding. */
function result(row: FixOrder, received: ExchangeMessage) {
  const { order: after, reports, findings, isUnknown } = applyExecution(row, received, context);
  const found = findings.map(({ what }) => what).join(' ');
  return [reports.map(({ kind }) => kind).join(' '), after.state, found === '' && isUnknown ? 'unknown' : found];
}

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
});
