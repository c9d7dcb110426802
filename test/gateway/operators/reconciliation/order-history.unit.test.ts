import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  afterStep,
  type HistoryStep,
  isIn,
  newHistory,
  type OrderHistory,
  type StatementPeriod,
} from '../../../../src/gateway/operators/reconciliation/order-history.ts';
import {
  compareOrder,
  noTrades,
  type OurOrder,
  type StatedOrder,
} from '../../../../src/gateway/operators/reconciliation/rules.ts';

const terms = { account: 'ACC1', symbol: 'DANGCEM', side: 'buy', quantity: 100n, exchangeOrderId: 'X1' } as const;
const account = { account: 'ACC1', symbol: 'DANGCEM' };
const none = {
  ...{ sequence: 1, kind: 'report', quantity: null, priceKobo: null },
  ...{ tradeSequence: null, filledChange: null, valueChangeKobo: null },
} as const;
const [from, to] = [1_000, 2_000];
const period: StatementPeriod = { from, to };

const step = (reportNumber: bigint, state: string, upstreamAt: number | null, at: number): HistoryStep => ({
  ...{ ...none, reportNumber, state, upstreamAt, at },
});
const historyOf = (createdAt: number, steps: readonly HistoryStep[], of = period): OrderHistory =>
  steps.reduce((history, next) => afterStep(history, next, of), newHistory(createdAt));

/** The gateway's side, of an order that is `state` now. */
function oursOf({ state, possibleStates, isReported }: OrderHistory, now: string): OurOrder {
  return {
    ...{ ...terms, partnerId: 'par_a', filledQuantity: 0n, isUnsettled: false, trades: noTrades },
    ...{ state: state ?? now, possibleStates, isReported },
  };
}

const statedAs = (state: string): StatedOrder => ({ ...terms, state, filledQuantity: 0n });

