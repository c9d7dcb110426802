import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { adminClient } from '../../../../support/admin.ts';
import { operatorToken, startGateway, type TestGateway, type TestPartner } from '../../../../support/gateway.ts';
import { creditWallet, verifyLedger } from '../../../../support/ledger.ts';
import { scrape } from '../../../../support/metrics.ts';
import type { Found } from '../../../../support/operator.ts';
import { operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

const above = 1_000_000n;
const reason = 'the partner asks for it';

describe('debits and reversals above the amount of four eyes', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  let partner: TestPartner;
  /** The bank reference of a credit of five times the amount. */
  let paid: string;
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
    paid = randomUUID();
    await creditWallet(gateway.database, { partnerId: partner.id, amountKobo: 5n * above, bankReference: paid });
  });

  type Taken = readonly [call: string, request: JsonObject];
  const request = (amount: bigint) => ({
    ...{ partner_id: partner.id, amount_kobo: String(amount), bank_reference: randomUUID(), reason },
  });
  const debit = (amount: bigint): Taken => ['Wallets.DebitWallet', request(amount)];
  const reversal = (amount: bigint): Taken => [
    'Wallets.ReverseCredit',
    { ...request(amount), credit_bank_reference: paid },
  ];
  const kinds = { 'a debit': debit, 'a reversal': reversal };
  const take = ([call, asked]: Taken): Promise<Found> => operators.as('ada', call, asked);
  const refusedApproval = (id: string) => operators.refused('bola', 'Proposals.ApproveProposal', { id });

  async function propose(taken: Taken): Promise<string> {
    const { recorded, correction, proposal } = await take(taken);
    assert.deepEqual([recorded, correction, proposal?.action], [false, undefined, taken[0]]);
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

  const largeCorrections = async () => (await scrape(gateway.app.opsPort)).value('marina_large_corrections_total');

  for (const [name, of] of Object.entries(kinds)) {
    it(`${name} of exactly the amount is recorded at once, and of one kobo more when another operator approves`, async () => {
      const before = await largeCorrections();
      const exact = await take(of(above));
      assert.deepEqual([exact.recorded, exact.proposal], [true, undefined]);
      const more = of(above + 1n);
      const id = await propose(more);
      assert.equal(await available(), 4n * above, 'a proposal took money');
      assert.equal(await propose(more), id, 'the same call again made another proposal');
      assert.equal(
        (await operators.refused('ADA', 'Proposals.ApproveProposal', { id })).code,
        status.PERMISSION_DENIED,
      );
      const approved = await Promise.all([operators.approve(id), operators.approve(id)]);
      assert.deepEqual(approved.map(({ changed }) => changed).sort(), [false, true]);
      assert.equal(await available(), 3n * above - 1n);
      const again = await take(more);
      assert.deepEqual([again.recorded, again.correction?.amount_kobo], [false, String(above + 1n)]);
      assert.deepEqual(await ledgerFaults(), [], 'the ledger does not find the entry of the audit');
      assert.equal((await largeCorrections()) - before, 1);
    });

    it(`${name} is not approved when so much is not available any more, and the message says how much is`, async () => {
      const id = await propose(of(5n * above));
      await take(debit(1n));
      const refused = await refusedApproval(id);
      assert.equal(refused.code, status.FAILED_PRECONDITION);
      assert.ok(refused.details.includes('the wallet has 4,999,999 kobo available'), refused.details);
      assert.equal(await available(), 5n * above - 1n);
    });
  }

  it('a reversal is not approved when another one of the credit was recorded meanwhile', async () => {
    const id = await propose(reversal(above + 1n));
    await take(reversal(7n));
    const refused = await refusedApproval(id);
    assert.equal(refused.code, status.FAILED_PRECONDITION);
    assert.ok(refused.details.includes('`reversed_kobo` was 0 and is 7'), refused.details);
    assert.equal(await available(), 5n * above - 7n);
  });

  const upTo = (amount: bigint): Taken => ['Wallets.ReverseCredit', { ...reversal(amount)[1], up_to_available: true }];

  it('a reversal of what is available takes what is available when it is approved, less or more than before', async () => {
    const asked = upTo(4n * above);
    await operators.approve(await propose(debit(3n * above)));
    const id = await propose(asked);
    assert.equal(await propose(asked), id, 'the same call again made another proposal');
    const { proposals } = await operators.as('bola', 'Proposals.ListProposals', { id });
    assert.equal(JSON.parse(proposals[0].request).up_to_available, true, 'the approver does not see it');
    await take(debit(7n));
    await operators.approve(id);
    assert.equal(await available(), 0n);
    const again = await take(asked);
    assert.deepEqual(
      [again.recorded, again.correction.amount_kobo, again.not_reversed_kobo],
      [false, String(2n * above - 7n), String(2n * above + 7n)],
    );

    await creditWallet(gateway.database, {
      partnerId: partner.id,
      amountKobo: 2n * above,
      bankReference: randomUUID(),
    });
    const more = await propose(upTo(9n * above));
    await creditWallet(gateway.database, {
      partnerId: partner.id,
      amountKobo: 9n * above,
      bankReference: randomUUID(),
    });
    await operators.approve(more);
    assert.equal(
      await available(),
      11n * above - (3n * above + 7n),
      'what was left of the credit is taken, and no more',
    );
    assert.deepEqual(await ledgerFaults(), []);
  });

  it('a reversal of what is available is not approved when nothing is available any more', async () => {
    const id = await propose(upTo(2n * above));
    await operators.approve(await propose(debit(5n * above)));
    const refused = await refusedApproval(id);
    assert.equal(refused.code, status.FAILED_PRECONDITION);
    assert.ok(refused.details.includes('the wallet has 0 kobo available'), refused.details);
  });

  it('the amount that could be taken decides whether a reversal needs a second operator, and what the day took counts', async () => {
    await operators.approve(await propose(debit(4n * above)));
    const first = await take(upTo(5n * above));
    assert.deepEqual([first.recorded, first.correction?.amount_kobo], [true, String(above)], 'all of it is the amount');
    await creditWallet(gateway.database, { partnerId: partner.id, amountKobo: 1n, bankReference: randomUUID() });
    await propose(upTo(4n * above));
    assert.equal(await available(), 1n, 'one operator took more than the amount in a day');
  });

  it('a debit and an approval of another one at once never take more than there is', async () => {
    const ids = [
      await propose(debit(2n * above)),
      await propose(debit(2n * above)),
      await propose(reversal(2n * above)),
    ];
    const ended = await Promise.allSettled(ids.map((id) => operators.approve(id)));
    assert.equal(ended.filter((one) => one.status === 'fulfilled').length, 2);
    assert.equal(await available(), above);
    assert.deepEqual(await ledgerFaults(), []);
  });
});
