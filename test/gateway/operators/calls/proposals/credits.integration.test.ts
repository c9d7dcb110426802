import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import { status } from '@grpc/grpc-js';
import { adminClient } from '../../../../support/admin.ts';
import { operatorToken, startGateway, type TestGateway, type TestPartner } from '../../../../support/gateway.ts';
import { creditWallet, verifyLedger } from '../../../../support/ledger.ts';
import { scrape } from '../../../../support/metrics.ts';
import type { Found } from '../../../../support/operator.ts';
import { type OperatorName, operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

const above = 1_000_000n;
const reason = 'bank statement of today';

describe('credits above the amount of four eyes', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  let partner: TestPartner;
  before(async () => {
    gateway = await startGateway({
      MARINA_FOUR_EYES_ABOVE_KOBO: String(above),
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    operators = await TwoOperators.connect(gateway.app.adminPort);
  });
  after(async () => {
    operators.close();
    await gateway.stop();
  });
  beforeEach(async () => {
    partner = await gateway.newPartner();
  });

  const payment = (amount: bigint, bankReference: string = randomUUID(), of = partner.id) => ({
    partner_id: of,
    amount_kobo: String(amount),
    bank_reference: bankReference,
    reason,
  });
  type Payment = ReturnType<typeof payment>;
  const credit = (paid: Payment, name: OperatorName = 'ada') => operators.as(name, 'Wallets.CreditWallet', paid);
  const refusedApproval = (id: string) => operators.refused('bola', 'Proposals.ApproveProposal', { id });

  /** The id of the proposal of a payment. */
  async function propose(paid: Payment): Promise<string> {
    const { recorded, credit: entry, proposal } = await credit(paid);
    assert.deepEqual([recorded, entry, proposal?.action], [false, undefined, 'Wallets.CreditWallet']);
    return proposal.id;
  }

  async function available(): Promise<bigint> {
    return BigInt((await gateway.rest('GET', '/v1/wallet', { key: partner.key })).body.available_kobo);
  }

  async function ledgerFaults(): Promise<string[]> {
    const admin = adminClient(gateway.app.adminPort);
    try {
      return await verifyLedger(admin, partner.id);
    } finally {
      admin.close();
    }
  }

  async function auditOf(action: string): Promise<Found[]> {
    return (await operators.as('ada', 'Audit.ListEntries', { partner_id: partner.id, action })).entries;
  }

  async function largeCredits(): Promise<number> {
    return (await scrape(gateway.app.opsPort)).value('marina_large_credits_total');
  }

  it('a payment of exactly the amount is recorded at once, and one of a kobo more is proposed', async () => {
    const exact = await credit(payment(above));
    assert.deepEqual([exact.recorded, exact.credit.amount_kobo, exact.proposal], [true, String(above), undefined]);
    const more = payment(above + 1n);
    const id = await propose(more);
    assert.equal(await available(), above, 'a proposal recorded the payment');
    assert.equal(await propose(more), id, 'the same call again made another proposal');
    const { proposals } = await operators.as('bola', 'Proposals.ListProposals', { object_id: partner.id });
    assert.deepEqual(
      proposals.map((one: Found) => [one.id, one.state, one.evidence, one.proposed_by]),
      [[id, 'PROPOSAL_STATE_OPEN', reason, 'ada']],
    );
    const { reason: _, ...asked } = more;
    assert.deepEqual(JSON.parse(proposals[0].request), asked);
  });

  it('small payments of a day add up: the one that brings them above the amount is proposed, until midnight in Lagos', async () => {
    const paid = await Promise.all(Array.from({ length: 12 }, () => credit(payment(above / 10n))));
    assert.equal(
      paid.filter(({ recorded }) => recorded).length,
      10,
      'more than the amount was recorded by one operator',
    );
    assert.equal(paid.filter(({ proposal }) => proposal !== undefined).length, 2);
    assert.equal(await available(), above);
    const waiting = paid.find(({ proposal }) => proposal !== undefined);
    await operators.approve(waiting?.proposal.id);
    assert.equal(await available(), above + above / 10n);
    await propose(payment(1n));
    const other = await gateway.newPartner();
    assert.equal(
      (await credit(payment(1n, randomUUID(), other.id))).recorded,
      true,
      'another partner has its own amount',
    );
    await operators.as('ada', 'Clock.AdvanceClock', { by: '86400s', reason });
    assert.equal((await credit(payment(above))).recorded, true, 'the day before counts');
  });

  it('a thousand payments of a kobo do not hide the ones before them', async () => {
    const large = (above * 9n) / 10n;
    assert.equal((await credit(payment(large))).recorded, true);
    await propose(payment(large));
    const small = 999n;
    for (let left = Number(small); left > 0; left -= 37) {
      await Promise.all(Array.from({ length: 37 }, () => credit(payment(1n))));
    }
    assert.equal(await available(), large + small);
    await propose(payment(large));
    await propose(payment(1n));
  });

  it('another operator approves a payment once, and the ledger, the audit and the metric have it', async () => {
    const before = await largeCredits();
    const id = await propose(payment(above + 1n, 'GTB 77'));
    const own = await operators.refused('ADA', 'Proposals.ApproveProposal', { id });
    assert.equal(own.code, status.PERMISSION_DENIED, 'its proposer approved it');
    const approved = await Promise.all([operators.approve(id), operators.approve(id)]);
    assert.deepEqual(approved.map(({ changed }) => changed).sort(), [false, true]);
    assert.equal((await operators.approve(id)).changed, false, 'approving again recorded it again');
    assert.equal(await available(), above + 1n);
    assert.deepEqual(await ledgerFaults(), [], 'the ledger does not find the entry of the audit');
    const again = await credit(payment(above + 1n, 'GTB 77'));
    assert.deepEqual([again.recorded, again.credit.bank_reference, again.proposal], [false, 'GTB 77', undefined]);
    const entries = await auditOf('Wallets.CreditWallet');
    assert.deepEqual(
      entries.map(({ operator, detail }) => [operator, JSON.parse(detail).proposal, JSON.parse(detail).proposed_by]),
      [
        ['bola', id, 'ada'],
        ['ada', id, undefined],
      ],
    );
    assert.equal(JSON.parse(entries[0]?.detail).entry, again.credit.id);
    assert.equal((await auditOf('Proposals.ApproveProposal')).length, 1);
    assert.equal((await largeCredits()) - before, 1);
  });

  it('two payments of a partner wait at the same time, and another one with the same bank reference is refused', async () => {
    const [one, other] = [payment(above + 1n, 'first'), payment(above + 1n, 'second')];
    const ids = [await propose(one), await propose(other)];
    assert.notEqual(ids[0], ids[1]);
    for (const [name, paid] of [
      ['bola', one],
      ['ada', payment(above + 2n, 'first')],
    ] as const) {
      const refused = await operators.refused(name, 'Wallets.CreditWallet', paid);
      assert.equal(refused.code, status.ALREADY_EXISTS);
      assert.ok(refused.details.includes(ids[0] ?? ''), refused.details);
    }
    for (const id of ids) await operators.approve(id);
    assert.equal(await available(), 2n * (above + 1n));
  });

  it('a payment is not recorded if its bank reference was recorded since it was proposed', async () => {
    const other = await gateway.newPartner();
    const refusals = {
      'the same partner': [payment(5n, 'taken 1'), status.ALREADY_EXISTS],
      'another partner': [payment(5n, 'taken 2', other.id), status.ALREADY_EXISTS],
    } as const;
    for (const [who, [paid, code]] of Object.entries(refusals)) {
      const id = await propose(payment(above + 1n, paid.bank_reference));
      await credit(paid);
      assert.equal((await refusedApproval(id)).code, code, who);
      assert.equal((await operators.as('bola', 'Proposals.DeclineProposal', { id, reason })).changed, true);
      assert.equal((await refusedApproval(id)).code, status.FAILED_PRECONDITION);
    }
    assert.equal(await available(), 5n);
  });

  it('two partners with one bank reference: the first approval records it, the other is refused', async () => {
    const other = await gateway.newPartner();
    const ids = [await propose(payment(above + 1n, 'shared')), await propose(payment(above + 1n, 'shared', other.id))];
    const ended = await Promise.allSettled(ids.map((id) => operators.approve(id)));
    assert.deepEqual(ended.map((one) => one.status).sort(), ['fulfilled', 'rejected']);
    const refused = ended.find((one) => one.status === 'rejected') as PromiseRejectedResult;
    assert.equal(refused.reason.code, status.ALREADY_EXISTS);
  });

  it('a payment is not recorded if the wallet has no room for it any more', async () => {
    const waiting = await propose(payment(above + 1n));
    const filling = { partnerId: partner.id, amountKobo: 10n ** 18n - above, bankReference: 'filling' };
    await creditWallet(gateway.database, filling);
    const refused = await refusedApproval(waiting);
    assert.deepEqual([refused.code, refused.details.includes('10^18')], [status.FAILED_PRECONDITION, true]);
    assert.deepEqual(await ledgerFaults(), []);
  });

  it('a proposal expires after 7 days, and the same call proposes it again', async () => {
    const paid = payment(above + 1n);
    const id = await propose(paid);
    await operators.as('ada', 'Clock.AdvanceClock', { by: '604800s', reason });
    assert.equal((await refusedApproval(id)).code, status.FAILED_PRECONDITION);
    const again = await propose(paid);
    assert.notEqual(again, id);
    await operators.approve(again);
    assert.equal(await available(), above + 1n);
  });
});