describe('the history of an order whose end has no time', () => {
  const accepted = step(1n, 'pending', 1_100, 1_110);
  const cases: readonly [
    name: string,
    steps: readonly HistoryStep[],
    state: string | undefined,
    possible: string[],
    isReported: boolean,
  ][] = [
    [
      'has either state if it is learnt later',
      [accepted, step(2n, 'expired', null, 2_500)],
      'pending',
      ['pending', 'expired'],
      true,
    ],
    [
      'has either state if it is learnt at the end of the period',
      [accepted, step(2n, 'expired', null, to)],
      'pending',
      ['pending', 'expired'],
      true,
    ],
    [
      'has ended if it is learnt 1 ms before the end of the period',
      [accepted, step(2n, 'expired', null, to - 1)],
      'expired',
      [],
      true,
    ],
    [
      'has not ended if the report before it came after the period',
      [accepted, step(2n, 'partially_filled', to, to), step(3n, 'expired', null, 2_500)],
      'pending',
      [],
      true,
    ],
    [
      'need not be in the statement if it can have ended before the period',
      [step(1n, 'pending', 900, 910), step(2n, 'expired', null, 1_500)],
      'expired',
      [],
      false,
    ],
    [
      'need not be in the statement if it has ended before the period',
      [step(1n, 'pending', null, 950), step(2n, 'expired', null, 990)],
      'expired',
      [],
      false,
    ],
  ];
  for (const [name, steps, state, possible, isReported] of cases) {
    it(name, () => {
      const history = historyOf(800, steps);
      assert.deepEqual([history.state, history.possibleStates, history.isReported], [state, possible, isReported]);
    });
  }

  it('an order belongs to a period by the time of its report, from the first millisecond to the last', () => {
    for (const [at, state, isReported] of [
      [from - 1, 'pending', false],
      [from, 'pending', true],
      [to - 1, 'pending', true],
      [to, undefined, false],
    ] as const) {
      const history = historyOf(800, [step(1n, 'pending', at, at + 5)]);
      assert.deepEqual([history.state, history.isReported], [state, isReported], `reported at ${at}`);
      assert.deepEqual(history.possibleStates, []);
    }
  });

  it('an order has a trade in the period by the time of the trade, and gives back what traded from its end on', () => {
    for (const [at, listed, filledLater] of [
      [from - 1, 0, 0n],
      [from, 1, 0n],
      [to - 1, 1, 0n],
      [to, 0, 7n],
      [to + 1, 0, 7n],
    ] as const) {
      const trade = { ...step(1n, 'partially_filled', at, at + 5), quantity: 7n, priceKobo: 9n, filledChange: 7n };
      const history = historyOf(800, [trade]);
      assert.deepEqual([history.trades.listed.length, history.filledLater], [listed, filledLater], `traded at ${at}`);
    }
  });

  it('an order must be in the statement if an end without a time followed a report at the start of the period', () => {
    for (const [at, isReported] of [
      [from - 1, false],
      [from, true],
    ] as const) {
      const history = historyOf(800, [step(1n, 'pending', at, at), step(2n, 'expired', null, 1_500)]);
      assert.equal(history.isReported || at < from, true);
      assert.equal(historyOf(at, [step(2n, 'expired', null, 1_500)]).isReported, isReported, `placed at ${at}`);
    }
  });

  it('an order is known from the earlier of both times if a report says a later time than that of its arrival', () => {
    // The broker's clock is ahead: the report says a time after the period, but it was there before the end.
    const early = historyOf(800, [step(1n, 'pending', 1_900, 1_200)]);
    assert.equal(early.since, 1_200);
    assert.equal(historyOf(800, [step(1n, 'pending', 1_200, 1_900)]).since, 1_200);
    assert.equal(historyOf(1_500, [step(1n, 'pending', 1_200, 1_900)]).since, 1_500);
  });

  it('must be in the statement of the period in which it was placed and ended', () => {
    const history = historyOf(1_050, [step(1n, 'expired', null, 1_500)]);
    assert.deepEqual([history.state, history.isReported], ['expired', true]);
  });

  it('makes no break on any day, whenever the order ended', () => {
    const dayMs = 1_000;
    const instants = fc.tuple(fc.nat(5_000), fc.nat(2_000), fc.nat(3_000), fc.nat(3_000));
    const ends = fc.constantFrom('expired', 'cancelled', 'rejected');
    fc.assert(
      fc.property(instants, ends, fc.boolean(), ([createdAt, toAccept, toEnd, toLearn], end, isAcceptTimed) => {
        const acceptedAt = createdAt + toAccept;
        const endedAt = acceptedAt + toEnd;
        const steps = [
          step(1n, 'pending', isAcceptTimed ? acceptedAt : null, acceptedAt),
          step(2n, end, null, endedAt + toLearn),
        ];
        for (let day = 0; day < 14; day += 1) {
          const of = { from: day * dayMs, to: (day + 1) * dayMs };
          const isIn = (at: number) => at >= of.from && at < of.to;
          // The statement of a day has what the broker reported of that day.
          const stated = isIn(acceptedAt) || isIn(endedAt) ? statedAs(endedAt < of.to ? end : 'open') : undefined;
          // The gateway compares an order that the statement has, and those that it changed since the day.
          const ours = oursOf(historyOf(createdAt, steps, of), end);
          assert.deepEqual(compareOrder('ord_1', ours, stated, noTrades, account), [], `on day ${day}`);
        }
      }),
    );
  });

  it('makes a break if the statement has a state that the order had at no time', () => {
    const history = historyOf(800, [accepted, step(2n, 'expired', null, 2_500)]);
    const found = compareOrder('ord_1', oursOf(history, 'expired'), statedAs('cancelled'), noTrades, account);
    assert.deepEqual(
      found.map(({ kind }) => kind),
      ['order_state'],
    );
  });

  it('makes a break if the statement has an end that the broker stated for a later day', () => {
    const history = historyOf(800, [accepted, step(2n, 'expired', to, 2_500)]);
    const found = compareOrder('ord_1', oursOf(history, 'expired'), statedAs('expired'), noTrades, account);
    assert.deepEqual(
      found.map(({ kind }) => kind),
      ['order_state'],
    );
  });
});

