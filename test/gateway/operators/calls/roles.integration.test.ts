import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { callRules } from '../../../../src/gateway/operators/calls/roles.ts';
import { hasRole, newOperatorToken, operatorRoles } from '../../../../src/kit/operator-tokens.ts';
import { operatorServices } from '../../../../src/tools/operator-reference.ts';
import { eventually } from '../../../support/eventually.ts';
import { callTimeout, operatorToken, startGateway, type TestGateway } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';
import { ReflectedClient } from '../../../support/reflected.ts';
import { SecretFile } from '../../../support/secret-files.ts';

const hourMs = 3_600_000;
const evidence = { evidence: 'the desk said so', reference: 'desk 4711' };

describe("the roles of operators' tokens", () => {
  const tokens = Object.fromEntries(
    operatorRoles.map((role) => [role, newOperatorToken(`of-${role}`, Date.now() + hourMs, [role])]),
  );
  const trader = newOperatorToken('Trader', Date.now() + hourMs, ['trading']);
  const traders = newOperatorToken('trader', Date.now() + hourMs, ['trading', 'treasury']);
  const lines = [...Object.values(tokens), trader, traders].map(({ line }) => line);
  const file = new SecretFile(`tester:${operatorToken}`, ...lines);
  let gateway: TestGateway;
  let client: ReflectedClient;
  before(async () => {
    gateway = await startGateway({
      ...{ MARINA_OPERATOR_TOKENS: '', MARINA_OPERATOR_TOKENS_FILE: file.path },
      ...{ MARINA_SUBMIT_TIMEOUT_MS: '1000', MARINA_FOUR_EYES_ABOVE_KOBO: '1000' },
    });
    client = await ReflectedClient.connect(`127.0.0.1:${gateway.app.adminPort}`);
    await gateway.controls.setCapabilities({ honoursNotAfter: false }, callTimeout);
  });
  after(async () => {
    client.close();
    await gateway.stop(['exchange']);
  });

  const as = (token: string, call: string, request: JsonObject = {}) =>
    client.call(`marina.admin.v1.${call}`, request, token);

  async function refused(token: string, call: string, request: JsonObject = {}): Promise<ServiceError> {
    const answer = await as(token, call, request).catch((error: unknown) => ({ error }));
    if (!('error' in answer)) throw new Error(`${call} was not refused`);
    return answer.error as ServiceError;
  }

  it('decide about each call before its message is read, as the token is told beforehand', async () => {
    // A message that cannot be read shows whether the call came so far.
    const unreadable = Buffer.from([0xff]);
    for (const role of operatorRoles) {
      const told = await as(tokens[role]?.token ?? '', 'Diagnostics.WhoAmI');
      const allowed: string[] = [];
      for (const { name } of client.calls('marina.admin.v1.')) {
        const [service] = (await operatorServices()).filter(
          ({ typeName }) => typeName === `marina.admin.v1.${name.split('.')[0]}`,
        );
        const method = service?.methods.find((one) => one.name === name.split('.')[1]);
        assert.ok(method, name);
        const isAllowed = callRules(method).roles.some((needed) => hasRole([role], needed));
        const path = client.pathOf(`marina.admin.v1.${name}`);
        const error: ServiceError = await client.raw(path, unreadable, tokens[role]?.token).then(
          () => assert.fail(`${name} read an unreadable message`),
          (thrown: ServiceError) => thrown,
        );
        const expected = isAllowed ? status.INVALID_ARGUMENT : status.PERMISSION_DENIED;
        assert.equal(error.code, expected, `${name} with the role ${role}: ${error.details}`);
        if (error.code !== status.PERMISSION_DENIED) allowed.push(name);
        assert.equal(told[callRules(method).readsOnly ? 'changes' : 'reads'].includes(name), false, name);
      }
      assert.deepEqual([...told.reads, ...told.changes].toSorted(), allowed.toSorted(), role);
      assert.equal(told.reads_only, role === 'read');
    }
  });

  it('each token is told its operator, its end and the environment, whatever it may do', async () => {
    const read = await as(tokens.read?.token ?? '', 'Diagnostics.WhoAmI');
    assert.deepEqual(
      [read.operator, read.roles, read.environment, read.changes],
      ['of-read', ['OPERATOR_ROLE_READ'], 'sandbox', []],
    );
    const end = /\d{4}-\S+Z/.exec(tokens.read?.line ?? '')?.[0] ?? '';
    assert.equal(Date.parse(read.token_ends_at), Date.parse(end));
    const several = await as(traders.token, 'Diagnostics.WhoAmI');
    assert.deepEqual(several.roles, ['OPERATOR_ROLE_TRADING', 'OPERATOR_ROLE_TREASURY']);
    assert.ok(several.changes.includes('Wallets.CreditWallet') && several.changes.includes('Trading.PauseTrading'));
    const endless = await as(operatorToken, 'Diagnostics.WhoAmI');
    assert.deepEqual([endless.operator, endless.token_ends_at], ['tester', undefined]);
    assert.ok(!JSON.stringify([read, several, endless]).includes(operatorToken), 'a token is in the answer');
  });

  it('the status and a metric name the operators whose token does not end, until its line is replaced', async () => {
    const seen = async () => (await as(tokens.read?.token ?? '', 'Diagnostics.GetStatus')).operator_tokens;
    const names = new Set(['tester', 'trader', 'Trader', ...operatorRoles.map((role) => `of-${role}`)]);
    // Names that differ in capitals only are one person.
    const people = new Set([...names].map((name) => name.toLowerCase())).size;
    const { holders, ...others } = await seen();
    assert.deepEqual(others, { operators: people, without_end: ['tester'] });
    assert.deepEqual(
      [holders.length, holders[0], holders.at(-1).role],
      [operatorRoles.length, { role: 'OPERATOR_ROLE_READ', operators: people }, 'OPERATOR_ROLE_ADMIN'],
    );
    const endless = { operator: 'tester' };
    assert.equal((await scrape(gateway.app.opsPort)).value('marina_operator_token_endless', endless), 1);
    await file.change([newOperatorToken('tester', Date.now() + hourMs).line, ...lines], gateway.logged);
    assert.deepEqual((await seen()).without_end, []);
    assert.equal((await scrape(gateway.app.opsPort)).value('marina_operator_token_endless', endless), 0);
    await file.change([`tester:${operatorToken}`, ...lines], gateway.logged);
    assert.deepEqual((await seen()).without_end, ['tester']);
  });

  it('a refusal names the roles that are needed, and is logged and counted', async () => {
    const { details } = await refused(tokens.read?.token ?? '', 'Wallets.CreditWallet');
    assert.equal(details, 'the call needs one of the roles treasury, admin; this token has read');
    await eventually(() => {
      const lines = gateway.logged.filter((line) => line.includes('"code":"PERMISSION_DENIED"'));
      assert.ok(lines.some((line) => line.includes('"operator":"of-read"') && line.includes('CreditWallet')));
    });
    const labels = { call: 'Wallets.CreditWallet', code: 'PERMISSION_DENIED' };
    assert.ok((await scrape(gateway.app.opsPort)).value('marina_operator_calls_total', labels) >= 1);
  });

  it('let a token call an unknown method no further than its answer that there is none', async () => {
    const path = '/marina.admin.v1.Wallets/StealWallet';
    const error: ServiceError = await client.raw(path, Buffer.alloc(0), tokens.read?.token).then(
      () => assert.fail('it was answered'),
      (thrown: ServiceError) => thrown,
    );
    assert.equal(error.code, status.UNIMPLEMENTED);
  });

  it('let a back office follow events and find orders with read alone', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.place(partner, { symbol: 'SIM-REST' });
    const read = tokens.read?.token ?? '';
    const { orders } = await as(read, 'Diagnostics.FindOrders', { partner_id: partner.id });
    assert.equal(orders[0].order.id, body.id);
    const leaving = new AbortController();
    const watched = client.stream('marina.admin.v1.Diagnostics.WatchEvents', {}, read, leaving.signal);
    const { value } = await watched.next();
    assert.ok(value !== undefined);
    leaving.abort();
    await watched.return(undefined);
  });

  it('end a stream once the line of its token is removed', async () => {
    const short = newOperatorToken('of-stream', Date.now() + hourMs, ['support']);
    await file.change([`tester:${operatorToken}`, ...lines, short.line], gateway.logged);
    const messages = client.stream('marina.admin.v1.Diagnostics.WatchEvents', {}, short.token);
    await messages.next();
    await file.change([`tester:${operatorToken}`, ...lines], gateway.logged);
    const partner = await gateway.newPartner();
    const error = await (async () => {
      await gateway.place(partner, { symbol: 'SIM-REST' });
      for (;;) if ((await messages.next()).done) return undefined;
    })().catch((thrown: ServiceError) => thrown);
    assert.equal(error?.code, status.UNAUTHENTICATED);
  });

  it('let an operator decide a proposal only if he could have made it', async () => {
    const partner = await gateway.newPartner();
    const { body } = await gateway.place(partner, { symbol: 'SIM-RESET' });
    assert.equal(body.state, 'uncertain');
    const { proposal } = await as(trader.token, 'Settlements.ProposeSettlement', {
      ...{ object_id: body.id, ...evidence },
      outcome: {
        order: {
          state: 'SETTLED_ORDER_STATE_CANCELLED',
          ended_at: new Date().toISOString(),
          exchange_order_id: 'NGX-1',
        },
      },
    });
    const decide = { id: proposal.id, reason: 'compared' };
    for (const call of ['Proposals.ApproveProposal', 'Proposals.DeclineProposal']) {
      const error = await refused(tokens.treasury?.token ?? '', call, decide);
      assert.equal(error.code, status.PERMISSION_DENIED);
      assert.match(error.details, /needs one of the roles trading, admin; this token has treasury/);
      assert.equal((await refused(tokens.support?.token ?? '', call, decide)).code, status.PERMISSION_DENIED);
    }
    // Another token of the same person, with other roles.
    const own = await refused(traders.token, 'Proposals.ApproveProposal', decide);
    assert.equal(own.code, status.PERMISSION_DENIED);
    assert.match(own.details, /another operator than its proposer/);
    const { changed } = await as(tokens.trading?.token ?? '', 'Proposals.ApproveProposal', decide);
    assert.equal(changed, true);
  });

  it('let nobody below admin record a payment above the amount of four eyes alone', async () => {
    const { id: partner_id } = await gateway.newPartner();
    const paid = { partner_id, amount_kobo: '1001', bank_reference: 'large', reason: 'the statement' };
    for (const role of ['read', 'support', 'trading']) {
      assert.equal(
        (await refused(tokens[role]?.token ?? '', 'Wallets.CreditWallet', paid)).code,
        status.PERMISSION_DENIED,
      );
    }
    const treasury = tokens.treasury?.token ?? '';
    const { recorded, proposal } = await as(treasury, 'Wallets.CreditWallet', paid);
    assert.equal(recorded, false);
    const decide = { id: proposal.id, reason: 'compared' };
    for (const token of [treasury, ...['read', 'support', 'trading'].map((role) => tokens[role]?.token ?? '')]) {
      assert.equal((await refused(token, 'Proposals.ApproveProposal', decide)).code, status.PERMISSION_DENIED);
    }
    assert.equal((await as(traders.token, 'Proposals.ApproveProposal', decide)).changed, true);
  });

  it('let only an admin approve rights of a partner, and not the one who proposed them', async () => {
    const { id: partner_id } = await gateway.newPartner();
    const limits = { orders_kobo_per_day: '9007199254740991' };
    const admin = tokens.admin?.token ?? '';
    const { proposal } = await as(admin, 'Partners.SetLimits', { partner_id, limits, reason: 'agreed' });
    const decide = { id: proposal.id, reason: 'compared' };
    for (const token of [admin, tokens.treasury?.token ?? '', traders.token]) {
      assert.equal((await refused(token, 'Proposals.ApproveProposal', decide)).code, status.PERMISSION_DENIED);
    }
    assert.equal((await as(operatorToken, 'Proposals.ApproveProposal', decide)).changed, true);
  });
});
