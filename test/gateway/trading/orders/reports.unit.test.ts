import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  applyReport,
  type OrderFacts,
  type OrderStateName,
  orderStates,
  rejectReasonOf,
} from '../../../../src/gateway/trading/orders/rules.ts';
import { type Applied, isUnsettled } from '../../../../src/gateway/trading/submission/rules.ts';
import { RejectReason, ReportKind, ReportSchema } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';

const now = Date.UTC(2026, 2, 2, 9, 30);
const states = Object.keys(orderStates.transitions) as OrderStateName[];
const { ACCEPTED, CANCELLED, EXPIRED, REJECTED, TRADE, UNSPECIFIED } = ReportKind;

function order(state: OrderStateName, fields: Partial<OrderFacts> = {}): OrderFacts {
  const nothingYet = { filledQuantity: 0n, filledValueKobo: 0n, filledAt: null, exchangeOrderId: null };
  const rest = { reason: null, rejectReason: null, countedPriceKobo: 10n, lastReport: 0n, updatedAt: now };
  return { state, quantity: 100n, ...nothingYet, ...rest, ...fields };
}

function apply(before: OrderFacts, fields: MessageInitShape<typeof ReportSchema>): Applied<OrderFacts> {
  const number = before.lastReport + 1n;
  const applied = applyReport(before, create(ReportSchema, { number, exchangeOrderId: 'X1', ...fields }), now);
  assert.ok(applied !== undefined, 'a new report is applied');
  return applied;
}

const trade = (quantity: bigint, priceKobo: bigint) => ({ kind: TRADE, quantity, priceKobo });

describe('what trades make of an order', () => {
  it('is the sum of quantity times price', () => {
    let { row: traded } = apply(order('pending'), trade(30n, 1_000n));
    assert.equal(traded.filledValueKobo, 30_000n);
    ({ row: traded } = apply(traded, trade(70n, 1_010n)));
    assert.deepEqual([traded.state, traded.filledQuantity, traded.filledValueKobo], ['filled', 100n, 100_700n]);
  });

  it('is nothing where the price or the quantity cannot be; a person must look', () => {
    const highest = 10_000_000_000n;
    for (const [quantity, price, isTaken] of [
      [1n, 1n, true],
      [100n, highest, true],
      [0n, 10n, false],
      [-1n, 10n, false],
      [1n, 0n, false],
      [1n, -10n, false],
      [1n, highest + 1n, false],
      [101n, 10n, false],
    ] as const) {
      const { changed, inconsistent: contradiction, row: after } = apply(order('pending'), trade(quantity, price));
      const answered = { changed, contradiction, value: after.filledValueKobo };
      const expected = { changed: isTaken, contradiction: !isTaken, value: isTaken ? quantity * price : 0n };
      assert.deepEqual(answered, expected, `${quantity} shares at ${price} kobo`);
    }
  });

  it('counts after it ended too; a person must look when it should never have reached the exchange', () => {
    for (const [state, isImpossible] of [
      ['cancelled', false],
      ['expired', false],
      ['refused', true],
      ['rejected', true],
    ] as const) {
      const { changed, inconsistent: contradiction, row: after } = apply(order(state), trade(40n, 10n));
      const answered = [changed, contradiction, after.state, after.filledQuantity, after.filledValueKobo];
      assert.deepEqual(answered, [true, isImpossible, state, 40n, 400n], `a trade on a ${state} order`);
    }
  });

  it('has the instant of the last trade, or of its report where the exchange states none that can be', () => {
    const filledAt = (seconds: bigint | undefined) =>
      apply(order('pending'), {
        ...trade(100n, 10n),
        at: seconds === undefined ? undefined : { seconds, nanos: 5_999_999 },
      }).row.filledAt;
    assert.equal(filledAt(undefined), now);
    assert.equal(filledAt(0n), now, '1970');
    assert.equal(filledAt(1_772_442_000n), 1_772_442_000_005);
  });
});

