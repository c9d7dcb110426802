import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { tellStory } from '../../support/interop/at-work.ts';
import { Chain } from '../../support/interop/chain.ts';
import { reportHabits } from '../../support/interop/habits/all.ts';
import { RandomRun, seededRandom } from '../../support/interop/random.ts';

const seconds = Number(process.env.FIX_SECONDS ?? 20);
const seed = Number(process.env.FIX_SEED ?? Date.now() % 1_000_000);

/** How long it may take to look at every order once: a run of two hours has tens of thousands. */
const judgingSeconds = Math.max(300, seconds / 4);

/** Those that are made of answers of the exchange alone: a script would wait for what a fault prevents. */
const habits = reportHabits.filter(({ script, version, unit }) =>
  [script, version, unit].every((each) => each === undefined),
);

describe(`an exchange of random habits among random faults (FIX_SEED=${seed} FIX_SECONDS=${seconds})`, () => {
  let chain: Chain;
  const isFixt = seed % 2 === 0;

  before(async () => {
    chain = await Chain.start(isFixt ? 'FIXT.1.1' : 'FIX.4.4', isFixt ? 'naira' : 'kobo');
  });
  after(() => chain?.stop());

  it('shows nothing untrue without a finding', { timeout: (seconds + judgingSeconds * 2) * 1_000 }, async (test) => {
    const run = new RandomRun(chain, habits, seededRandom(seed));
    await run.run(seconds);
    // Of a long run, the judging alone takes minutes: somebody who waits sees that it has come so far.
    console.log(`${run.orders.length} orders were placed, and are judged now: ${JSON.stringify(run.counts)}`);
    assert.deepEqual(run.failures, [], 'an order got no answer');
    assert.ok(run.orders.length > 0, 'no order was placed');
    // The first look at all of them counts for nothing in the time that is left for the rest.
    let left = (await run.judgeAll()).wrong.map(({ order }) => order);
    await eventually(async () => {
      const { wrong } = await run.judgeAll(left);
      left = wrong.map(({ order }) => order);
      const [first] = wrong;
      if (first === undefined) return;
      const story = await tellStory(chain, first.order.partner, [first.order.id]);
      const lines = wrong.map(({ order, complaint }) => `${order.id}, ${order.habit.name}: ${complaint}`);
      throw new Error([...lines, ...story].join('\n'));
    }, judgingSeconds * 200);
    // A judgement made a moment ago may be out of date.
    const { wrong, kinds } = await run.judgeAll();
    const summary = Object.entries({ seed, seconds, ...run.counts, ...kinds, untrueWithoutFinding: wrong.length });
    test.diagnostic(summary.map(([name, value]) => `${name} ${value}`).join(', '));
    assert.deepEqual(
      wrong.map(({ complaint }) => complaint),
      [],
    );
    assert.deepEqual(chain.acceptor.errors, []);
  });
});
