import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  applyReport as applyAllocationRecord,
  type SettledAllocationFacts,
  settleAllocation,
} from '../../../../src/gateway/trading/allocations/settlement/rules.ts';
import {
  type SettledApplicationFacts,
  settleApplication,
} from '../../../../src/gateway/trading/applications/settlement/rules.ts';
import { applyReport, readRecord } from '../../../../src/gateway/trading/orders/later-reports/rules.ts';
import { countedKobo, orderStates } from '../../../../src/gateway/trading/orders/rules.ts';
import {
  type OrderSettlement,
  type SettledOrderState,
  settleOrder,
} from '../../../../src/gateway/trading/orders/settlement/rules.ts';
import type { StoredOrder } from '../../../../src/gateway/trading/orders/table.ts';
import { sumsOf, type TradeStep, tradesOf } from '../../../../src/gateway/trading/orders/trades/rules.ts';
import type { Settled } from '../../../../src/gateway/trading/submission/rules.ts';
import { AllocationOutcome, AllocationRecordSchema } from '../../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { plainOrder } from '../../../support/plain-order.ts';
import { fc } from '../../../support/properties.ts';

const now = 1_763_650_600_000;
const at = plainOrder.createdAt + 1_000;

/** An order with its history and its events, as the mechanism keeps them. */
class Kept {
  row: StoredOrder;
  readonly steps: TradeStep[] = [];
  /** The state and the filled quantity in each event. */
  readonly events: string[] = [];
  readonly contradictions: string[] = [];
  #number = 0n;

  constructor(fields: Partial<StoredOrder> = {}) {
    this.row = { ...plainOrder, state: 'uncertain', ...fields };
  }

  /** `tradedAt` null: the report has no instant. */
  report(kind: ReportKind, quantity = 0n, priceKobo = 0n, tradedAt: number | null = at): void {
    this.#number += 1n;
    const report: Report = create(ReportSchema, {
      number: this.#number,
      kind,
      quantity,
      priceKobo,
      ...(tradedAt === null ? {} : { at: timestampFromMs(tradedAt) }),
    });
    const before = this.row;
    const applied = applyReport(before, report, now);
    if (applied === undefined) return;
    const { row, inconsistent, detail, tradeSequence } = applied;
    if (applied.changed) this.events.push(`${row.state} ${row.filledQuantity}`);
    if (inconsistent) this.contradictions.push(detail);
    const isTrade = kind === ReportKind.TRADE;
    this.#step(row, inconsistent ? 'contradiction' : 'report', {
      quantity: isTrade ? quantity : null,
      priceKobo: isTrade ? priceKobo : null,
      tradeSequence: tradeSequence ?? null,
      filledChange: isTrade ? row.filledQuantity - before.filledQuantity : null,
    });
  }

  /** Answers why it cannot be, or undefined. */
  settle(settlement: Partial<OrderSettlement>, proposedAt = now): string | undefined {
    const outcome = { state: undefined, rejectReason: undefined, endedAt: undefined, exchangeOrderId: '', trades: [] };
    const settling = settleOrder(this.row, { ...outcome, ...settlement }, tradesOf(this.steps), now, proposedAt);
    if ('problem' in settling) return settling.problem;
    for (const change of settling.changes) this.#apply(change);
    return undefined;
  }

  /** The last step. */
  get lastStep(): number {
    return this.row.steps;
  }

  #apply({ fields, step }: Settled<StoredOrder>): void {
    const before = this.row;
    const after = { ...before, ...fields };
    assert.ok(after.updatedAt >= before.updatedAt, '`updated_at` went back');
    assert.equal(step?.filledChange ?? 0n, after.filledQuantity - before.filledQuantity);
    assert.equal(step?.valueChangeKobo ?? 0n, after.filledValueKobo - before.filledValueKobo);
    this.events.push(`${after.state} ${after.filledQuantity}`);
    this.#step(after, 'settled_by_operator', {
      quantity: step?.quantity ?? null,
      priceKobo: step?.priceKobo ?? null,
      tradeSequence: step?.tradeSequence ?? null,
      filledChange: step?.filledChange ?? null,
    });
  }

  #step(
    row: StoredOrder,
    kind: string,
    step: Pick<TradeStep, 'quantity' | 'priceKobo' | 'tradeSequence' | 'filledChange'>,
  ) {
    this.row = { ...row, steps: row.steps + 1 };
    const sequence = this.row.steps;
    if (step.quantity !== null) this.steps.push({ ...step, sequence, kind, state: row.state, at, upstreamAt: at });
  }

  /** Checks the conditions that hold for every order, whatever happened to it. */
  check(): void {
    const { state, quantity, filledQuantity, filledValueKobo, filledAt, reason, rejectReason } = this.row;
    assert.ok(filledQuantity >= 0n && filledQuantity <= quantity, `${filledQuantity} of ${quantity} have traded`);
    assert.equal(filledQuantity === 0n, filledValueKobo === 0n);
    if (state === 'filled') assert.equal(filledQuantity, quantity);
    if (state === 'pending') assert.equal(filledQuantity, 0n);
    if (state === 'partially_filled') assert.ok(filledQuantity > 0n && filledQuantity < quantity);
    assert.equal(filledAt !== null, state === 'filled');
    assert.equal(rejectReason !== null, state === 'rejected');
    assert.ok(countedKobo(this.row) >= 0n);
    assert.ok(!`${reason}`.includes('operator'), 'the reason tells partners of the operator');
    assert.deepEqual(sumsOf(tradesOf(this.steps)), { quantity: filledQuantity, valueKobo: filledValueKobo });
    assert.ok(readRecord(this.row.settlement).waiting.length <= this.steps.length);
  }
}

