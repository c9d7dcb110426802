/** The broker's record of an allocation that an operator has settled. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { applyReport } from '../../../../../src/gateway/trading/allocations/settlement/rules.ts';
import { AllocationOutcome, AllocationRecordSchema } from '../../../../../src/gen/marina/broker/v1/allocations_pb.ts';

const now = Date.UTC(2026, 2, 2, 9);
const allocation = { reason: null, rejectReason: null, createdAt: now - 1_000, updatedAt: now - 500 };
const settled = {
  booked: { ...allocation, state: 'booked', brokerReference: 'B1', settlement: 'settled' },
  rejected: { ...allocation, state: 'rejected', brokerReference: null, settlement: 'settled' },
  refused: { ...allocation, state: 'refused', brokerReference: null, settlement: 'settled' },
} as const;
const record = (reference: string | undefined) =>
  create(AllocationRecordSchema, {
    outcome: reference === undefined ? AllocationOutcome.REJECTED : AllocationOutcome.BOOKED,
    brokerReference: reference ?? '',
  });

/** The meaning of a record for an allocation: nothing, that it contradicts, or that it also changes what its partner sees. */
function meaningOf(of: keyof typeof settled | 'ordinary', reference: string | undefined): string {
  const row = of === 'ordinary' ? { ...settled.booked, settlement: null } : settled[of];
  const applied = applyReport(row as never, record(reference), now);
  if (applied === undefined) return 'nothing';
  assert.equal((applied.row as { state: string }).state, row.state, 'the settlement stays');
  return [applied.inconsistent ? 'contradicts' : '', applied.changed ? 'changes' : ''].join(' ').trim();
}

describe("the broker's record of an allocation that an operator has settled", () => {
  it("the broker's record of an allocation that an operator has settled agrees if it has the same outcome, and of a booking the same reference", () => {
    assert.equal(meaningOf('booked', 'B1'), 'nothing');
    assert.equal(meaningOf('booked', 'B2'), 'contradicts');
    assert.equal(meaningOf('booked', undefined), 'contradicts');
    assert.equal(meaningOf('rejected', undefined), 'nothing');
    assert.equal(meaningOf('rejected', 'B1'), 'contradicts');
  });

  it("the broker's record of an allocation that an operator has settled corrects what its partner was told if it was settled as refused, and the broker has booked it", () => {
    assert.equal(meaningOf('refused', 'B1'), 'contradicts changes');
    assert.equal(meaningOf('refused', undefined), 'nothing');
  });

  it("the broker's record of an allocation that an operator has settled may have another reference if nobody has settled it", () => {
    assert.equal(meaningOf('ordinary', 'B2'), 'nothing');
  });
});
