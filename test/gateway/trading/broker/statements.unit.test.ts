import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { wrongIn } from '../../../../src/gateway/trading/broker/statements.ts';
import { AllocationOutcome } from '../../../../src/gen/marina/broker/v1/allocations_pb.ts';
import { Side } from '../../../../src/gen/marina/broker/v1/orders_pb.ts';
import { GetStatementResponseSchema, StatementSection } from '../../../../src/gen/marina/broker/v1/statements_pb.ts';

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
