import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { callRules } from '../../../../src/gateway/operators/calls/roles.ts';
import { newOperatorToken } from '../../../../src/kit/operator-tokens.ts';
import { operatorServices } from '../../../../src/tools/operator-reference.ts';
import { operatorToken, startGateway, type TestGateway } from '../../../support/gateway.ts';
import type { Found } from '../../../support/operator.ts';
import { ReflectedClient } from '../../../support/reflected.ts';

const ada = newOperatorToken('ada', Date.now() + 3_600_000, ['support', 'treasury', 'admin']);

/** A gateway whose operators call by what it says of itself. */
async function startWith(variables: Record<string, string>) {
  const gateway = await startGateway({
    MARINA_OPERATOR_TOKENS: `tester:${operatorToken},${ada.line}`,
    ...variables,
  });
  const client = await ReflectedClient.connect(`127.0.0.1:${gateway.app.adminPort}`);
  const call = (name: string, request: JsonObject = {}): Promise<Found> =>
    client.call(`marina.admin.v1.${name}`, request, ada.token);
  const entries = async (filter: JsonObject): Promise<Found[]> =>
    (await call('Audit.ListEntries', { limit: 100, ...filter })).entries;
  return { gateway, client, call, entries };
}

describe('the audit', () => {
  let gateway: TestGateway;
  let running: Awaited<ReturnType<typeof startWith>>;
  before(async () => {
    running = await startWith({ MARINA_LOG_CLIENT_ADDRESS: 'network' });
    ({ gateway } = running);
  });
  after(async () => {
    running.client.close();
    await gateway.stop();
  });

  it('an entry of the audit names the request, the client’s address as the log shows it, and the operator’s roles', async () => {
    const { partner } = await running.call('Partners.CreatePartner', { name: 'Acme', reason: 'a contract' });
    const [entry] = await running.entries({ partner_id: partner.id });
    assert.equal(entry.operator, 'ada');
    assert.equal(entry.roles, 'support+treasury+admin');
    assert.equal(entry.client_address, '127.0.0.0/24');
    assert.equal(entry.key_id, '');
    const line = gateway.logged.find((each) => each.includes(entry.request_id));
    assert.match(line ?? '', /"action":"Partners\.CreatePartner"/);
  });

  it('the audit has one entry for each read of money, with whose it was', async () => {
    const partner = await gateway.newPartner();
    await running.call('Wallets.ListCredits', { partner_id: partner.id, limit: 5 });
    await running.call('Wallets.ListWallets', { limit: 100 });
    const [read] = await running.entries({ partner_id: partner.id, operator: 'ada' });
    assert.equal(read.action, 'Wallets.ListCredits');
    assert.deepEqual(JSON.parse(read.detail), { asked: { partner_id: partner.id, limit: 5 } });
    const reads = await running.entries({ action: 'Wallets.ListWallets' });
    assert.equal(reads.length, 1);
    assert.equal(reads[0].partner_id, '');
  });

  it('the audit has a partner’s changes of its keys, with the key that made them', async () => {
    const partner = await gateway.newPartner();
    const made = await gateway.rest('POST', '/v1/keys', { key: partner.key, body: { scopes: ['read'] } });
    assert.equal(made.status, 201);
    await gateway.rest('DELETE', `/v1/keys/${made.body.id}`, { key: partner.key });
    const [revoked, created] = await running.entries({ subject: made.body.id });
    for (const entry of [revoked, created]) {
      assert.equal(entry.key_id, partner.keyId);
      assert.deepEqual([entry.operator, entry.partner_id], ['', partner.id]);
      assert.match(entry.request_id, /^[0-9a-f-]{36}$/);
    }
    assert.deepEqual([created.action, revoked.action], ['partner.CreateKey', 'partner.RevokeKey']);
    assert.deepEqual(JSON.parse(created.after), { scopes: ['read'], addresses: [] });
    // A key's timeline shows each change once.
    const { entries } = await running.call('Diagnostics.GetTimeline', { id: made.body.id });
    assert.deepEqual(
      entries.map(({ kind }: Found) => kind),
      ['created', 'revoked'],
    );
  });

  it('the audit is exported and verified over the operators’ port', async () => {
    const exported = async (request: JsonObject) => {
      const parts: Found[] = [];
      const path = 'marina.admin.v1.Audit.ExportEntries';
      for await (const part of running.client.stream(path, request, ada.token)) parts.push(part);
      assert.equal(parts.at(-1)?.complete, true);
      return parts.map(({ text = '' }) => text).join('');
    };
    const { partner } = await running.call('Partners.CreatePartner', { name: 'Exported', reason: 'a contract' });
    const period = { from: '2020-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z' };
    const filters: JsonObject[] = [
      { partner_id: partner.id },
      { subject: partner.id, ...period },
      { partner_id: partner.id, ...period },
    ];
    for (const filter of filters) {
      const text = await exported(filter);
      assert.match(
        text,
        /^id,at,operator,.*\r\n\d+,[^,]+,ada,support\+treasury\+admin,,Partners\.CreatePartner,par_.*\r\n$/,
      );
    }
    const format = 'EXPORT_FORMAT_JSON_LINES';
    const lines = (await exported({ operator: 'ada', action: 'Partners.CreatePartner', format })).trim().split('\n');
    assert.ok(lines.some((line) => JSON.parse(line).after.name === 'Exported'));
    await exported(period);
    const { complete, unsealed } = await running.call('Audit.VerifyEntries');
    assert.equal(complete, true);
    assert.ok(Number(unsealed) > 0);
    const wrong: JsonObject[] = [{ from: period.to, to: period.from }, { format: 7 }, { partner_id: 'x' }];
    for (const request of wrong) {
      await assert.rejects(exported(request), { code: status.INVALID_ARGUMENT });
    }
  });

  it('an order’s timeline says which key cancelled it', async () => {
    const partner = await gateway.newPartner();
    const { body: order } = await gateway.place(partner, { symbol: 'SIM-REST' });
    const cancelled = await gateway.rest('DELETE', `/v1/orders/${order.id}`, { key: partner.key });
    assert.equal(cancelled.body.state, 'cancelled');
    const { entries } = await running.call('Diagnostics.GetTimeline', { id: order.id });
    const said = entries.filter(({ kind }: Found) => kind === 'cancel').map(({ detail }: Found) => detail);
    assert.equal(said[0], `a cancel is sent, with the key ${partner.keyId}`);
  });

  it('a sandbox takes a change without a reason', async () => {
    const { partner } = await running.call('Partners.CreatePartner', { name: 'No reason' });
    const [entry] = await running.entries({ partner_id: partner.id });
    assert.deepEqual(JSON.parse(entry.detail), { reason: '' });
  });
});