const trade = (quantity: bigint, priceKobo = 1_000n, step?: number) => ({ step, quantity, priceKobo, at });

describe('settling an order by evidence', () => {
  it('makes one event for each trade and one for the end', () => {
    const order = new Kept();
    assert.equal(order.settle({ state: 'cancelled', endedAt: at, trades: [trade(40n), trade(25n)] }), undefined);
    assert.deepEqual(order.events, ['partially_filled 40', 'partially_filled 65', 'cancelled 65']);
    assert.equal(order.row.reason, 'The order was cancelled.');
  });

  it('fills an order in parts as the exchange would have', () => {
    const order = new Kept();
    assert.equal(order.settle({ state: 'filled', trades: [trade(60n), trade(40n, 990n)] }), undefined);
    assert.deepEqual(order.events, ['partially_filled 60', 'filled 100']);
    assert.equal(order.row.filledValueKobo, 60_000n + 39_600n);
    assert.equal(order.row.filledAt, at);
  });

  it('says nothing of the order when it never reached the exchange but that', () => {
    const order = new Kept();
    assert.equal(order.settle({ state: 'refused' }), undefined);
    assert.deepEqual(order.events, ['refused 0']);
    assert.equal(order.row.reason, 'It never reached the exchange.');
    assert.equal(countedKobo(order.row), 0n);
  });

  it('takes a trade back, and the rest becomes what it is at the exchange', () => {
    for (const [state, becomes] of [
      ['open', 'partially_filled 70'],
      ['cancelled', 'cancelled 70'],
      ['expired', 'expired 70'],
    ] as const) {
      const order = new Kept({ state: 'pending' });
      order.report(ReportKind.TRADE, 70n, 1_000n);
      order.report(ReportKind.TRADE, 30n, 990n);
      const taken = { ...trade(0n, 0n), step: order.lastStep };
      assert.match(order.settle({ trades: [taken] }) ?? '', /what became of the rest/);
      assert.equal(order.settle({ state, endedAt: state === 'open' ? undefined : at, trades: [taken] }), undefined);
      assert.deepEqual(order.events.slice(2), [becomes]);
      assert.equal(order.row.filledValueKobo, 70_000n);
      assert.equal(order.row.reason, 'The exchange took back a trade of it.');
      order.check();
    }
  });

  it('counts a trade that was refused as too much, once another one was taken back', () => {
    const order = new Kept({ state: 'pending' });
    order.report(ReportKind.TRADE, 70n, 1_000n);
    order.report(ReportKind.TRADE, 30n, 990n);
    const busted = order.lastStep;
    order.report(ReportKind.TRADE, 30n, 980n);
    const refused = order.lastStep;
    assert.equal(order.contradictions.length, 1);
    assert.match(order.settle({ state: 'filled', trades: [trade(30n, 980n, refused)] }) ?? '', /130 shares .* of 100/);
    const trades = [trade(30n, 980n, refused), trade(0n, 0n, busted)];
    assert.equal(order.settle({ state: 'filled', trades }), undefined);
    assert.deepEqual(order.events.slice(2), ['partially_filled 70', 'filled 100']);
    assert.equal(order.row.filledValueKobo, 70_000n + 29_400n);
    assert.match(order.settle({ trades: [trade(0n, 0n, busted)] }) ?? '', /counts with these values already/);
    order.check();
  });

  it('makes an event with fewer shares when one trade of a filled order is taken back and another one added', () => {
    for (const [taken, between] of [
      [30n, 'partially_filled 70'],
      [100n, 'pending 0'],
    ] as const) {
      const order = new Kept({ state: 'pending' });
      if (taken < 100n) order.report(ReportKind.TRADE, 100n - taken, 1_000n);
      order.report(ReportKind.TRADE, taken, 990n);
      const trades = [trade(taken, 980n), trade(0n, 0n, order.lastStep)];
      assert.equal(order.settle({ state: 'filled', trades }), undefined);
      assert.deepEqual(order.events.slice(-3), ['filled 100', between, 'filled 100']);
      order.check();
    }
  });

  it('corrects the price of a trade, and the average follows', () => {
    const order = new Kept({ state: 'pending' });
    order.report(ReportKind.TRADE, 100n, 1_000n);
    assert.equal(order.settle({ trades: [trade(100n, 900n, order.lastStep)] }), undefined);
    assert.deepEqual(order.events, ['filled 100', 'filled 100']);
    assert.equal(order.row.filledValueKobo, 90_000n);
    order.check();
  });

  it('counts a trade that is reported after it was entered once', () => {
    const order = new Kept({ state: 'pending' });
    order.report(ReportKind.TRADE, 60n, 1_000n);
    assert.equal(order.settle({ state: 'cancelled', endedAt: at, trades: [trade(20n, 990n)] }), undefined);
    order.report(ReportKind.TRADE, 20n, 990n);
    order.report(ReportKind.CANCELLED);
    assert.deepEqual(order.contradictions, []);
    assert.equal(order.row.filledQuantity, 80n);
    order.report(ReportKind.TRADE, 20n, 990n);
    assert.equal(order.contradictions.length, 1, 'a second report of the same trade was taken for the first');
    assert.equal(order.row.filledQuantity, 80n);
    order.check();
  });

  it('lets no later report change what it ended', () => {
    for (const [settlement, report] of [
      [{ state: 'refused' }, ReportKind.ACCEPTED],
      [{ state: 'refused' }, ReportKind.TRADE],
      [{ state: 'refused' }, ReportKind.REJECTED],
      [{ state: 'cancelled', endedAt: at }, ReportKind.EXPIRED],
      [{ state: 'cancelled', endedAt: at }, ReportKind.TRADE],
      [{ state: 'cancelled', endedAt: at }, ReportKind.REJECTED],
      [{ state: 'expired', endedAt: at }, ReportKind.CANCELLED],
      [{ state: 'rejected', rejectReason: 'market_closed', endedAt: at }, ReportKind.ACCEPTED],
      [{ state: 'filled', trades: [trade(100n)] }, ReportKind.CANCELLED],
      [{ state: 'filled', trades: [trade(100n)] }, ReportKind.TRADE],
    ] as [Partial<OrderSettlement>, ReportKind][]) {
      const order = new Kept();
      assert.equal(order.settle(settlement), undefined);
      const { lastReport: _, steps: __, exchangeOrderId: ___, ...before } = order.row;
      const events = order.events.length;
      order.report(report, report === ReportKind.TRADE ? 10n : 0n, report === ReportKind.TRADE ? 1_000n : 0n);
      const shown = `${settlement.state}, then ${ReportKind[report]}`;
      assert.equal(order.contradictions.length, 1, shown);
      const { lastReport, steps: ____, exchangeOrderId: _____, ...after } = order.row;
      assert.deepEqual(after, before, shown);
      assert.equal(lastReport, 1n, shown);
      assert.equal(order.events.length, events, shown);
      order.check();
    }
  });

  it('is content with reports that agree with it', () => {
    for (const [settlement, report] of [
      [{ state: 'cancelled', endedAt: at }, ReportKind.ACCEPTED],
      [{ state: 'cancelled', endedAt: at }, ReportKind.CANCELLED],
      [{ state: 'cancelled', endedAt: at, trades: [trade(10n)] }, ReportKind.REJECTED],
      [{ state: 'expired', endedAt: at }, ReportKind.EXPIRED],
      [{ state: 'rejected', rejectReason: 'market_closed', endedAt: at }, ReportKind.REJECTED],
      [{ state: 'open' }, ReportKind.ACCEPTED],
    ] as [Partial<OrderSettlement>, ReportKind][]) {
      const order = new Kept();
      assert.equal(order.settle(settlement), undefined);
      const before = order.row.state;
      order.report(report);
      assert.deepEqual(order.contradictions, [], `${settlement.state}, then ${ReportKind[report]}`);
      assert.equal(order.row.state, before);
    }
  });

  it('goes on with an order that it says rests at the exchange', () => {
    const order = new Kept();
    assert.equal(order.settle({ state: 'open', exchangeOrderId: 'X7' }), undefined);
    assert.equal(order.row.exchangeOrderId, 'X7');
    order.report(ReportKind.TRADE, 60n, 1_000n);
    order.report(ReportKind.EXPIRED);
    assert.deepEqual(order.events, ['pending 0', 'partially_filled 60', 'expired 60']);
    assert.deepEqual(order.contradictions, []);
  });

  it('refuses what the order cannot have', () => {
    const refusals: [Partial<StoredOrder>, Partial<OrderSettlement>, RegExp][] = [
      [{ state: 'sending' }, { state: 'refused' }, /sending cannot be settled/],
      [{ state: 'pending' }, { state: 'refused' }, /pending cannot be settled as refused/],
      [{ state: 'cancelled' }, { state: 'open' }, /cancelled cannot be settled as open/],
      [{}, { state: 'cancelled' }, /`ended_at` is needed/],
      [{}, { state: 'refused', endedAt: at }, /`ended_at` is only/],
      [{}, { state: 'rejected', endedAt: at }, /`reject_reason` is needed/],
      [{}, { state: 'filled', trades: [trade(60n)] }, /only 60 of 100/],
      [{}, { state: 'open', trades: [trade(100n)] }, /so it is filled/],
      [{}, { state: 'filled', trades: [trade(60n), trade(60n)] }, /120 shares would have traded of 100/],
      [{}, { state: 'refused', trades: [trade(1n)] }, /has no trades/],
      [{}, { state: 'open', trades: [trade(0n, 0n)] }, /needs the step/],
      [{}, { state: 'open', trades: [trade(1n, 0n)] }, /price of 0/],
      [{}, { state: 'open', trades: [trade(1n, 1_000n, 7)] }, /step 7 of the history has no trade/],
      [{}, { state: 'open', trades: [{ ...trade(1n), at: now + 3_600_000 }] }, /in the future/],
      [{}, { state: 'open', trades: [{ ...trade(1n), at: 0 }] }, /before the order was stored/],
      [{}, { state: 'cancelled', endedAt: at - 120_001, trades: [trade(1n)] }, /later than the end of the order/],
      [{ state: 'pending' }, { state: 'open' }, /change nothing/],
      [{ state: 'pending' }, {}, /change nothing/],
      [{ exchangeOrderId: 'X1' }, { state: 'open', exchangeOrderId: 'X2' }, /another id of it, X1/],
    ];
    for (const [fields, settlement, problem] of refusals) {
      assert.match(new Kept(fields).settle(settlement) ?? 'it was settled', problem);
    }
  });

  it('ends an order at the minute in which the desk says that it traded', () => {
    assert.equal(new Kept().settle({ state: 'cancelled', endedAt: at - 120_000, trades: [trade(1n)] }), undefined);
  });

  it('keeps what must hold of an order in any order of reports and settlements', () => {
    const small = fc.bigInt({ min: 0n, max: 60n });
    const price = fc.constantFrom(900n, 1_000n, 1_100n);
    const settled = fc.record({
      kind: fc.constant('settle' as const),
      state: fc.constantFrom<SettledOrderState | undefined>(
        undefined,
        'refused',
        'rejected',
        'open',
        'cancelled',
        'expired',
        'filled',
      ),
      trades: fc.array(fc.record({ step: fc.constantFrom(0, 0, 2, 3, 4, 5), quantity: small, priceKobo: price }), {
        maxLength: 4,
      }),
    });
    const reported = fc.record({
      kind: fc.constant('report' as const),
      report: fc.constantFrom(
        ReportKind.ACCEPTED,
        ReportKind.TRADE,
        ReportKind.TRADE,
        ReportKind.TRADE,
        ReportKind.CANCELLED,
        ReportKind.EXPIRED,
        ReportKind.REJECTED,
      ),
      quantity: fc.bigInt({ min: 1n, max: 60n }),
      priceKobo: price,
    });
    let settlements = 0;
    fc.assert(
      fc.property(fc.array(fc.oneof(settled, reported), { maxLength: 14 }), (happenings) => {
        const order = new Kept();
        for (const one of happenings) {
          const before = order.row;
          if (one.kind === 'report') {
            const isTrade = one.report === ReportKind.TRADE;
            order.report(one.report, isTrade ? one.quantity : 0n, isTrade ? one.priceKobo : 0n);
          } else {
            const needsEnd = one.state === 'rejected' || one.state === 'cancelled' || one.state === 'expired';
            const problem = order.settle({
              state: one.state,
              endedAt: needsEnd ? at : undefined,
              rejectReason: one.state === 'rejected' ? 'market_closed' : undefined,
              trades: one.trades.map(({ step, quantity, priceKobo }) => ({
                ...{ step: step === 0 ? undefined : step, at, quantity },
                priceKobo: quantity === 0n ? 0n : priceKobo,
              })),
            });
            if (problem !== undefined) assert.deepEqual(order.row, before, 'a refused settlement changed something');
            else settlements += 1;
          }
          // A final state changes by nothing but a trade that was taken back from a filled order.
          if (orderStates.isFinal(before.state) && order.row.state !== before.state) {
            assert.equal(before.state, 'filled');
            assert.ok(order.row.filledQuantity < before.filledQuantity);
          }
          order.check();
        }
      }),
      { numRuns: 5_000 },
    );
    assert.ok(settlements > 500, `only ${settlements} settlements were made`);
  });
});

