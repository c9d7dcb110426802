import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { adminClient } from '../../../../support/admin.ts';
import { Cluster, type GatewayProcess, type Partner } from '../../../../support/cluster.ts';
import { operatorToken } from '../../../../support/gateway.ts';
import { verifyLedger } from '../../../../support/ledger.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

const amount = 1_000_001;

describe('an approval of a large credit, while gateways race', () => {
  let cluster: Cluster;
  let gateway: GatewayProcess;
  let operators: TwoOperators;
  before(async () => {
    cluster = await Cluster.start({
      MARINA_FOUR_EYES_ABOVE_KOBO: '1000000',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    gateway = await cluster.startGateway();
    operators = await TwoOperators.connect(gateway.adminPort);
  });
  after(async () => {
    operators.close();
    await cluster.stop();
  });

  const payment = (partner: Partner, kobo = amount, bankReference: string = randomUUID()): JsonObject => ({
    ...{ partner_id: partner.id, amount_kobo: String(kobo), bank_reference: bankReference },
    reason: 'the statement of today',
  });
  const propose = async (paid: JsonObject): Promise<string> =>
    (await operators.as('ada', 'Wallets.CreditWallet', paid)).proposal.id;

  async function assertCredited(partner: Partner, kobo: number, credits: number): Promise<void> {
    const { body } = await gateway.request('GET', '/v1/wallet', { key: partner.key });
    assert.equal(body.available_kobo, kobo);
    const listed = await operators.as('ada', 'Wallets.ListCredits', { partner_id: partner.id });
    assert.equal(listed.credits.length, credits);
    const admin = adminClient(gateway.adminPort);
    try {
      assert.deepEqual(await verifyLedger(admin, partner.id), []);
    } finally {
      admin.close();
    }
  }

  it('is recorded once when two replicas approve it, and while the same payment is recorded elsewhere', async () => {
    const second = await cluster.startGateway({ MARINA_FOUR_EYES_ABOVE_KOBO: 'off' });
    const others = await TwoOperators.connect(second.adminPort);
    try {
      for (let round = 0; round < 5; round += 1) {
        const partner = await cluster.newPartner();
        const id = await propose(payment(partner));
        const answers = await Promise.all([operators.approve(id), others.approve(id), operators.approve(id)]);
        assert.deepEqual(answers.map(({ changed }) => changed).toSorted(), [false, false, true]);
        // A replica that does not know four eyes records at once what waits here.
        const paid = payment(partner);
        const waiting = await propose(paid);
        const raced = await Promise.allSettled([
          operators.approve(waiting),
          others.as('ada', 'Wallets.CreditWallet', paid),
        ]);
        assert.equal(raced[1].status, 'fulfilled');
        await assertCredited(partner, 2 * amount, 2);
        const { proposals } = await operators.as('ada', 'Proposals.ListProposals', { id: waiting });
        const expected = raced[0].status === 'fulfilled' ? 'PROPOSAL_STATE_APPLIED' : 'PROPOSAL_STATE_OPEN';
        assert.equal(proposals[0].state, expected);
      }
    } finally {
      others.close();
    }
  });
});
