import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type ServiceError, status } from '@grpc/grpc-js';
import { operatorToken, startGateway, type TestGateway } from '../../../../support/gateway.ts';
import type { Found } from '../../../../support/operator.ts';
import { type OperatorName, operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

describe('the open proposals of one operator', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  before(async () => {
    gateway = await startGateway({
      MARINA_FOUR_EYES_ABOVE_KOBO: '1000',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    operators = await TwoOperators.connect(gateway.app.adminPort);
  });
  after(async () => {
    operators.close();
    await gateway.stop();
  });

  it('are 50 at most, so that others find theirs, also if they are made at once and under a name in another case', async () => {
    const partner = await gateway.newPartner();
    const payment = () => ({
      ...{ partner_id: partner.id, amount_kobo: '1001', bank_reference: randomUUID(), reason: 'the statement' },
    });
    const credit = (name: OperatorName, request = payment()): Promise<Found> =>
      operators.as(name, 'Wallets.CreditWallet', request);
    const asked = Array.from({ length: 60 }, payment);
    const answers = await Promise.allSettled(asked.map((request) => credit('ada', request)));
    const refused = answers.flatMap((one) => (one.status === 'rejected' ? [one.reason as ServiceError] : []));
    assert.equal(refused.length, 10);
    for (const error of refused) {
      assert.equal(error.code, status.RESOURCE_EXHAUSTED);
      assert.match(error.details, /50 proposals of yours are open: .*decline those that no longer hold/);
    }
    const first = answers.findIndex((one) => one.status === 'fulfilled');
    const made = answers[first] as PromiseFulfilledResult<Found>;
    const again = await credit('ada', asked[first]);
    assert.equal(again.proposal.id, made.value.proposal.id, 'a call whose answer was lost is not answered');
    assert.equal((await operators.refused('ADA', 'Wallets.CreditWallet', payment())).code, status.RESOURCE_EXHAUSTED);
    assert.notEqual((await credit('bola')).proposal, undefined, 'another operator has no room');
    const small = { ...payment(), amount_kobo: '1' };
    assert.equal((await credit('ada', small)).recorded, true, 'a payment that needs no second operator is refused');

    const decline = { id: made.value.proposal.id, reason: 'typed twice' };
    await operators.as('ada', 'Proposals.DeclineProposal', decline);
    assert.notEqual((await credit('ada')).proposal, undefined);
    assert.equal((await operators.refused('ada', 'Wallets.CreditWallet', payment())).code, status.RESOURCE_EXHAUSTED);
    const { proposals } = await operators.as('bola', 'Proposals.ListProposals', { state: 'PROPOSAL_STATE_OPEN' });
    const own = proposals.find(({ proposed_by: name }: Found) => name === 'ada');
    await operators.as('bola', 'Proposals.ApproveProposal', { id: own.id, reason: 'compared' });
    assert.notEqual((await credit('ada')).proposal, undefined, 'one that is approved is still counted');
  });
});