describe('a live gateway', () => {
  let running: Awaited<ReturnType<typeof startWith>>;
  before(async () => {
    running = await startWith({
      ...{ MARINA_ENVIRONMENT: 'live', MARINA_SIMULATOR_ADDRESS: '' },
      MARINA_LOG_CLIENT_ADDRESS: 'none',
    });
  });
  after(async () => {
    running.client.close();
    await running.gateway.stop();
  });

  it('live refuses each change without a reason, names the field, and changes nothing', async () => {
    const partner = await running.gateway.newPartner({ addresses: ['127.0.0.1'] });
    const requests: Record<string, JsonObject> = {
      'Partners.CreatePartner': { name: 'Acme' },
      'Partners.SuspendPartner': { partner_id: partner.id },
      'Wallets.CreditWallet': { partner_id: partner.id, amount_kobo: '5', bank_reference: 'B1' },
      'Webhooks.RegisterEndpoint': { partner_id: partner.id, url: 'https://example.com/hooks' },
      'Trading.PauseTrading': {},
      'Keys.RevokeKey': { key_id: partner.keyId },
      'Accounts.LinkAccount': { partner_id: partner.id, account: 'ABC' },
    };
    for (const [name, request] of Object.entries(requests)) {
      for (const reason of [undefined, '', '   ']) {
        const error = await running.call(name, { ...request, ...(reason === undefined ? {} : { reason }) }).then(
          () => assert.fail(`${name} was not refused`),
          (thrown: ServiceError) => thrown,
        );
        assert.equal(error.code, status.INVALID_ARGUMENT, name);
        assert.deepEqual(
          running.client.violations(error).map(({ field }) => field),
          ['reason'],
          name,
        );
      }
    }
    assert.deepEqual(await running.entries({ partner_id: partner.id }), []);
    const { changed } = await running.call('Trading.PauseTrading', { reason: 'a drill' });
    assert.equal(changed, true);
    await running.call('Trading.ResumeTrading', { reason: 'the drill is over' });
    const [entry] = await running.entries({ action: 'Trading.PauseTrading' });
    assert.deepEqual(JSON.parse(entry.detail), { reason: 'a drill' });
    assert.equal(entry.client_address, '', 'no address is logged');
  });

  it('answers each call that only reads without a reason', async () => {
    const methods = (await operatorServices()).filter(({ typeName }) => typeName.startsWith('marina.admin.v1.'));
    const reading = methods.flatMap((service) => service.methods).filter((method) => callRules(method).readsOnly);
    assert.ok(reading.length > 20);
    for (const method of reading) assert.equal(callRules(method).reason, undefined, method.name);
    await running.call('Partners.ListPartners');
    await running.call('Wallets.ListWallets');
  });
});
