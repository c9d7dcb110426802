import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { WithdrawalReportKind } from '../../../../src/gen/marina/broker/v1/withdrawals_pb.ts';
import { callTimeout, type Partner } from '../../../support/cluster.ts';
import { eventually } from '../../../support/eventually.ts';
import { checkArrivals, type Endpoint, registerEndpoints } from '../../../support/fault/arrivals.ts';
import { describeMoments, type Scenario } from '../../../support/fault/moments/cases.ts';
import type { WatchedCluster } from '../../../support/fault/moments/watched-cluster.ts';
import { checkMoney } from '../../../support/fault/money.ts';

interface Case {
  readonly partner: Partner;
  readonly endpoints: readonly Endpoint[];
}

/** The amounts that make the simulated broker pay a withdrawal at once or later, reject it, pay it without an answer, or not take it. */
const amounts = {
  ...{ paid: 40_000, 'paid later': 998_002, rejected: 998_003, 'rejected later': 998_009 },
  ...{ 'paid without an answer': 998_016, 'never taken': 998_012 },
};

const isOver = /^(completed|rejected|refused|returned)$/;

async function prepare(watched: WatchedCluster): Promise<Case> {
  const { cluster, receiver } = watched;
  const partner = await cluster.newPartner();
  return { partner, endpoints: await registerEndpoints(await watched.gateway(), receiver, [partner]) };
}

async function check(
  { cluster, receiver }: WatchedCluster,
  gateway: Parameters<typeof checkMoney>[1],
  { partner, endpoints }: Case,
): Promise<void> {
  await checkMoney(cluster, gateway, [partner]);
  await checkArrivals(cluster.database, receiver, endpoints);
}

const scenario: Scenario<Case> = {
  name: 'withdrawals that are paid at once or later, rejected at once or later, paid while answer and report are lost, and never taken',
  maxOccurrences: 4,
  prepare,
  async run(watched, { partner }) {
    await withdraw(watched, partner, { destination: 'wallet', amount_kobo: amounts.paid });
    await withdraw(watched, partner, { destination: 'wallet', amount_kobo: amounts['paid later'] });
    await withdraw(watched, partner, { destination: 'wallet', amount_kobo: amounts.rejected });
    await withdraw(watched, partner, { destination: 'bank_account', amount_kobo: amounts['rejected later'] });
    await withdraw(watched, partner, { destination: 'wallet', amount_kobo: amounts['never taken'] });
    // The stream does not have it either, so the broker's record is asked.
    await watched.cluster.controls.disturbReports({ withdrawals: true, omit: 1 }, callTimeout);
    await withdraw(watched, partner, { destination: 'wallet', amount_kobo: amounts['paid without an answer'] });
    const { body } = await watched.ask(partner, 'GET', '/v1/withdrawals');
    assert.equal(body.data.length, Object.keys(amounts).length, 'one key leads to one withdrawal');
  },
  check,
};

await describeMoments(scenario);
await describeMoments({ ...scenario, isBeside: true });

await describeMoments<Case>({
  name: 'a withdrawal to the bank that is paid and returned',
  prepare,
  async run(watched, { partner }) {
    const id = await withdraw(watched, partner, { destination: 'bank_account', amount_kobo: amounts.paid });
    if ((await stateOf(watched, partner, id)) !== 'completed') return;
    const returned = { clientWithdrawalId: id, kind: WithdrawalReportKind.RETURNED };
    await watched.cluster.controls.decideWithdrawal(returned, callTimeout);
    await eventually(async () => assert.equal(await stateOf(watched, partner, id), 'returned'), 20_000);
  },
  check,
});

/** Withdraws, waits until the outcome is known, and returns the id. */
async function withdraw(watched: WatchedCluster, partner: Partner, wanted: object): Promise<string> {
  const request = { idempotencyKey: randomUUID(), body: { account: partner.account, ...wanted } };
  const answer = await watched.ask(partner, 'POST', '/v1/withdrawals', request);
  const outcome = answer.body.error?.code ?? 'stored';
  assert.match(outcome, /^(stored|withdrawal_rejected|withdrawal_not_sent)$/, JSON.stringify(answer.body));
  const id = answer.body.id ?? answer.headers?.get('location')?.split('/').at(-1);
  await eventually(async () => assert.match(await stateOf(watched, partner, id), isOver), 20_000);
  return id;
}

async function stateOf(watched: WatchedCluster, partner: Partner, id: string): Promise<string> {
  const { body } = await watched.ask(partner, 'GET', `/v1/withdrawals/${id}`);
  return body.state;
}
