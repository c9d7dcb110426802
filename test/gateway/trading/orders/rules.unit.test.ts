import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  applyReport,
  countedKobo,
  estimatedTotalKobo,
  mayCancelBeUnderWay,
  type OrderFacts,
  type OrderStateName,
  orderStates,
} from '../../../../src/gateway/trading/orders/rules.ts';
import { RejectReason, type Report, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { OrderStateSchema } from '../../../../src/gen/marina/gateway/v1/orders_pb.ts';
import { enumNames } from '../../../../src/kit/enums.ts';
import { fc } from '../../../support/properties.ts';

const now = Date.UTC(2026, 2, 2, 9, 30);

function facts(state: OrderStateName, fields: Partial<OrderFacts> = {}): OrderFacts {
  return {
    state,
    quantity: 100n,
    filledQuantity: 0n,
    filledValueKobo: 0n,
    filledAt: null,
    exchangeOrderId: null,
    reason: null,
    rejectReason: null,
    countedPriceKobo: 10n,
    lastReport: 0n,
    updatedAt: now,
    ...fields,
  };
}

function report(number: number, kind: ReportKind, fields: { quantity?: bigint; reason?: RejectReason } = {}): Report {
  return create(ReportSchema, {
    number: BigInt(number),
    clientOrderId: 'ord_x',
    exchangeOrderId: 'X1',
    kind,
    at: timestampFromMs(now),
    quantity: fields.quantity ?? 0n,
    priceKobo: kind === ReportKind.TRADE ? 10n : 0n,
    rejectReason: fields.reason ?? RejectReason.UNSPECIFIED,
  });
}

const states = Object.keys(orderStates.transitions) as OrderStateName[];

describe('order rules', () => {
  it('they know the states partners are shown, and no other', () => {
    assert.deepEqual([...states].sort(), [...enumNames(OrderStateSchema).values()].sort());
  });

  it('an order goes only where the table lets it', () => {
    for (const from of states) {
      for (const to of states) {
        const go = () => orderStates.move(facts(from), to, null, now);
        if (orderStates.transitions[from].includes(to)) assert.equal(go().state, to);
        else assert.throws(go);
      }
    }
  });

  it('filled in three parts passes partially_filled twice and then filled', () => {
    let order = facts('sending');
    const seen: string[] = [];
    for (const next of [
      report(1, ReportKind.ACCEPTED),
      report(2, ReportKind.TRADE, { quantity: 30n }),
      report(5, ReportKind.TRADE, { quantity: 30n }),
      report(9, ReportKind.TRADE, { quantity: 40n }),
    ]) {
      const applied = applyReport(order, next, now);
      assert.ok(applied?.changed);
      order = applied.row;
      seen.push(order.state);
    }
    assert.deepEqual(seen, ['pending', 'partially_filled', 'partially_filled', 'filled']);
    assert.equal(order.filledQuantity, 100n);
    assert.equal(order.filledAt, now);
  });

  it('a report seen before changes nothing', () => {
    const order = facts('pending', { lastReport: 7n });
    assert.equal(applyReport(order, report(7, ReportKind.TRADE, { quantity: 1n }), now), undefined);
    assert.equal(applyReport(order, report(3, ReportKind.CANCELLED), now), undefined);
  });

  it('a late fill of a cancelled order is counted and told, and the order stays cancelled', () => {
    const order = facts('cancelled', { lastReport: 2n });
    const applied = applyReport(order, report(3, ReportKind.TRADE, { quantity: 40n }), now);
    assert.equal(applied?.row.state, 'cancelled');
    assert.equal(applied.row.filledQuantity, 40n);
    assert.equal(applied.changed, true);
    assert.equal(countedKobo(applied.row), 400n);
  });

  it('more filled than ordered is a contradiction and changes nothing but the number seen', () => {
    const order = facts('partially_filled', { filledQuantity: 90n, lastReport: 2n });
    const applied = applyReport(order, report(3, ReportKind.TRADE, { quantity: 11n }), now);
    assert.equal(applied?.inconsistent, true);
    assert.equal(applied.changed, false);
    assert.deepEqual({ ...applied.row, lastReport: 2n, exchangeOrderId: null }, order);
  });

  it('an order refused here that the exchange accepts is a contradiction a person must see', () => {
    const applied = applyReport(facts('refused'), report(1, ReportKind.ACCEPTED), now);
    assert.equal(applied?.inconsistent, true);
    assert.equal(applied.row.state, 'refused');
    assert.equal(applied.changed, true, 'the partner hears of it');
    assert.match(applied.row.reason ?? '', /That was wrong\. It may trade\.$/);
  });

  it('a refused order that trades keeps its state and counts nothing, and its reason says what has traded', () => {
    const reason = (kind: ReportKind, order: OrderFacts, quantity = 0n) => {
      const applied = applyReport(order, report(Number(order.lastReport) + 1, kind, { quantity }), now);
      assert.deepEqual([applied?.changed, applied?.inconsistent, applied?.row.state], [true, true, 'refused']);
      assert.equal(countedKobo(applied?.row ?? order), 0n);
      return applied?.row ?? order;
    };
    const traded = reason(ReportKind.TRADE, facts('refused'), 30n);
    assert.match(traded.reason ?? '', /30 of 100 shares have traded\. It may trade further\.$/);
    const ended = reason(ReportKind.CANCELLED, traded);
    assert.match(ended.reason ?? '', /30 of 100 shares have traded\. What had not traded was cancelled\.$/);
    const full = reason(ReportKind.TRADE, traded, 70n);
    assert.match(full.reason ?? '', /100 of 100 shares have traded\.$/);
  });

  it('a trade of an order that was refused or rejected is counted, told, and a person must see it', () => {
    for (const state of ['refused', 'rejected'] as const) {
      const applied = applyReport(facts(state), report(1, ReportKind.TRADE, { quantity: 30n }), now);
      assert.deepEqual(
        [applied?.row.state, applied?.row.filledQuantity, applied?.changed, applied?.inconsistent],
        [state, 30n, true, true],
      );
    }
    const late = applyReport(facts('expired'), report(1, ReportKind.TRADE, { quantity: 30n }), now);
    assert.equal(late?.inconsistent, false, 'a late fill of what was at the exchange is none');
  });

  it('an order is filled when the exchange says that it traded, and when it came where that cannot be', () => {
    const trade = report(1, ReportKind.TRADE, { quantity: 100n });
    const second = 1_000;
    for (const [at, filledAt] of [
      [timestampFromMs(now - 5 * second), now - 5 * second],
      [undefined, now],
      [timestampFromMs(Date.UTC(1999, 11, 31)), now],
      [timestampFromMs(Date.UTC(2201, 0, 1)), now],
    ] as const) {
      const filled = applyReport(facts('pending'), { ...trade, at }, now)?.row;
      assert.deepEqual([filled?.state, filled?.filledAt], ['filled', filledAt]);
    }
    const part = applyReport(facts('pending'), report(1, ReportKind.TRADE, { quantity: 99n }), now)?.row;
    assert.deepEqual([part?.state, part?.filledAt], ['partially_filled', null]);
  });

  it('a trade at the highest price there can be counts, and one above it or at none is a contradiction', () => {
    for (const [priceKobo, contradiction] of [
      [10_000_000_000n, false],
      [10_000_000_001n, true],
      [0n, true],
    ] as const) {
      const trade = { ...report(1, ReportKind.TRADE, { quantity: 1n }), priceKobo };
      assert.equal(applyReport(facts('pending'), trade, now)?.inconsistent, contradiction, `${priceKobo} kobo`);
    }
  });

  it("the exchange's first id of an order stays, and one that is too long or not printable is none", () => {
    const idAfter = (before: string | null, exchangeOrderId: string) =>
      applyReport(
        facts('pending', { exchangeOrderId: before }),
        { ...report(1, ReportKind.ACCEPTED), exchangeOrderId },
        now,
      )?.row.exchangeOrderId;
    assert.equal(idAfter(null, 'X'.repeat(64)), 'X'.repeat(64));
    assert.equal(idAfter(null, 'X'.repeat(65)), null);
    assert.equal(idAfter(null, ''), null);
    assert.equal(idAfter(null, 'X\u001b[2J'), null);
    assert.equal(idAfter(null, 'X\n'), null);
    assert.equal(idAfter(null, '\u202eX'), null);
    assert.equal(idAfter('X1', 'X2'), 'X1');
  });

  it('an acceptance that comes after a fill tells nothing new', () => {
    const order = facts('partially_filled', { filledQuantity: 1n });
    const applied = applyReport(order, report(1, ReportKind.ACCEPTED), now);
    assert.equal(applied?.changed, false);
    assert.equal(applied.inconsistent, false);
  });

  it('a rejection carries a reason from our own list, whatever the exchange says', () => {
    const known = applyReport(
      facts('sending'),
      report(1, ReportKind.REJECTED, { reason: RejectReason.MARKET_CLOSED }),
      now,
    );
    assert.equal(known?.row.rejectReason, 'market_closed');
    const unknown = applyReport(facts('sending'), report(1, ReportKind.REJECTED, { reason: 99 as RejectReason }), now);
    assert.equal(unknown?.row.rejectReason, 'rejected_by_exchange');
  });

  it('the value counted follows the table of states', () => {
    const filled = { filledQuantity: 30n };
    for (const state of states) {
      const expected = state === 'refused' ? 0n : ['rejected', 'cancelled', 'expired'].includes(state) ? 300n : 1_000n;
      assert.equal(countedKobo(facts(state, filled)), expected, state);
    }
  });

  it('whatever the exchange reports, an order never overfills, never leaves a final state, never goes back in time', () => {
    const reports = fc.array(
      fc.record({
        kind: fc.constantFrom(
          ReportKind.UNSPECIFIED,
          ReportKind.ACCEPTED,
          ReportKind.REJECTED,
          ReportKind.TRADE,
          ReportKind.CANCELLED,
          ReportKind.EXPIRED,
        ),
        quantity: fc.bigInt(-5n, 150n),
        number: fc.integer({ min: 1, max: 12 }),
        at: fc.integer({ min: -5_000, max: 5_000 }),
      }),
      { maxLength: 15 },
    );
    fc.assert(
      fc.property(fc.constantFrom(...states), reports, (start, list) => {
        let order = facts(start, { filledQuantity: start === 'filled' ? 100n : 0n });
        for (const { kind, quantity, number, at } of list) {
          const before = order;
          const applied = applyReport(order, report(number, kind, { quantity }), now + at);
          if (applied === undefined) {
            assert.ok(BigInt(number) <= before.lastReport);
            continue;
          }
          order = applied.row;
          assert.ok(order.filledQuantity <= order.quantity);
          assert.ok(order.filledQuantity >= before.filledQuantity);
          assert.ok(order.updatedAt >= before.updatedAt);
          assert.ok(order.lastReport > before.lastReport);
          if (orderStates.isFinal(before.state)) assert.equal(order.state, before.state);
          else assert.ok(order.state === before.state || orderStates.transitions[before.state].includes(order.state));
          if (order.state !== before.state) assert.ok(applied.changed);
          if (order.state === 'filled') assert.equal(order.filledQuantity, order.quantity);
        }
      }),
    );
  });
});

describe('a cancel that was sent', () => {
  it('a cancel may be under way until the millisecond at which its time is over, if no wrong clock set it', () => {
    for (const [aheadMs, mayBe] of [
      [-1, false],
      [0, false],
      [1, true],
      [300_000, true],
      [300_001, false],
    ] as const) {
      assert.equal(mayCancelBeUnderWay(now + aheadMs, now), mayBe, `${aheadMs} ms ahead`);
    }
  });
});

describe('the total of an estimate', () => {
  const totals = [
    ['100', 100n, 100n],
    ['100.0001', 101n, 100n],
    ['100.9999', 101n, 100n],
    ['0.01', 1n, 0n],
  ] as const;
  for (const [decimal, bought, sold] of totals) {
    it(`an estimate of ${decimal} kobo is ${bought} for a purchase, which costs no more, and ${sold} for a sale, which brings no less`, () => {
      assert.equal(estimatedTotalKobo('buy', decimal), bought);
      assert.equal(estimatedTotalKobo('sell', decimal), sold);
    });
  }
});
