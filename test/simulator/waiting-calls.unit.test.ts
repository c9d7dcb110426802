/** Calls to the simulated broker that wait to be taken, over directives and a record that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Call, WireFault } from '../../src/gen/marina/simulator/v1/controls_pb.ts';
import type { Fault } from '../../src/simulator/magic.ts';
import { unanswered } from '../../src/simulator/wire/rpc.ts';
import { type Leg, Wire } from '../../src/simulator/wire/wire.ts';

/** How many calls may wait of one partner. */
const most = 200;

function begin(delayMs: number) {
  const stop = new AbortController();
  const directives = { asksForAccount: () => false, takeFault: () => undefined };
  const wire = new Wire(directives as never, {} as never, stop.signal);
  let taken = 0;
  const carry = (partner: string) => {
    const magicFault = { wire: WireFault.LATE_RECEIPT, partner, delayMs } as Fault;
    const leg: Leg<string> = {
      ...{ call: Call.SUBMIT_ORDER, clientId: 'ord_a', magicFault, account: () => '', nonsense: () => '' },
      record: async () => 7,
      take: async (recorded) => {
        assert.equal(recorded, 7);
        taken += 1;
        return 'taken';
      },
    };
    return wire.carry({} as never, leg);
  };
  return { stop, carry, taken: () => taken };
}

describe('calls to a simulated broker that come late', () => {
  it('calls of one partner wait up to a bound, those of others all the same, and each gives its place back', async () => {
    const { carry, taken } = begin(1);
    for (let round = 1; round <= 3; round += 1) {
      const all = [...Array.from({ length: most }, () => 'par_a'), ...Array.from({ length: most }, () => 'par_b')];
      const waiting = all.map(carry);
      assert.equal(await carry('par_a'), unanswered, `round ${round}`);
      assert.ok((await Promise.all(waiting)).every((answer) => answer === 'taken'));
      assert.equal(taken(), 2 * most * round);
    }
  });

  it('calls that wait when the simulator stops are not taken, and have no answer', async () => {
    const { stop, carry, taken } = begin(60_000);
    const waiting = [carry('par_a'), carry('')];
    await new Promise(setImmediate);
    stop.abort();
    assert.deepEqual([await Promise.all(waiting), taken()], [[unanswered, unanswered], 0]);
  });
});