/** Returns a trade report's effect on an order. */
function effectOf(order: Kept, quantity: bigint, priceKobo: bigint, tradedAt: number | null): string {
  const { filledQuantity } = order.row;
  const contradictions = order.contradictions.length;
  order.report(ReportKind.TRADE, quantity, priceKobo, tradedAt);
  order.check();
  const change = order.row.filledQuantity - filledQuantity;
  if (order.contradictions.length > contradictions) return change === 0n ? 'held' : 'held and counted';
  if (change === quantity) return 'counted';
  return order.steps.at(-1)?.tradeSequence === null ? 'swallowed' : 'repeated';
}

describe('a trade that is reported after an operator has listed the trades of an open order', () => {
  const proposedAt = at + 300_000;
  const cases: [what: string, quantity: bigint, priceKobo: bigint, tradedAt: number | null, effect: string][] = [
    ['the entered trade at its instant', 40n, 1_000n, at, 'repeated'],
    ['the entered trade two minutes later', 40n, 1_000n, at + 120_000, 'repeated'],
    ['the entered trade two minutes earlier', 40n, 1_000n, at - 120_000, 'repeated'],
    ['a like trade beyond the margin, before the list', 40n, 1_000n, at - 120_001, 'held'],
    ['a like trade beyond the margin, up to the list', 40n, 1_000n, at + 120_001, 'held'],
    ['a like trade at the instant of the list', 40n, 1_000n, proposedAt, 'held'],
    ['a like trade after the list', 40n, 1_000n, proposedAt + 1, 'counted'],
    ['a like trade the next day', 40n, 1_000n, at + 86_400_000, 'counted'],
    ['a part of the entered trade', 20n, 1_000n, at, 'held'],
    ['the entered trade at another price', 40n, 1_001n, at, 'held'],
    ['another trade up to the list', 7n, 900n, proposedAt, 'held'],
    ['another trade after the list', 7n, 900n, proposedAt + 1, 'counted'],
    ['a like trade without an instant', 40n, 1_000n, null, 'held'],
    ['another trade without an instant', 7n, 900n, null, 'held'],
  ];
  for (const [what, quantity, priceKobo, tradedAt, effect] of cases) {
    it(`is ${effect}: ${what}`, () => {
      for (const state of ['uncertain', 'pending'] as const) {
        const order = new Kept({ state });
        const outcome = state === 'uncertain' ? ('open' as const) : undefined;
        assert.equal(order.settle({ state: outcome, trades: [trade(40n)] }, proposedAt), undefined);
        assert.equal(effectOf(order, quantity, priceKobo, tradedAt), effect);
      }
    });
  }

  it('counts every further trade of an order whose entered trade is never reported', () => {
    const order = new Kept({ state: 'pending' });
    assert.equal(order.settle({ trades: [trade(20n)] }, proposedAt), undefined);
    for (const day of [1, 2, 3]) assert.equal(effectOf(order, 20n, 1_000n, at + day * 86_400_000), 'counted');
    assert.equal(order.row.filledQuantity, 80n);
  });

  it('keeps when a trade traded, and so when the order was filled, if the trade is corrected later', () => {
    const order = new Kept({ state: 'pending' });
    order.report(ReportKind.TRADE, 60n, 1_000n, at);
    const corrected = { ...trade(100n, 1_000n, order.lastStep), at: at + 60_000 };
    assert.equal(order.settle({ state: 'filled', trades: [corrected] }, proposedAt), undefined);
    assert.deepEqual([order.row.state, order.row.filledAt], ['filled', at]);
  });

  it('keeps the end of an earlier list that a later settlement would shorten', () => {
    const order = new Kept({ state: 'pending' });
    const listedUntil = proposedAt + 500_000;
    assert.equal(order.settle({ trades: [{ ...trade(10n), at: listedUntil }] }, proposedAt), undefined);
    assert.equal(order.settle({ trades: [trade(20n)] }, proposedAt + 1_000), undefined);
    assert.equal(readRecord(order.row.settlement).listedUntil, listedUntil);
  });

  it('changes nothing of an order that an earlier settlement ended, after a further one corrected a trade', () => {
    const order = new Kept({ state: 'pending' });
    order.report(ReportKind.TRADE, 60n, 1_000n, at);
    const step = order.lastStep;
    assert.equal(order.settle({ state: 'cancelled', endedAt: at + 1 }, proposedAt), undefined);
    assert.equal(order.settle({ trades: [trade(50n, 1_000n, step)] }, proposedAt + 1), undefined);
    assert.deepEqual([order.row.state, readRecord(order.row.settlement).isEnded], ['cancelled', true]);
    assert.equal(effectOf(order, 10n, 1_000n, proposedAt + 2), 'held');
  });

  it('repeats the first of two entered trades that are equally near in time, and then the other', () => {
    const order = new Kept({ state: 'pending' });
    const trades = [trade(10n), { ...trade(10n), at: at + 60_000 }];
    assert.equal(order.settle({ trades }, proposedAt), undefined);
    const steps = readRecord(order.row.settlement).waiting.map(({ step }) => step);
    for (const step of steps) {
      assert.equal(effectOf(order, 10n, 1_000n, at + 30_000), 'repeated');
      assert.equal(order.steps.at(-1)?.tradeSequence, step);
    }
    assert.deepEqual(readRecord(order.row.settlement).waiting, []);
  });

  it('repeats the entered trade that is nearest in time', () => {
    const order = new Kept({ state: 'pending' });
    const trades = [trade(10n), { ...trade(10n), at: at + 60_000 }];
    assert.equal(order.settle({ trades }, proposedAt), undefined);
    assert.equal(effectOf(order, 10n, 1_000n, at + 50_000), 'repeated');
    assert.deepEqual(
      readRecord(order.row.settlement).waiting.map((waiting) => waiting.at),
      [at],
    );
    assert.equal(effectOf(order, 10n, 1_000n, at + 1_000), 'repeated');
    assert.equal(order.row.settlement, null);
  });

  it('is settled by its step when the desk gave two trades as one, and later trades count again', () => {
    const order = new Kept({ state: 'pending' });
    assert.equal(order.settle({ trades: [trade(40n)] }, proposedAt), undefined);
    const entered = order.lastStep;
    const held = [0, 1].map(() => {
      assert.equal(effectOf(order, 20n, 1_000n, at), 'held');
      return trade(20n, 1_000n, order.lastStep);
    });
    assert.equal(order.settle({ trades: [trade(0n, 0n, entered), ...held] }, proposedAt + 1), undefined);
    assert.equal(order.row.filledQuantity, 40n);
    assert.equal(order.row.settlement, null);
    assert.equal(effectOf(order, 5n, 1_000n, at), 'counted');
  });

  it('keeps the list of an entered trade whose instant is later than the proposal', () => {
    const order = new Kept({ state: 'pending' });
    assert.equal(order.settle({ trades: [{ ...trade(40n), at: at + 5_000 }] }, at), undefined);
    assert.equal(effectOf(order, 20n, 1_000n, at + 5_000), 'held');
    assert.equal(effectOf(order, 20n, 1_000n, at + 5_001), 'counted');
  });

  it('keeps the instant of an entered trade that is corrected', () => {
    const order = new Kept({ state: 'pending' });
    assert.equal(order.settle({ trades: [trade(40n)] }, proposedAt), undefined);
    const corrected = { ...trade(30n, 990n, order.lastStep), at: at + 400_000 };
    assert.equal(order.settle({ trades: [corrected] }, at + 500_000), undefined);
    assert.equal(effectOf(order, 30n, 990n, at + 300_001), 'counted');
    assert.equal(effectOf(order, 30n, 990n, at), 'repeated');
  });

  it('is held unless it has quantity and price of an entered trade, if an earlier version stored no instants', () => {
    const settlement = JSON.stringify({ ended: false, waiting: [[3, '40', '1000']] });
    const fields = { state: 'pending', settlement } as const;
    assert.deepEqual(readRecord(settlement), {
      ...{ isEnded: false, listedUntil: undefined },
      waiting: [{ step: 3, quantity: 40n, priceKobo: 1_000n, at: undefined }],
    });
    assert.equal(effectOf(new Kept(fields), 40n, 1_000n, at + 86_400_000), 'repeated');
    assert.equal(effectOf(new Kept(fields), 20n, 1_000n, at + 86_400_000), 'held');
    const added = new Kept(fields);
    assert.equal(added.settle({ trades: [trade(10n)] }, proposedAt), undefined);
    assert.equal(effectOf(added, 20n, 1_000n, proposedAt + 1), 'held', 'the instant of the first list is not known');
    assert.equal(effectOf(added, 40n, 1_000n, at), 'repeated');
    assert.equal(effectOf(added, 10n, 1_000n, at), 'repeated');
    assert.equal(effectOf(added, 20n, 1_000n, at), 'counted');
  });

  it('counts neither twice nor not at all, however the desk puts the trades together', () => {
    const price = fc.constantFrom(900n, 1_000n);
    const traded = fc.record({ quantity: fc.bigInt({ min: 1n, max: 4n }), priceKobo: price });
    const line = fc.array(fc.bigInt({ min: 1n, max: 4n }), { minLength: 1, maxLength: 3 });
    const lines = fc.array(fc.record({ parts: line, priceKobo: price }), { minLength: 1, maxLength: 5 });
    const later = fc.array(traded, { maxLength: 5 });
    let heldTrades = 0;
    fc.assert(
      fc.property(lines, later, fc.infiniteStream(fc.nat()), (listed, further, order) => {
        const kept = new Kept();
        const sumOf = (parts: readonly bigint[]) => parts.reduce((total, part) => total + part, 0n);
        const trades = listed.map(({ parts, priceKobo }) => trade(sumOf(parts), priceKobo));
        assert.equal(kept.settle({ state: 'open', trades }, proposedAt), undefined);
        const reports = [
          ...listed.flatMap(({ parts, priceKobo }) => parts.map((quantity) => ({ quantity, priceKobo, tradedAt: at }))),
          ...further.map((one) => ({ ...one, tradedAt: proposedAt + 1 })),
        ]
          .map((report) => ({ report, rank: order.next().value }))
          .sort((one, other) => one.rank - other.rank);
        for (const { report } of reports) {
          const { quantity, priceKobo, tradedAt } = report;
          const effect = effectOf(kept, quantity, priceKobo, tradedAt);
          if (tradedAt === at) assert.ok(effect === 'held' || effect === 'repeated', effect);
          else assert.equal(effect, 'counted');
          if (effect === 'held') heldTrades += 1;
        }
        const value = (all: readonly { quantity: bigint; priceKobo: bigint }[]) =>
          sumOf(all.map(({ quantity, priceKobo }) => quantity * priceKobo));
        assert.equal(kept.row.filledValueKobo, value(reports.map(({ report }) => report)));
      }),
      { numRuns: 2_000 },
    );
    assert.ok(heldTrades > 500, `only ${heldTrades} trades were held`);
  });
});

