import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { AllocationOutcome, AllocationRejectReason } from '../../src/gen/marina/broker/v1/allocations_pb.ts';
import { Call, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import { account, cashOf, deadlineFor, fails, messagesOf, newAllocation, soon, startTestSimulator } from './fixture.ts';

const simulator = await startTestSimulator();
const { allocations, controls } = simulator;
const brief = { timeoutMs: 300 };

/** The broker's view of an allocation. */
async function heldAllocation(clientAllocationId: string) {
  return (await controls.listAllocations({ clientAllocationId }, soon)).allocations[0];
}

describe('an allocation', () => {
  it('is booked on the account, which has the money then', async () => {
    const before = (await cashOf(simulator, account)) ?? 0n;
    const allocation = newAllocation(12_345n);
    const { record } = await allocations.submitAllocation(allocation, soon);
    assert.equal(record?.outcome, AllocationOutcome.BOOKED);
    assert.match(record.brokerReference, /^BKG\d{12}$/);
    assert.ok(record.at);
    assert.equal(await cashOf(simulator, account), before + 12_345n);
    const lookUp = await allocations.lookUpAllocation(allocation, soon);
    assert.deepEqual(lookUp.record, record);
    assert.equal((await heldAllocation(allocation.clientAllocationId))?.amountKobo, 12_345n);
  });

  it('is rejected as its amount or its account says, and brings no money', async () => {
    const before = await cashOf(simulator, account);
    const { ACCOUNT_NOT_AT_BROKER, ACCOUNT_RESTRICTED, AMOUNT_NOT_ACCEPTED, REJECTED_BY_BROKER } =
      AllocationRejectReason;
    for (const [amount, reason] of [
      [999_001n, ACCOUNT_NOT_AT_BROKER],
      [5_999_002n, ACCOUNT_RESTRICTED],
      [999_003n, AMOUNT_NOT_ACCEPTED],
      [999_004n, REJECTED_BY_BROKER],
    ] as const) {
      const { record } = await allocations.submitAllocation(newAllocation(amount), soon);
      assert.equal(record?.outcome, AllocationOutcome.REJECTED);
      assert.equal(record.rejectReason, reason);
      assert.equal(record.brokerReference, '');
    }
    const { record } = await allocations.submitAllocation(newAllocation(1n, 'NOBODY'), soon);
    assert.equal(record?.rejectReason, ACCOUNT_NOT_AT_BROKER);
    await controls.forceAllocation({ account, outcome: AllocationOutcome.REJECTED }, soon);
    const forced = await allocations.submitAllocation(newAllocation(), soon);
    assert.equal(forced.record?.rejectReason, REJECTED_BY_BROKER);
    assert.equal(await cashOf(simulator, account), before);
  });

  it('is taken once, and not after its time', async () => {
    const before = (await cashOf(simulator, account)) ?? 0n;
    const allocation = newAllocation(7n);
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => allocations.submitAllocation(allocation, soon)),
    );
    assert.equal(results.filter(({ status: each }) => each === 'fulfilled').length, 1);
    for (const result of results) if (result.status === 'rejected') fails(status.ALREADY_EXISTS)(result.reason);
    const late = { ...newAllocation(9n), notAfter: timestampFromMs(Date.now() - 1_000) };
    await assert.rejects(allocations.submitAllocation(late, soon), fails(status.FAILED_PRECONDITION));
    const lookUp = await allocations.lookUpAllocation(late, soon);
    assert.equal(lookUp.record, undefined);
    assert.ok(lookUp.completeUntil);
    assert.equal(await cashOf(simulator, account), before + 7n);
    for (const amountKobo of [0n, -1n, 10_000_000_001n]) {
      const wrong = { ...newAllocation(), amountKobo };
      await assert.rejects(allocations.submitAllocation(wrong, soon), fails(status.INVALID_ARGUMENT));
    }
  });

  it('meets the faults of the wire: magic amounts and injected ones', async () => {
    const cases: readonly (readonly [WireFault, bigint, status, taken: boolean])[] = [
      [WireFault.HANG, 999_005n, status.DEADLINE_EXCEEDED, false],
      [WireFault.LOSE_ANSWER, 999_006n, status.DEADLINE_EXCEEDED, true],
      [WireFault.RESET_BEFORE, 999_008n, status.UNAVAILABLE, false],
      [WireFault.RESET_AFTER, 999_009n, status.UNAVAILABLE, true],
      [WireFault.LATE_ANSWER, 999_010n, status.DEADLINE_EXCEEDED, true],
    ];
    for (const [fault, amount, code, taken] of cases) {
      const [magic, injected] = [newAllocation(amount), newAllocation()];
      await assert.rejects(allocations.submitAllocation(magic, deadlineFor(code)), fails(code));
      await controls.injectFault({ call: Call.SUBMIT_ALLOCATION, fault, account, delayMs: 60_000 }, soon);
      await assert.rejects(allocations.submitAllocation(injected, deadlineFor(code)), fails(code));
      for (const { clientAllocationId: id } of [magic, injected]) {
        const [message] = await messagesOf(simulator, id);
        assert.deepEqual([message?.call, message?.taken], [Call.SUBMIT_ALLOCATION, taken], WireFault[fault]);
        assert.equal((await heldAllocation(id)) !== undefined, taken);
      }
    }
    const lost = newAllocation(999_007n);
    await assert.rejects(allocations.submitAllocation(lost, brief), fails(status.DEADLINE_EXCEEDED));
    const { record } = await allocations.lookUpAllocation(lost, soon);
    assert.equal(record?.outcome, AllocationOutcome.REJECTED);
    await controls.injectFault({ call: Call.LOOK_UP_ALLOCATION, fault: WireFault.UNAVAILABLE_BEFORE, account }, soon);
    await assert.rejects(allocations.lookUpAllocation(lost, soon), fails(status.UNAVAILABLE));
  });
});
