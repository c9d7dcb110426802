import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { operatorToken, startGateway, type TestGateway } from '../../../../support/gateway.ts';
import type { Found } from '../../../../support/operator.ts';
import { type OperatorName, operatorTokens, TwoOperators } from '../../../../support/two-operators.ts';

const reason = 'as agreed in the contract';

describe('rights that a second operator must approve', () => {
  let gateway: TestGateway;
  let operators: TwoOperators;
  let partner_id: string;
  before(async () => {
    gateway = await startGateway({
      MARINA_FOUR_EYES_ABOVE_KOBO: '1000000',
      MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
    });
    operators = await TwoOperators.connect(gateway.app.adminPort);
  });
  after(async () => {
    operators.close();
    await gateway.stop();
  });
  beforeEach(async () => {
    const created = await operators.as('ada', 'Partners.CreatePartner', { name: 'Lagoon Invest', reason });
    assert.deepEqual(created.proposals, []);
    partner_id = created.partner.id;
  });

  const call = (name: string, request: JsonObject, who: OperatorName = 'ada') =>
    operators.as(who, name, { partner_id, reason, ...request });
  const partner = async () => (await operators.as('ada', 'Partners.GetPartner', { partner_id })).partner;
  const refusedApproval = (id: string) => operators.refused('bola', 'Proposals.ApproveProposal', { id });
  const limit = async (name: string) => (await partner()).limits[name];

  /** Makes a call that only stores a proposal, twice, and answers with its id. */
  async function propose(name: string, request: JsonObject): Promise<string> {
    const [first, again] = [await call(name, request), await call(name, request)];
    assert.deepEqual([first.changed, first.proposal?.action], [false, name]);
    assert.equal(again.proposal.id, first.proposal.id, 'the same call again made another proposal');
    const other = await operators.refused('bola', name, { partner_id, reason, ...request });
    assert.equal(other.code, status.ALREADY_EXISTS);
    assert.ok(other.details.includes(first.proposal.id), other.details);
    assert.equal(
      (await operators.refused('ADA', 'Proposals.ApproveProposal', { id: first.proposal.id })).code,
      status.PERMISSION_DENIED,
    );
    return first.proposal.id;
  }

  async function isDirect(name: string, request: JsonObject): Promise<void> {
    const { changed, proposal } = await call(name, request);
    assert.deepEqual([changed, proposal], [true, undefined], JSON.stringify(request));
  }

  /** Approves twice: the second time changes nothing. */
  async function approve(id: string): Promise<void> {
    assert.deepEqual([(await operators.approve(id)).changed, (await operators.approve(id)).changed], [true, false]);
  }

  it('a limit of money is lowered at once and raised by two, also by setting it back to the default', async () => {
    for (const name of ['orders_kobo_per_day', 'allocations_kobo_per_day']) {
      const usual = BigInt(await limit(name));
      await isDirect('Partners.SetLimits', { limits: { [name]: String(usual - 1n) } });
      const setBack = { set_back: [`AGREED_LIMIT_${name.toUpperCase()}`] };
      const back = await propose('Partners.SetLimits', setBack);
      assert.equal(await limit(name), String(usual - 1n), 'a proposal raised the limit');
      await approve(back);
      assert.equal(await limit(name), String(usual));
      const higher = await propose('Partners.SetLimits', { limits: { [name]: String(usual + 1n) } });
      await approve(higher);
      assert.equal(await limit(name), String(usual + 1n));
      await isDirect('Partners.SetLimits', { limits: { [name]: String(usual) } });
    }
    await isDirect('Partners.SetLimits', { limits: { requests_per_second: 500, requests_under_way: 50 } });
  });

  it('a call that raises one limit and lowers another waits as a whole', async () => {
    const limits = { orders_kobo_per_day: '1', allocations_kobo_per_day: '9000000000' };
    const id = await propose('Partners.SetLimits', { limits });
    assert.notEqual(await limit('orders_kobo_per_day'), '1');
    await approve(id);
    assert.deepEqual(
      [await limit('orders_kobo_per_day'), await limit('allocations_kobo_per_day')],
      ['1', '9000000000'],
    );
  });

  it('a higher limit is not approved if a limit was changed since it was proposed', async () => {
    const id = await propose('Partners.SetLimits', { limits: { orders_kobo_per_day: '2000000000' } });
    await isDirect('Partners.SetLimits', { limits: { orders_kobo_per_day: '5' } });
    const refused = await refusedApproval(id);
    assert.equal(refused.code, status.FAILED_PRECONDITION);
    assert.match(refused.details, /`orders_kobo_per_day` was 1000000000 and is 5/);
    assert.equal(await limit('orders_kobo_per_day'), '5');
    assert.equal((await operators.as('bola', 'Proposals.DeclineProposal', { id, reason })).changed, true);
  });

  it('a new partner gets neither higher limits nor withdrawals before a second operator approves each', async () => {
    const request = {
      ...{ name: 'Marina Wealth', reason, features: ['FEATURE_WITHDRAWALS', 'FEATURE_ACCOUNT_OPENING'] },
      limits: { orders_kobo_per_day: '5000000000', allocations_kobo_per_day: '7', requests_burst: 90 },
    };
    const created = await operators.as('ada', 'Partners.CreatePartner', request);
    partner_id = created.partner.id;
    assert.deepEqual(created.partner.features, ['FEATURE_ACCOUNT_OPENING']);
    const { orders_kobo_per_day, allocations_kobo_per_day, requests_burst } = created.partner.limits;
    assert.deepEqual([orders_kobo_per_day, allocations_kobo_per_day, requests_burst], ['1000000000', '7', 90]);
    assert.deepEqual(
      created.proposals.map(({ action }: Found) => action),
      ['Partners.SetLimits', 'Partners.SetFeatures'],
    );
    for (const { id } of created.proposals) await approve(id);
    const { limits, features } = await partner();
    assert.equal(limits.orders_kobo_per_day, '5000000000');
    assert.deepEqual(features, ['FEATURE_ACCOUNT_OPENING', 'FEATURE_WITHDRAWALS']);
  });

  it('withdrawals are enabled by two and disabled by one, and other features by one', async () => {
    await isDirect('Partners.SetFeatures', { features: ['FEATURE_ACCOUNT_OPENING'] });
    const id = await propose('Partners.SetFeatures', { features: ['FEATURE_WITHDRAWALS'] });
    assert.deepEqual((await partner()).features, ['FEATURE_ACCOUNT_OPENING']);
    await approve(id);
    assert.deepEqual((await partner()).features, ['FEATURE_WITHDRAWALS']);
    await isDirect('Partners.SetFeatures', { features: [] });
  });

  it('an account is linked by two, and unlinked by one', async () => {
    const account = `A${partner_id.slice(-8).toUpperCase()}`;
    const id = await propose('Accounts.LinkAccount', { account });
    const linked = async () => (await operators.as('ada', 'Accounts.ListAccounts', { partner_id })).accounts.length;
    assert.equal(await linked(), 0, 'a proposal linked the account');
    await approve(id);
    assert.equal(await linked(), 1);
    assert.deepEqual((await call('Accounts.LinkAccount', { account })).changed, false);
    const taken = await propose('Accounts.LinkAccount', { account: `${account}X` });
    const other = (await operators.as('ada', 'Partners.CreatePartner', { name: 'Lekki Capital', reason })).partner.id;
    const proposed = await call('Accounts.LinkAccount', { partner_id: other, account: `${account}X` });
    await approve(proposed.proposal.id);
    assert.equal((await refusedApproval(taken)).code, status.ALREADY_EXISTS);
    await isDirect('Accounts.UnlinkAccount', { account });
  });

  it('the amount above which withdrawals wait is lowered by one and raised or removed by two', async () => {
    const amount = async () => (await partner()).withdrawal_release_above_kobo;
    await isDirect('Releases.SetReleaseAmount', { above_kobo: '1000' });
    await isDirect('Releases.SetReleaseAmount', { above_kobo: '999' });
    const higher = await propose('Releases.SetReleaseAmount', { above_kobo: '1000' });
    assert.equal(await amount(), '999');
    await approve(higher);
    assert.equal(await amount(), '1000');
    await approve(await propose('Releases.SetReleaseAmount', {}));
    assert.equal(await amount(), undefined);
  });

  it('a key that may fund is issued without that scope, which the approval adds', async () => {
    const scopes = ['SCOPE_READ', 'SCOPE_FUND'];
    const { key, secret, proposal } = await call('Keys.CreateKey', { scopes });
    assert.deepEqual([key.scopes, proposal.action, proposal.object_id], [['SCOPE_READ'], 'Keys.AddScopes', key.id]);
    assert.deepEqual(JSON.parse(proposal.request).scopes, ['SCOPE_FUND']);
    const body = { account: 'A1', amount_kobo: 5 };
    const allocate = async () =>
      (await gateway.rest('POST', '/v1/allocations', { key: secret, idempotencyKey: 'once', body })).body.error.code;
    assert.equal(await allocate(), 'insufficient_scope');
    await approve(proposal.id);
    assert.equal(await allocate(), 'unknown_account', 'the key may not fund although it was approved');
    const listed = await operators.as('ada', 'Keys.ListKeys', { partner_id });
    assert.deepEqual(listed.keys[0].scopes, scopes);
    const entries = (await operators.as('ada', 'Audit.ListEntries', { subject: key.id })).entries;
    assert.deepEqual(
      entries.map(({ action, operator }: Found) => [action, operator]),
      [
        ['Keys.AddScopes', 'bola'],
        ['Proposals.ApproveProposal', 'bola'],
        ['Keys.AddScopes', 'ada'],
        ['Keys.CreateKey', 'ada'],
      ],
    );
    assert.ok(!JSON.stringify(await operators.as('ada', 'Proposals.ListProposals')).includes(secret));
  });

  it('a key that may only move money is issued without any scope, and may do nothing', async () => {
    const { key, secret, proposal } = await call('Keys.CreateKey', { scopes: ['SCOPE_FUND', 'SCOPE_WITHDRAW'] });
    assert.deepEqual(key.scopes, []);
    const read = async () => (await gateway.rest('GET', '/v1/wallet', { key: secret })).body.error.code;
    assert.equal(await read(), 'insufficient_scope');
    const listed = await operators.as('ada', 'Keys.ListKeys', { partner_id });
    assert.deepEqual(listed.keys[0].scopes, []);
    await approve(proposal.id);
    assert.equal(await read(), 'insufficient_scope');
    const after = await operators.as('ada', 'Keys.ListKeys', { partner_id });
    assert.deepEqual(after.keys[0].scopes, ['SCOPE_FUND', 'SCOPE_WITHDRAW']);
  });

  it('scopes are added to a key by one operator, and those that move money by two', async () => {
    const { key, proposal } = await call('Keys.CreateKey', { scopes: ['SCOPE_READ'] });
    assert.equal(proposal, undefined);
    await isDirect('Keys.AddScopes', { key_id: key.id, scopes: ['SCOPE_TRADE'] });
    const again = await call('Keys.AddScopes', { key_id: key.id, scopes: ['SCOPE_TRADE'] });
    assert.equal(again.changed, false);
    const id = await propose('Keys.AddScopes', { key_id: key.id, scopes: ['SCOPE_WITHDRAW'] });
    await isDirect('Keys.AddScopes', { key_id: key.id, scopes: ['SCOPE_APPLY'] });
    const changed = await refusedApproval(id);
    assert.match(changed.details, /`scopes` was read,trade and is read,trade,apply/);
  });

  it('scopes are not added to a key that was revoked, is of another partner, or has no right seal', async () => {
    const scopes = ['SCOPE_READ', 'SCOPE_WITHDRAW'];
    const { key, proposal } = await call('Keys.CreateKey', { scopes });
    await operators.as('ada', 'Keys.RevokeKey', { key_id: key.id, reason });
    assert.equal((await refusedApproval(proposal.id)).code, status.FAILED_PRECONDITION);
    const changed = await call('Keys.CreateKey', { scopes });
    // Somebody who has the database gives the key a scope.
    await gateway.database.write(statement("UPDATE api_keys SET scopes = 'read,keys' WHERE id = ?", changed.key.id));
    assert.match((await refusedApproval(changed.proposal.id)).details, /no right seal/);
    const another = await operators.as('ada', 'Partners.CreatePartner', { name: 'Another', reason });
    const request = { partner_id: another.partner.id, key_id: changed.key.id, scopes: ['SCOPE_READ'], reason };
    assert.equal((await operators.refused('ada', 'Keys.AddScopes', request)).code, status.NOT_FOUND);
  });

  it('says in its status above which amount four eyes are on', async () => {
    const shown = await operators.as('ada', 'Diagnostics.GetStatus');
    assert.deepEqual([shown.four_eyes_above_kobo, shown.single_operator], ['1000000', false]);
  });
});