describe('settling an application or an allocation by evidence', () => {
  const application: SettledApplicationFacts = {
    ...{ state: 'uncertain', reference: null, account: null, reason: null, rejectReason: null, param: null },
    ...{ lastReport: 0n, updatedAt: 1, settlement: null },
  };
  const none = { reference: undefined, account: undefined, rejectReason: undefined };

  it('leads an application to each state with what that state needs', () => {
    const outcomes = [
      { ...none, state: 'opened', account: 'A1' },
      { ...none, state: 'documents_required', reference: 'B1' },
      { ...none, state: 'submitted', reference: 'B1' },
      { ...none, state: 'rejected', rejectReason: 'declined_by_broker' },
      { ...none, state: 'unplaced' },
    ] as const;
    for (const outcome of outcomes) {
      const settling = settleApplication(application, outcome, now);
      assert.ok('changes' in settling, outcome.state);
      assert.equal(settling.changes[0]?.fields.state, outcome.state);
    }
    for (const state of ['opened', 'documents_required', 'submitted', 'rejected'] as const) {
      assert.ok('problem' in settleApplication(application, { ...none, state }, now), state);
    }
    for (const state of ['sending', 'opened', 'rejected', 'refused', 'unplaced'] as const) {
      assert.ok('problem' in settleApplication({ ...application, state }, { ...none, state: 'unplaced' }, now), state);
    }
  });

  it('keeps an allocation as it was settled, whatever the broker records later', () => {
    const allocation: SettledAllocationFacts = {
      ...{ state: 'uncertain', reason: null, rejectReason: null, brokerReference: null },
      ...{ createdAt: at, updatedAt: at, settlement: null },
    };
    const booked = { state: 'booked', brokerReference: 'B1', rejectReason: undefined, decidedAt: at } as const;
    const settling = settleAllocation(allocation, booked, now);
    assert.ok('changes' in settling);
    const row = { ...allocation, ...settling.changes[0]?.fields };
    const record = (outcome: AllocationOutcome, brokerReference = '') =>
      create(AllocationRecordSchema, { outcome, brokerReference, at: timestampFromMs(at) });
    assert.equal(applyAllocationRecord(row, record(AllocationOutcome.BOOKED, 'B1'), now), undefined);
    for (const other of [record(AllocationOutcome.BOOKED, 'B2'), record(AllocationOutcome.REJECTED)]) {
      const applied = applyAllocationRecord(row, other, now);
      assert.equal(applied?.inconsistent, true);
      assert.equal(applied?.changed, false);
      assert.deepEqual(applied?.row, row);
    }
    assert.ok('problem' in settleAllocation(row, booked, now));
    assert.ok('problem' in settleAllocation(allocation, { ...booked, brokerReference: undefined }, now));
    assert.ok('problem' in settleAllocation(allocation, { ...booked, decidedAt: undefined }, now));
  });
});