describe("the exchange's id of an order", () => {
  it('is the first one it states, of at most 64 characters', () => {
    const idAfter = (exchangeOrderId: string, known: string | null = null) =>
      apply(order('sending', { exchangeOrderId: known }), { kind: ACCEPTED, exchangeOrderId }).row.exchangeOrderId;
    assert.equal(idAfter('X1'), 'X1');
    assert.equal(idAfter('X2', 'X1'), 'X1');
    assert.equal(idAfter(''), null);
    assert.equal(idAfter('X'.repeat(64)), 'X'.repeat(64));
    assert.equal(idAfter('X'.repeat(65)), null);
  });
});

describe('what ends an order', () => {
  it('says why', () => {
    for (const [kind, state, reason] of [
      [ACCEPTED, 'pending', null],
      [CANCELLED, 'cancelled', 'The order was cancelled.'],
      [EXPIRED, 'expired', 'Its time in force ran out.'],
      [REJECTED, 'rejected', 'The market is closed.'],
    ] as const) {
      const applied = apply(order('sending'), { kind, rejectReason: RejectReason.MARKET_CLOSED });
      assert.deepEqual([applied.changed, applied.inconsistent], [true, false]);
      assert.deepEqual([applied.row.state, applied.row.reason], [state, reason]);
      const isRejected = state === 'rejected';
      assert.equal(applied.row.rejectReason, isRejected ? 'market_closed' : null);
    }
  });

  it('after some of it traded is a cancellation of the rest, though the exchange calls it a rejection', () => {
    const {
      row: after,
      changed,
      inconsistent: contradiction,
    } = apply(order('partially_filled', { filledQuantity: 30n }), {
      kind: REJECTED,
    });
    assert.deepEqual([changed, contradiction], [true, false]);
    assert.deepEqual([after.state, after.reason], ['cancelled', 'The exchange gave up what had not traded.']);
    assert.equal(after.filledQuantity, 30n);
  });

  it('changes nothing the second time, and no other end than the first', () => {
    const ends = { cancelled: CANCELLED, expired: EXPIRED, rejected: REJECTED } as const;
    for (const state of orderStates.final) {
      for (const [end, kind] of Object.entries(ends)) {
        const { changed, inconsistent: contradiction, row: after } = apply(order(state), { kind });
        // Of a refused order the partner was told that it never reached the exchange: its reason is corrected.
        const isCorrected = state === 'refused';
        assert.deepEqual(
          [changed, contradiction, after.state],
          [isCorrected, end !== state, state],
          `${end} after ${state}`,
        );
        assert.equal(after.reason !== order(state).reason, isCorrected, `the reason of ${state} after ${end}`);
      }
    }
  });

  it('is followed by no acceptance that means something, unless the exchange should never have had it', () => {
    for (const state of states.filter((each) => !isUnsettled(each))) {
      const { changed, inconsistent: contradiction } = apply(order(state), { kind: ACCEPTED });
      const isImpossible = state === 'refused' || state === 'rejected';
      const isCorrected = state === 'refused';
      assert.deepEqual([changed, contradiction], [isCorrected, isImpossible], `an acceptance of a ${state} order`);
    }
  });

  it('is no report of a kind that is not known; a person must look', () => {
    for (const kind of [UNSPECIFIED, 99 as ReportKind]) {
      const { changed, inconsistent: contradiction, row: after } = apply(order('pending'), { kind });
      assert.deepEqual([changed, contradiction, after.state, after.lastReport], [false, true, 'pending', 1n]);
    }
  });
});

describe('the tables of orders', () => {
  it('say of which states nothing more is expected, and in which it is unknown if the exchange has the order', () => {
    assert.deepEqual(orderStates.final.toSorted(), ['cancelled', 'expired', 'filled', 'refused', 'rejected']);
    assert.deepEqual(states.filter(isUnsettled).toSorted(), ['sending', 'uncertain']);
  });

  it('have a word and a sentence of our own for every reason of the exchange', () => {
    const reasons = Object.values(RejectReason).filter((reason) => typeof reason === 'number');
    const words = reasons.map((reason) => rejectReasonOf(reason).word);
    const expected = reasons.map((reason) => {
      const isGeneral = reason === RejectReason.UNSPECIFIED || RejectReason[reason] === 'OTHER';
      return isGeneral ? 'rejected_by_exchange' : RejectReason[reason]?.toLowerCase();
    });
    assert.deepEqual(words, expected);
    for (const reason of reasons) assert.match(rejectReasonOf(reason).sentence, /^[A-Z].{10,}\.$/);
  });
});
