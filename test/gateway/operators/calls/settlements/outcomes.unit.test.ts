import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  readOutcome,
  toOutcome,
  writeOutcome,
} from '../../../../../src/gateway/operators/calls/settlements/outcomes.ts';
import { seenOf } from '../../../../../src/gateway/operators/calls/settlements/seen.ts';
import { maxTradeSteps, type StoredOrder } from '../../../../../src/gateway/trading/orders/table.ts';
import type { TradeStep } from '../../../../../src/gateway/trading/orders/trades/rules.ts';
import {
  type OrderOutcomeSchema,
  SettledApplicationState,
  SettledOrderState,
  type SettledTradeSchema,
  SettlementOutcomeSchema,
} from '../../../../../src/gen/marina/admin/v1/settlements_pb.ts';
import { plainOrder } from '../../../../support/plain-order.ts';

const tradedAt = plainOrder.createdAt + 1_000;
const now = tradedAt + 3_600_000;

const trade = (more: MessageInitShape<typeof SettledTradeSchema>) => ({
  ...{ step: 0, quantity: 10n, priceKobo: 100n, at: timestampFromMs(tradedAt), exchangeTradeId: '' },
  ...more,
});
const ofOrder = (order: MessageInitShape<typeof OrderOutcomeSchema>) =>
  create(SettlementOutcomeSchema, { order: order as never });
const ofTrades = (...trades: MessageInitShape<typeof SettledTradeSchema>[]) => ofOrder({ trades: trades.map(trade) });

/** Nothing is entered, and no other order has the exchange's id. */
const noFacts = { steps: [] as TradeStep[], entered: [], namesakes: [] };

describe('the outcome of a settlement, as an operator writes it', () => {
  it('has several trades with steps and without an id of the exchange', () => {
    assert.doesNotThrow(() => toOutcome(ofTrades({ step: 3 }, { step: 4 })));
  });

  it('has no two trades with one id of the exchange, whether or not the history has them', () => {
    const same = { exchangeTradeId: 'X-1' };
    assert.throws(() => toOutcome(ofTrades(same, same)), /exchange_trade_id/);
    assert.throws(() => toOutcome(ofTrades({ ...same, step: 3 }, same)), /exchange_trade_id/);
    assert.doesNotThrow(() => toOutcome(ofTrades(same, { exchangeTradeId: 'X-2' })));
  });

  it('has the id of the exchange of each trade that the history does not have', () => {
    assert.throws(() => toOutcome(ofTrades({ step: 0 })), /exchange_trade_id/);
  });

  it('has the instant of each trade', () => {
    assert.throws(() => toOutcome(ofOrder({ trades: [{ step: 3, quantity: 1n, priceKobo: 1n }] })), /trades\[0\]\.at/);
  });

  it('a settlement has instants from the start of 2000 to the end of 2199', () => {
    const [first, last] = [Date.UTC(2000, 0, 1), Date.UTC(2200, 0, 1)];
    for (const [at, isRight] of [
      [first - 1, false],
      [first, true],
      [last, true],
      [last + 1, false],
    ] as const) {
      const check = () => toOutcome(ofTrades({ step: 3, at: timestampFromMs(at) }));
      if (isRight) assert.doesNotThrow(check, new Date(at).toISOString());
      else assert.throws(check, /must be from 2000 to 2199/, new Date(at).toISOString());
    }
  });

  it('a settlement is not taken for an order whose history has more trades than can be listed', () => {
    const step: TradeStep = {
      ...{ sequence: 1, kind: 'report', quantity: 1n, priceKobo: 1n, tradeSequence: null, filledChange: 1n },
      ...{ valueChangeKobo: 1n, upstreamAt: tradedAt, at: tradedAt },
    } as never;
    for (const [count, isTooMany] of [
      [maxTradeSteps - 1, false],
      [maxTradeSteps, false],
      [maxTradeSteps + 1, true],
    ] as const) {
      const steps = Array.from({ length: count }, (_, at) => ({ ...step, sequence: at + 1 }));
      const settling = toOutcome(ofOrder({ state: SettledOrderState.OPEN })).settle(
        { ...plainOrder, state: 'uncertain' } as never,
        { ...noFacts, steps },
        ...[now, now],
      );
      const problem = 'problem' in settling ? settling.problem : '';
      assert.equal(/has more than \d+ trades/.test(problem), isTooMany, `${count}: ${problem}`);
    }
  });

  it('is of exactly one kind of object', () => {
    assert.throws(() => toOutcome(create(SettlementOutcomeSchema, {})), /exactly one/);
    const two = { order: {}, application: { state: SettledApplicationState.OPENED } };
    assert.throws(() => toOutcome(create(SettlementOutcomeSchema, two)), /exactly one/);
  });

  it('says the same after it was kept in a proposal', () => {
    const outcome = ofOrder({ state: SettledOrderState.OPEN, trades: [trade({ exchangeTradeId: 'X-1' })] });
    const kept = writeOutcome(outcome);
    const settle = (one: ReturnType<typeof toOutcome>) =>
      one.settle({ ...plainOrder, state: 'uncertain' } as never, noFacts, now, now);
    assert.deepEqual(settle(readOutcome(kept)), settle(toOutcome(outcome)));
  });

  it('lists trades up to the instant of its proposal, not up to that of its approval', () => {
    const outcome = toOutcome(ofOrder({ state: SettledOrderState.OPEN, trades: [trade({ exchangeTradeId: 'X-1' })] }));
    const proposedAt = tradedAt + 60_000;
    const settling = outcome.settle({ ...plainOrder, state: 'uncertain' } as never, noFacts, now, proposedAt);
    assert.ok('changes' in settling, 'problem' in settling ? settling.problem : '');
    const { settlement } = (settling.changes.at(-1)?.fields ?? {}) as Partial<StoredOrder>;
    assert.equal((JSON.parse(settlement ?? '{}') as { until?: number }).until, proposedAt);
  });
});

describe('the fields by which an operator knows an object', () => {
  it('change with everything that a report or the reconciler changes of an order', () => {
    const before = seenOf(plainOrder);
    const changes = {
      state: 'cancelled',
      filledQuantity: plainOrder.filledQuantity + 1n,
      filledValueKobo: plainOrder.filledValueKobo + 1n,
      exchangeOrderId: 'X-9',
      rejectReason: 'unknown_symbol',
      lastReport: plainOrder.lastReport + 1n,
      missedReport: plainOrder.missedReport + 1n,
      cancelUntil: 7,
    };
    for (const [name, value] of Object.entries(changes)) {
      assert.notDeepEqual(seenOf({ ...plainOrder, [name]: value }), before, `${name} is not among them`);
    }
  });
});
