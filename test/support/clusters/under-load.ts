import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster, GatewayProcess, Partner } from '../cluster.ts';
import { eventually } from '../eventually.ts';
import { checkEverything } from '../fault/checker.ts';
import { Load } from '../fault/load.ts';
import { checkMoney } from '../fault/money.ts';

/** How often each fault is made. */
export const runs = Number(process.env.RUNS || 1);
/** Until orders are placed again after a fault: the longest wait of the engines, and what the gateways take to follow. */
export const resumedWithinMs = 60_000;
/** How long orders are placed before a fault, so that it meets some on their way. */
export const beforeMs = 1_500;
/** How long all faults of one suite may take. */
export const suiteTimeoutMs = 240_000 + runs * 1_200_000;

/**
 * Makes a fault while orders and allocations go through some gateways, which it may replace. Afterwards the rows, the
 * broker's record, the feed, the ledger and the limits are compared; `alsoCheck` comes last.
 */
export async function underLoad(
  t: TestContext,
  cluster: Cluster,
  gateways: readonly GatewayProcess[],
  make: () => Promise<void>,
  alsoCheck: () => Promise<void>,
): Promise<void> {
  const [trader, funder] = [await cluster.newPartner(), await cluster.newPartner()];
  await cluster.fund(funder, 1_000_000_000n);
  const load = Load.start({
    gateways: () => gateways,
    partners: [trader],
    symbols: ['SIM-REST', 'SIM-PARTS'],
    restMs: 60,
    cancels: true,
    longestMs: 300_000,
  });
  const allocating = new Allocating(gateways, funder);
  const last = () => gateways.at(-1) as GatewayProcess;
  let gap: number;
  try {
    await delay(beforeMs);
    const began = performance.now();
    await make();
    await delay(beforeMs);
    gap = load.longestGapMs(began);
  } finally {
    await Promise.all([load.settle(last(), resumedWithinMs), allocating.settle()]);
  }
  for (const gateway of gateways) assertNoDefects(gateway);
  await checkEverything(cluster, last(), [trader], resumedWithinMs);
  await checkMoney(cluster, last(), [funder], resumedWithinMs);
  await alsoCheck();
  const counts = `${load.count} orders, ${allocating.count} allocations`;
  t.diagnostic(`no order for ${(gap / 1_000).toFixed(1)} s; ${counts}; lost 0, sent twice 0`);
}

export function assertNoDefects(gateway: GatewayProcess): void {
  const defects = gateway.logged().filter(({ msg }) => msg === 'a request failed');
  assert.deepEqual(defects, [], 'no answer is internal_error');
}

/** Waits until orders are placed again, through each gateway. */
export async function placedThroughEach(cluster: Cluster, gateways: readonly GatewayProcess[]): Promise<void> {
  const partner = await eventually(() => cluster.newPartner(), resumedWithinMs);
  for (const gateway of gateways) {
    const key = randomUUID();
    await eventually(async () => {
      const { status } = await gateway.place(partner, { symbol: 'SIM-REST' }, key);
      assert.ok(status === 201 || status === 200, `answered ${status}`);
    }, resumedWithinMs);
  }
}

/** Clients that allocate all the time, and repeat what has no clear answer with its key. */
class Allocating {
  count = 0;
  #stopping = false;
  readonly #done: Promise<void>;

  constructor(gateways: readonly GatewayProcess[], partner: Partner) {
    this.#done = this.#run(gateways, partner);
  }

  async settle(): Promise<void> {
    this.#stopping = true;
    await this.#done;
  }

  async #run(gateways: readonly GatewayProcess[], partner: Partner): Promise<void> {
    while (!this.#stopping) {
      this.count += 1;
      const amount = 1_000 + this.count;
      const key = randomUUID();
      await eventually(async () => {
        const gateway = gateways[Math.floor(Math.random() * gateways.length)] as GatewayProcess;
        const { status, body } = await gateway.allocate(partner, { amount_kobo: amount }, key);
        const isClear = status === 200 || status === 201 || body?.error?.code === 'allocation_not_sent';
        assert.ok(isClear, `answered ${status} ${body?.error?.code}`);
      }, resumedWithinMs);
      await delay(100);
    }
  }
}
