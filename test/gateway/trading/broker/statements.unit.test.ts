import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { statementPageSize, wrongIn } from '../../../../src/gateway/trading/broker/statements.ts';
import { AllocationOutcome } from '../../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { Side } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import {
  GetStatementResponseSchema,
  StatementOrderState,
  StatementSection,
} from '../../../../src/gen/marina/broker/v1/statements_pb.ts';

const day = '2026-03-02';
const [from, to] = [Date.parse('2026-03-02T00:00:00+01:00'), Date.parse('2026-03-03T00:00:00+01:00')];
const page = { day, isComplete: true, from: timestampFromMs(from), to: timestampFromMs(to) };
const place = { day, cursor: '', afterKey: '' };

const withTrade = (executedAt: Timestamp | undefined) => {
  const trade = { id: 'T1', account: 'ACC1', symbol: 'DANGCEM', side: Side.BUY, quantity: 1n, priceKobo: 1n };
  const answer = create(GetStatementResponseSchema, { ...page, trades: [{ ...trade, executedAt }] });
  return wrongIn(answer, { ...place, section: StatementSection.TRADES });
};
const withAllocation = (at: Timestamp | undefined) => {
  const allocation = {
    clientAllocationId: 'alc_1',
    account: 'ACC1',
    amountKobo: 1n,
    outcome: AllocationOutcome.REJECTED,
  };
  const answer = create(GetStatementResponseSchema, { ...page, allocations: [{ ...allocation, at }] });
  return wrongIn(answer, { ...place, section: StatementSection.ALLOCATIONS });
};
const withPeriod = (changes: Partial<typeof page>) =>
  wrongIn(create(GetStatementResponseSchema, { ...page, ...changes }), { ...place, section: StatementSection.CASH });

const impossible = {
  'of the year 58000': timestampFromMs(Date.parse('+058000-01-01T00:00:00Z')),
  'that no date has': { ...timestampFromMs(0), seconds: 2n ** 62n },
  'of the year 1999': timestampFromMs(Date.parse('1999-12-31T23:59:59Z')),
  'after the period': timestampFromMs(to),
};

describe("the times in a broker's statement", () => {
  for (const [name, time] of Object.entries(impossible)) {
    it(`cannot be one ${name}`, () => {
      assert.equal(withTrade(time), 'a record is impossible');
      assert.equal(withAllocation(time), 'a record is impossible');
      assert.equal(withPeriod({ to: { ...time, seconds: time.seconds + 1n } }), 'its period is not that of the day');
      assert.equal(withPeriod({ from: { ...time, seconds: time.seconds + 1n } }), 'its period is not that of the day');
    });
  }

  it('are those until its end, and a trade has one', () => {
    for (const time of [from, to - 1].map(timestampFromMs)) {
      assert.equal(withTrade(time), undefined);
      assert.equal(withAllocation(time), undefined);
    }
    assert.equal(withTrade(undefined), 'a record is impossible');
    assert.equal(withPeriod({}), undefined);
  });
});

describe("the size of a broker's statement", () => {
  const cash = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ account: `A${String(at).padStart(4, '0')}` }));
  const wrong = (changes: object) =>
    wrongIn(create(GetStatementResponseSchema, { ...page, ...changes }), { ...place, section: StatementSection.CASH });

  it("a page of a broker's statement has at most 500 records", () => {
    assert.equal(wrong({ cash: cash(statementPageSize) }), undefined);
    assert.equal(wrong({ cash: cash(statementPageSize + 1) }), 'a page has too many records');
  });

  it("a broker's statement has cursors of at most 200 characters", () => {
    assert.equal(wrong({ nextCursor: 'c'.repeat(200) }), undefined);
    assert.equal(wrong({ nextCursor: 'c'.repeat(201) }), 'its cursor is not one');
  });

  it("a broker's statement has each record once, after the last record of the page before", () => {
    const at = (afterKey: string) =>
      wrongIn(create(GetStatementResponseSchema, { ...page, cash: cash(2) }), {
        ...{ ...place, afterKey, section: StatementSection.CASH },
      });
    assert.equal(at(''), undefined);
    assert.equal(at('A0000'), 'records are not in their order');
  });

  it("a broker's statement begins at most one day before its day, ends with it, and is not empty", () => {
    const dayMs = 86_400_000;
    for (const [changes, isPeriod] of [
      [{ from: from - dayMs }, true],
      [{ from: from - dayMs - 1 }, false],
      [{ from: from + 1 }, false],
      [{ to: to + 1 }, false],
      [{ to: from + 1 }, true],
      [{ to: from }, false],
    ] as const) {
      const times = Object.fromEntries(Object.entries(changes).map(([name, at]) => [name, timestampFromMs(at)]));
      const expected = isPeriod ? undefined : 'its period is not that of the day';
      assert.equal(withPeriod(times), expected, JSON.stringify(changes));
    }
  });

  it("a broker's statement has orders of at least one share, of which none or more are filled", () => {
    const order = {
      ...{ clientOrderId: 'ord_1', account: 'ACC1', symbol: 'DANGCEM', side: Side.BUY, quantity: 1n },
      state: StatementOrderState.OPEN,
    };
    const withOrder = (changes: object) =>
      wrongIn(create(GetStatementResponseSchema, { ...page, orders: [{ ...order, ...changes }] }), {
        ...{ ...place, section: StatementSection.ORDERS },
      });
    assert.equal(withOrder({}), undefined);
    assert.equal(withOrder({ quantity: 0n }), 'a record is impossible');
    assert.equal(withOrder({ filledQuantity: -1n }), 'a record is impossible');
  });

  it("a broker's statement has trades of at least one share for one kobo, and allocations of at least one kobo", () => {
    const trade = {
      ...{ id: 'T1', account: 'ACC1', symbol: 'DANGCEM', side: Side.BUY, quantity: 1n, priceKobo: 1n },
      executedAt: timestampFromMs(from),
    };
    const allocation = {
      ...{ clientAllocationId: 'alc_1', account: 'ACC1', amountKobo: 1n, outcome: AllocationOutcome.BOOKED },
      at: timestampFromMs(from),
    };
    const wrongTrade = (changes: object) =>
      wrongIn(create(GetStatementResponseSchema, { ...page, trades: [{ ...trade, ...changes }] }), {
        ...{ ...place, section: StatementSection.TRADES },
      });
    const wrongAllocation = (changes: object) =>
      wrongIn(create(GetStatementResponseSchema, { ...page, allocations: [{ ...allocation, ...changes }] }), {
        ...{ ...place, section: StatementSection.ALLOCATIONS },
      });
    const first = Date.UTC(2000, 0, 1);
    for (const answer of [wrongTrade({}), wrongTrade({ executedAt: timestampFromMs(first) }), wrongAllocation({})]) {
      assert.equal(answer, undefined);
    }
    for (const answer of [
      wrongTrade({ quantity: 0n }),
      wrongTrade({ priceKobo: 0n }),
      wrongTrade({ executedAt: timestampFromMs(first - 1) }),
      wrongTrade({ executedAt: timestampFromMs(to) }),
      wrongAllocation({ amountKobo: 0n }),
      wrongAllocation({ at: timestampFromMs(to) }),
    ]) {
      assert.equal(answer, 'a record is impossible');
    }
  });
});