describe('a period of a statement', () => {
  it('the period of a statement has its first millisecond and not that of its end, nor those of the days around it', () => {
    const dayMs = 86_400_000;
    const day = { from: Date.parse('2026-03-02T00:00:00+01:00'), to: Date.parse('2026-03-03T00:00:00+01:00') };
    for (const [at, isInside] of [
      [day.from - dayMs, false],
      [day.from - 1, false],
      [day.from, true],
      [day.to - 1, true],
      [day.to, false],
      [day.to + dayMs - 1, false],
    ] as const) {
      assert.equal(isIn(day, at), isInside, new Date(at).toISOString());
    }
  });
});

describe('the history of an order that operators settled', () => {
  const trade = (sequence: number, quantity: bigint, at: number): HistoryStep => ({
    ...{ ...none, sequence, state: 'partially_filled', reportNumber: BigInt(sequence), upstreamAt: at, at },
    ...{ quantity, priceKobo: 1_000n, filledChange: quantity, valueChangeKobo: quantity * 1_000n },
  });
  const settled = (sequence: number, at: number, more: Partial<HistoryStep>): HistoryStep => ({
    ...trade(sequence, 0n, at),
    ...{ kind: 'settled_by_operator', reportNumber: null, ...more },
  });
  const listed = ({ trades }: OrderHistory) =>
    trades.listed.map(({ quantity, priceKobo }) => `${quantity} ${priceKobo}`);

  it('lacks a trade of the period that was taken back, and has a corrected one with its new terms', () => {
    const bust = { tradeSequence: 1, quantity: 0n, priceKobo: 0n, filledChange: -60n, valueChangeKobo: -60_000n };
    const correction = {
      tradeSequence: 2,
      quantity: 30n,
      priceKobo: 990n,
      filledChange: -10n,
      valueChangeKobo: -10_300n,
    };
    const steps = [trade(1, 60n, 1_100), trade(2, 40n, 1_200), settled(3, 1_300, bust), settled(4, 1_400, correction)];
    const history = historyOf(1_000, steps);
    assert.deepEqual(listed(history), ['30 990']);
    assert.deepEqual([history.trades.count, history.trades.quantity, history.trades.valueKobo], [1, 30n, 29_700n]);
  });

  it('gives back after the period what was taken back after it', () => {
    const bust = { tradeSequence: 1, quantity: 0n, priceKobo: 0n, filledChange: -60n, valueChangeKobo: -60_000n };
    const history = historyOf(1_000, [trade(1, 60n, 1_100), settled(2, 2_500, bust)]);
    assert.deepEqual(listed(history), ['60 1000']);
    assert.equal(history.filledLater, -60n);
  });

  it('has a trade that was entered by hand once, also when its report comes', () => {
    const entered = { quantity: 20n, priceKobo: 990n, filledChange: 20n, valueChangeKobo: 19_800n };
    const repeated = {
      ...trade(3, 20n, 1_300),
      priceKobo: 990n,
      tradeSequence: 2,
      filledChange: 0n,
      valueChangeKobo: 0n,
    };
    const history = historyOf(1_000, [trade(1, 60n, 1_100), settled(2, 1_200, entered), repeated]);
    assert.deepEqual(listed(history), ['60 1000', '20 990']);
    assert.equal(history.trades.quantity, 80n);
    const refused = { ...trade(4, 50n, 2_100), kind: 'contradiction', state: 'refused', filledChange: 0n };
    assert.equal(afterStep(history, refused, period).filledLater, 0n, 'a trade that was held back counts');
  });
});
