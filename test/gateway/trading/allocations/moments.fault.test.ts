import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Partner } from '../../../support/cluster.ts';
import { checkArrivals, type Endpoint, registerEndpoints } from '../../../support/fault/arrivals.ts';
import { describeMoments, type Scenario } from '../../../support/fault/moments/cases.ts';
import { checkMoney } from '../../../support/fault/money.ts';

interface Case {
  readonly partner: Partner;
  readonly endpoints: readonly Endpoint[];
}

/** The amounts that make the simulated broker book an allocation, reject one, reject one without an answer, and never take one. */
const amounts = [40_000, 999_002, 999_007, 999_005];

const scenario: Scenario<Case> = {
  name: 'allocations that are booked, rejected, rejected without an answer, and never taken',
  maxOccurrences: 4,
  async prepare(watched) {
    const { cluster, receiver } = watched;
    const partner = await cluster.newPartner();
    await cluster.fund(partner, 10_000_000n);
    return { partner, endpoints: await registerEndpoints(await watched.gateway(), receiver, [partner]) };
  },
  async run(watched, { partner }) {
    for (const amount of amounts) {
      const body = { account: partner.account, amount_kobo: amount };
      const answer = await watched.ask(partner, 'POST', '/v1/allocations', { idempotencyKey: randomUUID(), body });
      const outcome = answer.body.error?.code ?? 'stored';
      assert.match(outcome, /^(stored|allocation_rejected|allocation_not_sent)$/, JSON.stringify(answer.body));
    }
    const { body } = await watched.ask(partner, 'GET', '/v1/allocations');
    assert.equal(body.data.length, amounts.length, 'one key leads to one allocation');
  },
  async check({ cluster, receiver }, gateway, { partner, endpoints }) {
    await checkMoney(cluster, gateway, [partner]);
    await checkArrivals(cluster.database, receiver, endpoints);
  },
};

await describeMoments(scenario);
await describeMoments({ ...scenario, isBeside: true });
