import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AccountStatus, InstrumentKind, OrderType, RejectReason } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { reasonToReject } from '../../../src/simulator/exchange/checks.ts';
import { orderRequest } from '../../support/simulated-broker.ts';

type Checked = Parameters<typeof reasonToReject>[0];

const instrument = {
  ...{ symbol: 'OWN', name: 'Own', kind: InstrumentKind.EQUITY, lowerKobo: 900, upperKobo: 1_100, quoteKobo: 1_000 },
  ...{ lastKobo: 1_000, halted: false, pinned: false, position: 1 },
};
const good: Checked = {
  ...{ submission: orderRequest(), account: AccountStatus.ACTIVE, forbidden: undefined, instrument },
  ...{ phase: 'continuous', hasRoom: true },
};
const limit = (priceKobo: number | null) => ({ submission: orderRequest({ priceKobo }) });

describe('the checks of the simulated exchange', () => {
  const failing: [RejectReason, Partial<Checked>][] = [
    [RejectReason.ACCOUNT_NOT_AT_BROKER, { account: AccountStatus.NOT_AT_BROKER }],
    [RejectReason.SETTLEMENT_LOCKOUT, { forbidden: RejectReason.SETTLEMENT_LOCKOUT }],
    [RejectReason.REJECTED_BY_EXCHANGE, { forbidden: RejectReason.REJECTED_BY_EXCHANGE }],
    [RejectReason.UNKNOWN_SYMBOL, { instrument: undefined }],
    [RejectReason.MARKET_CLOSED, { phase: 'closed' }],
    [RejectReason.SYMBOL_NOT_TRADABLE, { instrument: { ...instrument, halted: true } }],
    [RejectReason.PRICE_OUTSIDE_BAND, limit(899)],
    [RejectReason.REJECTED_BY_EXCHANGE, { hasRoom: false }],
  ];

  it('an order that nothing is wrong with is accepted, in each phase that takes orders', () => {
    assert.equal(reasonToReject(good), undefined);
    assert.equal(reasonToReject({ ...good, phase: 'collecting' }), undefined);
    assert.equal(reasonToReject({ ...good, ...limit(null) }), undefined);
  });

  it('each check rejects with its own reason', () => {
    for (const [reason, changes] of failing)
      assert.equal(reasonToReject({ ...good, ...changes }), reason, RejectReason[reason]);
    assert.equal(reasonToReject({ ...good, phase: 'halted' }), RejectReason.MARKET_CLOSED);
    const lockedOut = { ...good, account: AccountStatus.SETTLEMENT_LOCKOUT };
    assert.equal(reasonToReject(lockedOut), RejectReason.SETTLEMENT_LOCKOUT);
  });

  it('the first reason in the order of the checks is given where there are several', () => {
    let all = good;
    for (const [reason, changes] of [...failing].reverse()) {
      // The account's state, the forbidden activity and the instrument each have one value only.
      all = { ...all, ...changes };
      assert.equal(reasonToReject(all), reason, RejectReason[reason]);
    }
  });

  it('a fund takes limit orders only, and a stock takes both', () => {
    const fund = { ...instrument, kind: InstrumentKind.ETF };
    const market = orderRequest({ type: OrderType.MARKET, priceKobo: null });
    assert.equal(reasonToReject({ ...good, instrument: fund, submission: market }), RejectReason.LIMIT_ORDERS_ETF_ONLY);
    assert.equal(reasonToReject({ ...good, instrument: fund }), undefined);
    assert.equal(reasonToReject({ ...good, submission: market }), undefined);
  });

  it('a price lies in the band, its ends included, and on a tick', () => {
    const wide = { ...instrument, lowerKobo: 900, upperKobo: 99_999 };
    for (const [priceKobo, expected] of [
      [899, RejectReason.PRICE_OUTSIDE_BAND],
      [900, undefined],
      [99_999, RejectReason.PRICE_OFF_TICK],
      [100_000, RejectReason.PRICE_OUTSIDE_BAND],
      [20_001, RejectReason.PRICE_OFF_TICK],
    ] as const) {
      assert.equal(reasonToReject({ ...good, instrument: wide, ...limit(priceKobo) }), expected, String(priceKobo));
    }
    assert.equal(reasonToReject({ ...good, ...limit(1_100) }), undefined);
    assert.equal(reasonToReject({ ...good, ...limit(1_101) }), RejectReason.PRICE_OUTSIDE_BAND);
  });
});
