/** The checks of an adapter that was cut off from its exchange, with orders whose answers the test makes up. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { Breach } from '../../../src/broker-check/check.ts';
import { cutChecks } from '../../../src/broker-check/checks/cut.ts';
import type { CheckSession } from '../../../src/broker-check/session.ts';

const exchange = { call: 'a call', request: {}, status: 'FAILED_PRECONDITION', tookMs: 1 };

interface Sent {
  readonly id: string;
  readonly outcome: { readonly code: status; readonly exchange: typeof exchange };
}
const sent = (id: string, code: status): Sent => ({ id, outcome: { code, exchange } });

/** Whether a check finds a breach after a cut in which these orders were sent. The exchange has those that `has` names. */
async function breaches(id: string, cut: { whileCutting: Sent[]; whileCut: Sent[] }, ...has: readonly string[]) {
  const session = {
    once: async () => ({ ...cut, back: true }),
    recorded: async (order: string) => ({ found: has.includes(order), reports: [], exchanges: [exchange] }),
    streamed: () => [],
    follower: { shown: () => exchange },
    settings: { waits: { settleMs: 1, skewMs: 0 } },
  };
  const check = cutChecks.find((each) => each.id === id) ?? assert.fail(`there is no ${id}`);
  try {
    await check.run(session as unknown as CheckSession);
    return false;
  } catch (error) {
    assert.ok(error instanceof Breach, String(error));
    return true;
  }
}

describe('an adapter that was cut off from its exchange, as broker-check sees it', () => {
  it('an adapter that refused an order for good, and has it later, is found, whether it was sent in the moment of the cut or after it', async () => {
    const { FAILED_PRECONDITION, UNAVAILABLE } = status;
    for (const [when, cut] of [
      ['in the moment', { whileCutting: [sent('o1', FAILED_PRECONDITION)], whileCut: [] }],
      ['after it', { whileCutting: [], whileCut: [sent('o1', FAILED_PRECONDITION)] }],
    ] as const) {
      const orders = { whileCutting: [...cut.whileCutting], whileCut: [...cut.whileCut] };
      assert.equal(await breaches('cut-refusals-hold', orders), false, when);
      assert.equal(await breaches('cut-refusals-hold', orders, 'o1'), true, when);
    }
    const unclear = { whileCutting: [sent('o1', UNAVAILABLE)], whileCut: [sent('o2', UNAVAILABLE)] };
    assert.equal(await breaches('cut-refusals-hold', unclear, 'o1', 'o2'), false, 'they were in doubt');
  });
});
