/** The checks that money moves once, with an adapter that the test scripts. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Breach } from '../../src/broker-check/check.ts';
import { allocationChecks } from '../../src/broker-check/checks/allocations.ts';
import { withdrawalChecks } from '../../src/broker-check/checks/withdrawals.ts';
import type { CheckSession } from '../../src/broker-check/session.ts';
import { AllocationOutcome } from '../../src/gen/marina/broker/v1/allocations_pb.ts';
import { WithdrawalReportKind } from '../../src/gen/marina/broker/v1/withdrawals_pb.ts';

const exchange = { call: 'a call', request: {}, status: 'OK', tookMs: 1 };
const amountKobo = 1_000n;

/** Holds a check against an adapter that moves these amounts: for the first send, and for the same one again. */
async function checkMoney(id: string, first: bigint, again: bigint): Promise<void> {
  let kobo = 5_000n;
  const sent = new Set<unknown>();
  const send = (clientId: unknown) => {
    kobo += sent.has(clientId) ? again : first;
    sent.add(clientId);
  };
  const answers: Record<string, (request: Record<string, unknown>) => object> = {
    getCapabilities: () => ({ withdrawalDestinations: [1] }),
    getBalance: () => ({ availableKobo: kobo }),
    submitAllocation: ({ clientAllocationId }) => {
      send(clientAllocationId);
      return { record: { outcome: AllocationOutcome.BOOKED } };
    },
    submitWithdrawal: ({ clientWithdrawalId }) => {
      send(clientWithdrawalId);
      return { report: { kind: WithdrawalReportKind.PAID } };
    },
  };
  const session = {
    settings: { allocateKobo: amountKobo, withdrawKobo: amountKobo, waits: { settleMs: 20 } },
    ...{ account: 'A', allocations: [], withdrawals: [], newId: () => 'one', inTime: () => undefined },
    once: (_: string, find: () => Promise<unknown>) => find(),
    call: async (_: string, method: string, request: object) => ({
      exchange,
      answer: answers[method]?.({ ...request }),
    }),
  };
  const checks = [...allocationChecks, ...withdrawalChecks];
  const check = checks.find((each) => each.id === id) ?? assert.fail(`there is no check ${id}`);
  await check.run(session as unknown as CheckSession);
}

describe('money that an adapter moves', () => {
  it('money that an adapter moves is available once when it was allocated: no kobo less, none more, and not for the same send again', async () => {
    await checkMoney('allocation-in-balance', amountKobo, 0n);
    for (const [first, again] of [
      [amountKobo, amountKobo],
      [amountKobo, 1n],
      [amountKobo - 1n, 0n],
      [0n, 0n],
    ] as const) {
      await assert.rejects(checkMoney('allocation-in-balance', first, again), Breach, `${first}, ${again}`);
    }
  });

  it('money that an adapter moves is taken once when it was withdrawn, perhaps with a charge that is less than it', async () => {
    for (const charge of [0n, 1n, amountKobo - 1n]) {
      await checkMoney('withdrawal-in-balance', -amountKobo - charge, 0n);
    }
    for (const [first, again] of [
      [-amountKobo, -amountKobo],
      [-2n * amountKobo, 0n],
      [1n - amountKobo, 0n],
      [0n, 0n],
      [amountKobo, 0n],
    ] as const) {
      await assert.rejects(checkMoney('withdrawal-in-balance', first, again), Breach, `${first}, ${again}`);
    }
  });
});
