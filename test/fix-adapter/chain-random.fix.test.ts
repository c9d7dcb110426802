/** The gateway, the FIX adapter and an exchange of QuickFIX, when several things go wrong at once. */
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Chain } from '../support/fix/chain.ts';
import { faults } from '../support/fix/chain-faults.ts';
import { whyNoAcceptor } from '../support/quickfix.ts';

const skip = (await whyNoAcceptor()) ?? false;
const seed = process.env.FIX_SEED === undefined ? Date.now() % 2 ** 31 : Number(process.env.FIX_SEED);
/** How long the faults go on. */
const randomMs = Number(process.env.FIX_SECONDS ?? 40) * 1_000;

describe('orders over the chain, at random', { skip, timeout: 600_000 + 2 * randomMs }, () => {
  let chain: Chain;
  before(async () => {
    chain = await Chain.start();
  });
  after(() => chain?.stop());

  it(`are sent once, and every trade is in the feed once (FIX_SEED=${seed})`, async (t) => {
    const random = randomFrom(seed);
    const names = Object.keys(faults);
    chain.trade(300_000 + randomMs);
    await chain.goesOn();
    for (const end = performance.now() + randomMs; performance.now() < end; ) {
      const chosen = Array.from({ length: 1 + random(3) }, () => names[random(names.length)] ?? '');
      t.diagnostic(chosen.join(', and '));
      // One after the other, and the next before the chain has come back.
      for (const name of chosen) {
        await faults[name]?.(chain);
        await delay(random(400));
      }
      await chain.goesOn(2);
    }
    await chain.settleAndCheck();
  });
});

/** Numbers below a bound, the same for the same seed (mulberry32). */
function randomFrom(start: number): (below: number) => number {
  let state = start;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}