describe('an installation without four eyes', () => {
  const variables = {
    'a sandbox by default': {},
    'one with a single operator': { MARINA_SINGLE_OPERATOR: 'true', MARINA_FOUR_EYES_ABOVE_KOBO: '0' },
  };
  for (const [name, settings] of Object.entries(variables)) {
    it(`${name} makes every such change at once, and stores no proposal`, async () => {
      const gateway = await startGateway({
        ...settings,
        MARINA_OPERATOR_TOKENS: operatorTokens(`tester:${operatorToken}`),
      });
      const operators = await TwoOperators.connect(gateway.app.adminPort);
      try {
        const limits = { orders_kobo_per_day: '9007199254740991', allocations_kobo_per_day: '9007199254740991' };
        const wanted = { name: 'Lagoon Invest', limits, features: ['FEATURE_WITHDRAWALS'], reason };
        const { partner, proposals } = await operators.as('ada', 'Partners.CreatePartner', wanted);
        assert.deepEqual([partner.limits.orders_kobo_per_day, proposals], [limits.orders_kobo_per_day, []]);
        const scopes = ['SCOPE_READ', 'SCOPE_FUND', 'SCOPE_WITHDRAW'];
        const { key } = await operators.as('ada', 'Keys.CreateKey', { partner_id: partner.id, scopes, reason });
        assert.deepEqual(key.scopes, scopes);
        const calls: [string, JsonObject][] = [
          ['Partners.SetLimits', { limits: { orders_kobo_per_day: '1' } }],
          ['Partners.SetLimits', { set_back: ['AGREED_LIMIT_ORDERS_KOBO_PER_DAY'] }],
          ['Partners.SetFeatures', { features: [] }],
          ['Partners.SetFeatures', { features: ['FEATURE_WITHDRAWALS'] }],
          ['Releases.SetReleaseAmount', { above_kobo: '1' }],
          ['Releases.SetReleaseAmount', { above_kobo: '2' }],
          ['Releases.SetReleaseAmount', {}],
        ];
        for (const [each, request] of calls) {
          const answer = await operators.as('ada', each, { partner_id: partner.id, reason, ...request });
          assert.deepEqual([answer.changed, answer.proposal], [true, undefined], each);
        }
        const paid = { partner_id: partner.id, amount_kobo: '1000000000000000', bank_reference: 'all', reason };
        const { recorded, proposal } = await operators.as('ada', 'Wallets.CreditWallet', paid);
        assert.deepEqual([recorded, proposal], [true, undefined]);
        assert.deepEqual((await operators.as('ada', 'Proposals.ListProposals')).proposals, []);
        assert.equal((await operators.as('ada', 'Diagnostics.GetStatus')).four_eyes_above_kobo, undefined);
      } finally {
        operators.close();
        await gateway.stop();
      }
    });
  }
});
