import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createConnection, type Socket } from 'node:net';
import { after, before, describe, it } from 'node:test';
import type { JsonObject } from '@bufbuild/protobuf';
import { type ServiceError, status } from '@grpc/grpc-js';
import { startApp } from '../../../src/gateway/app/app.ts';
import { readConfig } from '../../../src/gateway/app/config.ts';
import { AccountStatus } from '../../../src/gen/marina/broker/v1/orders_pb.ts';
import { lagosDay } from '../../../src/kit/clock.ts';
import { createLogger } from '../../../src/kit/log.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, operatorToken, startGateway, type TestGateway } from '../../support/gateway.ts';
import { scrape } from '../../support/metrics.ts';
import { ReflectedClient } from '../../support/reflected.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';

const nobody = `par_${'a'.repeat(20)}`;
const silent = createLogger({ name: 'marina', level: 'silent' });

describe("the operators' port, to a client that knows no protos", { concurrency: 6 }, () => {
  let gateway: TestGateway;
  let client: ReflectedClient;
  before(async () => {
    gateway = await startGateway();
    client = await ReflectedClient.connect(`127.0.0.1:${gateway.app.adminPort}`);
  });
  after(async () => {
    client.close();
    await gateway.stop();
  });

  const call = (name: string, request: JsonObject = {}, token: string | undefined = operatorToken) =>
    client.call(`marina.admin.v1.${name}`, request, token);

  async function refused(name: string, request: JsonObject, token: string | undefined = operatorToken) {
    try {
      await call(name, request, token);
    } catch (error) {
      return error as ServiceError;
    }
    throw new Error(`${name} was not refused`);
  }

  async function newPartner(more: JsonObject = {}): Promise<string> {
    return (await call('Partners.CreatePartner', { name: 'Lagoon Invest', ...more })).partner.id;
  }

  const entries = async (partnerId: string) =>
    (await call('Audit.ListEntries', { partner_id: partnerId })).entries as Record<string, string>[];

  it('one address cannot take all connections, though its token is valid, and refused ones are counted', async () => {
    const { adminPort, opsPort } = gateway.app;
    const refusals = async () => (await scrape(opsPort)).value('marina_connections_refused_total');
    const [before, sockets] = [await refusals(), [] as Socket[]];
    const connect = (localAddress: string) =>
      new Promise<boolean>((resolve) => {
        const socket = createConnection({ host: '127.0.0.1', port: adminPort, localAddress });
        sockets.push(socket);
        // A refused connection is closed before a byte of HTTP/2 is sent.
        socket.once('data', () => resolve(true)).on('error', () => resolve(false));
        socket.once('close', () => resolve(false));
      });
    try {
      const taken = [];
      for (let count = 0; count < 60; count += 1) taken.push(await connect('127.0.0.1'));
      const admitted = taken.filter(Boolean).length;
      assert.ok(admitted > 30 && admitted <= 48, `${admitted} of 60 were admitted`);
      assert.equal((await refusals()) - before, 60 - admitted);
      assert.equal(await connect('127.0.0.2'), true, 'another address has room');
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  it('a first partner comes to trade by calls alone, and every change is in the audit log', async () => {
    const partnerId = await newPartner({ features: ['FEATURE_ACCOUNT_OPENING'], reason: 'signed on Monday' });
    assert.match(partnerId, /^par_[a-z2-7]{20}$/);
    const scopes = ['SCOPE_READ', 'SCOPE_TRADE'];
    const { key, secret } = await call('Keys.CreateKey', { partner_id: partnerId, scopes, addresses: ['127.0.0.0/8'] });
    assert.match(secret, /^marina_test_[a-z2-7]{78}$/);
    const account = `A${randomBytes(5).toString('hex').toUpperCase()}`;
    await gateway.controls.setAccount({ account, status: AccountStatus.ACTIVE }, callTimeout);
    const link = { partner_id: partnerId, account: account.toLowerCase() };
    assert.equal((await call('Accounts.LinkAccount', link)).changed, true);
    assert.equal((await call('Accounts.LinkAccount', link)).changed, false);

    const partner = { id: partnerId, key: secret, keyId: key.id, accounts: [account], account };
    const placed = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.equal(placed.status, 201, placed.text);
    const answer = await call('Partners.GetPartner', { partner_id: partnerId });
    assert.deepEqual([answer.active_keys, answer.accounts, answer.partner.name], [1, '1', 'Lagoon Invest']);
    assert.deepEqual(answer.partner.features, ['FEATURE_ACCOUNT_OPENING']);
    assert.equal(answer.partner.limits.requests_per_second, 20);
    assert.deepEqual(answer.partner.agreed_limits, {});

    const [linked, created, first] = await entries(partnerId);
    assert.deepEqual([linked?.action, linked?.subject], ['Accounts.LinkAccount', account]);
    assert.deepEqual([created?.action, created?.subject, created?.before], ['Keys.CreateKey', key.id, '']);
    assert.deepEqual(JSON.parse(created?.after ?? ''), { scopes: ['read', 'trade'], addresses: ['127.0.0.0/8'] });
    assert.deepEqual([first?.action, first?.operator], ['Partners.CreatePartner', 'tester']);
    assert.deepEqual(JSON.parse(first?.detail ?? ''), { reason: 'signed on Monday' });
    const written = JSON.stringify(await entries(partnerId)) + gateway.logged.join('');
    assert.ok(!written.includes(secret), 'a key is shown once, and written nowhere');
  });

  it('a suspended partner is refused at once, and comes back with the keys it had', async () => {
    const partner = await gateway.newPartner();
    const get = async () => (await gateway.rest('GET', '/v1/limits', { key: partner.key })).status;
    assert.equal(await get(), 200);
    const request = { partner_id: partner.id, reason: 'asked for by phone' };
    assert.deepEqual(await call('Partners.SuspendPartner', request), { changed: true });
    assert.equal(await get(), 401);
    assert.deepEqual(await call('Partners.SuspendPartner', request), { changed: false });
    assert.equal(
      (await call('Partners.GetPartner', { partner_id: partner.id })).partner.state,
      'PARTNER_STATE_SUSPENDED',
    );
    assert.deepEqual(await call('Partners.ResumePartner', request), { changed: true });
    assert.equal(await get(), 200);
    const [resumed, suspended, ...rest] = await entries(partner.id);
    assert.deepEqual([resumed?.before, resumed?.after], ['{"state":"suspended"}', '{"state":"active"}']);
    assert.deepEqual([suspended?.before, suspended?.after], ['{"state":"active"}', '{"state":"suspended"}']);
    assert.deepEqual(rest, []);
  });

  it('limits and features change at once, those that are not named stay, and defaults come back', async () => {
    const partner = await gateway.newPartner({ features: [] });
    const shown = async () => (await gateway.rest('GET', '/v1/limits', { key: partner.key })).body;
    const before = await shown();
    const { changed, partner: now } = await call('Partners.SetLimits', {
      partner_id: partner.id,
      limits: { orders_kobo_per_day: '9007199254740991', requests_under_way: 7 },
    });
    assert.deepEqual([changed, now.limits.orders_kobo_per_day], [true, '9007199254740991']);
    const after = await shown();
    assert.deepEqual([after.orders_kobo_per_day.limit, after.requests_under_way.limit], [9007199254740991, 7]);
    assert.deepEqual(after.requests_per_second, before.requests_per_second);
    const back = await call('Partners.SetLimits', {
      partner_id: partner.id,
      limits: { allocations_kobo_per_day: '0' },
      set_back: ['AGREED_LIMIT_ORDERS_KOBO_PER_DAY'],
    });
    assert.deepEqual(
      [back.partner.limits.orders_kobo_per_day, back.partner.agreed_limits.allocations_kobo_per_day],
      ['1000000000', '0'],
    );
    assert.equal((await shown()).allocations_kobo_per_day.limit, 0);
    const again = { partner_id: partner.id, limits: { requests_under_way: 7 } };
    assert.equal((await call('Partners.SetLimits', again)).changed, false);

    const apply = () => gateway.rest('POST', '/v1/applications', { key: partner.key, idempotencyKey: 'x', body: {} });
    assert.equal((await apply()).body.error.code, 'feature_not_enabled');
    const features = ['FEATURE_ACCOUNT_OPENING'];
    assert.equal((await call('Partners.SetFeatures', { partner_id: partner.id, features })).changed, true);
    assert.equal((await apply()).body.error.code, 'missing_required_field');
    assert.equal((await call('Partners.SetFeatures', { partner_id: partner.id })).changed, true);
    assert.equal((await apply()).body.error.code, 'feature_not_enabled');
    const [, enabled, , limits] = await entries(partner.id);
    assert.deepEqual([enabled?.before, enabled?.after], ['{"features":""}', '{"features":"account_opening"}']);
    assert.equal(JSON.parse(limits?.after ?? '').ordersKoboPerDay, '9007199254740991');
  });

  it('an account that was unlinked is unknown at once, also where an order was just placed for it', async () => {
    const partner = await gateway.newPartner();
    const other = await gateway.newPartner();
    const order = { symbol: 'SIM-REST', time_in_force: 'gtc' };
    const placed = await gateway.place(partner, order);
    assert.equal(placed.status, 201, placed.text);
    const request = { partner_id: partner.id, account: partner.account };
    const stolen = await refused('Accounts.LinkAccount', { ...request, partner_id: other.id });
    assert.equal(stolen.code, status.ALREADY_EXISTS);
    assert.deepEqual(await call('Accounts.UnlinkAccount', request), { changed: true });
    const refusal = await gateway.place(partner, { ...order, quantity: 7 });
    assert.equal(refusal.body.error?.code, 'unknown_account', refusal.text);
    assert.deepEqual(await call('Accounts.UnlinkAccount', request), { changed: false });
    const cancelled = await gateway.rest('DELETE', `/v1/orders/${placed.body.id}`, { key: partner.key });
    assert.equal(cancelled.body.state, 'cancelled', cancelled.text);
    await call('Accounts.LinkAccount', { ...request, partner_id: other.id });
    const { accounts } = await call('Accounts.ListAccounts', { account: partner.account });
    assert.deepEqual(
      accounts.map((found: JsonObject) => found.partner_id),
      [other.id],
    );
    const [unlinked] = await entries(partner.id);
    assert.equal(JSON.parse(unlinked?.before ?? '').partner, partner.id);
  });

  it('partners are found by a part of their name, in any case, a page at a time', async () => {
    const mark = randomBytes(6).toString('hex');
    const made: string[] = [];
    for (const name of [`Acme ${mark} One`, `ACME ${mark.toUpperCase()} two`, 'Acme 100% other', `x ${mark}`]) {
      made.push((await call('Partners.CreatePartner', { name })).partner.id);
    }
    const [one, two, , three] = made;
    const first = await call('Partners.ListPartners', { name_contains: `${mark}`, limit: 2 });
    const more = { name_contains: mark, limit: 2, after_partner_id: first.partners[1].id };
    const second = await call('Partners.ListPartners', more);
    const found = [...first.partners, ...second.partners].map(({ id }: JsonObject) => id);
    assert.deepEqual(found.toSorted(), [one, two, three].toSorted());
    assert.deepEqual([first.has_more, second.has_more], [true, false]);
    assert.deepEqual((await call('Partners.ListPartners', { name_contains: `${mark}%` })).partners, []);
  });

  it("a partner's keys are listed and revoked, at most ten are active", async () => {
    const partnerId = await newPartner();
    const made: string[] = [];
    for (let count = 0; count < 10; count += 1) {
      made.push((await call('Keys.CreateKey', { partner_id: partnerId, scopes: ['SCOPE_READ'] })).key.id);
    }
    const tooMany = await refused('Keys.CreateKey', { partner_id: partnerId, scopes: ['SCOPE_READ'] });
    assert.equal(tooMany.code, status.FAILED_PRECONDITION);
    assert.deepEqual(await call('Keys.RevokeKey', { key_id: made[0] ?? '' }), {
      changed: true,
      partner_id: partnerId,
      revoked_key_ids: [made[0]],
    });
    const page = await call('Keys.ListKeys', { partner_id: partnerId, limit: 6 });
    const rest = await call('Keys.ListKeys', { partner_id: partnerId, limit: 6, before_key_id: page.keys.at(-1).id });
    assert.deepEqual([page.has_more, rest.has_more], [true, false]);
    const keys = [...page.keys, ...rest.keys];
    assert.deepEqual(
      keys.map(({ id }) => id),
      made.toReversed(),
    );
    assert.deepEqual(
      keys.filter(({ revoked_at: at }) => at !== undefined).map(({ id }) => id),
      made.slice(0, 1),
    );
  });

  it('the audit log pages backwards, and finds by operator, action, subject and time', async () => {
    const partnerId = await newPartner();
    const account = (number: number) => `AUDIT${partnerId.slice(-8).toUpperCase()}${number}`;
    for (let number = 0; number < 5; number += 1) {
      await call('Accounts.LinkAccount', { partner_id: partnerId, account: account(number) });
    }
    const first = await call('Audit.ListEntries', { partner_id: partnerId, limit: 4 });
    const second = await call('Audit.ListEntries', { partner_id: partnerId, limit: 4, before_id: first.entries[3].id });
    assert.deepEqual([first.has_more, second.has_more, second.entries.length], [true, false, 2]);
    const one = { partner_id: partnerId, action: 'Accounts.LinkAccount', operator: 'tester', subject: account(3) };
    const found = (await call('Audit.ListEntries', one)).entries;
    assert.equal(found.length, 1);
    const at = found[0].at as string;
    assert.equal((await call('Audit.ListEntries', { ...one, to: at })).entries.length, 0);
    assert.equal((await call('Audit.ListEntries', { ...one, from: at })).entries.length, 1);
    assert.equal((await call('Audit.ListEntries', { ...one, operator: 'nobody' })).entries.length, 0);
  });

  it('every call refuses a missing token, a wrong one, and a key of a partner', async () => {
    const { key } = await gateway.newPartner();
    const calls = client.calls('marina.admin.v1.');
    assert.ok(calls.length > 25, 'all calls are found by reflection');
    for (const { name, isStream } of calls) {
      for (const token of [undefined, 'wrong-operator-token-0123456789', key, '']) {
        const make = async () => {
          const path = `marina.admin.v1.${name}`;
          await (isStream ? client.stream(path, {}, token).next() : client.call(path, {}, token));
        };
        // So many calls without a valid token cost an address its connections, and a call that meets such an end is made again.
        const answered = await eventually(async () => {
          const error: ServiceError | undefined = await make()
            .then(() => undefined)
            .catch((one) => one);
          assert.notEqual(error?.code, status.UNAVAILABLE);
          return error?.code;
        });
        assert.equal(answered, status.UNAUTHENTICATED, `${name} with ${token ?? 'no token'}`);
      }
    }
  });

  it('every call refuses bytes that are no message, and those that need something refuse an empty one by its field', async () => {
    const nothingNeeded = new Set([
      'Audit.ListEntries',
      'Clock.AdvanceClock',
      'Diagnostics.GetStatus',
      'Diagnostics.ListContradictions',
      'Diagnostics.ListReconciliationBreaks',
      'Diagnostics.ListReconciliations',
      'Diagnostics.ListUnsettled',
      'Diagnostics.WhoAmI',
      'Partners.ListPartners',
      'Proposals.ListProposals',
      'Releases.ListHeldWithdrawals',
      'Trading.ListBulkCancels',
      'Trading.ListStops',
      'Trading.PauseTrading',
      'Trading.ResumeTrading',
      'Wallets.ListWallets',
      'Audit.VerifyEntries',
    ]);
    for (const { name, isStream } of client.calls('marina.admin.v1.')) {
      if (isStream) continue;
      const path = client.pathOf(`marina.admin.v1.${name}`);
      const garbled = await client.raw(path, Buffer.from('\xff\xff\xff'), operatorToken).catch((error) => error);
      assert.equal(garbled.code, status.INVALID_ARGUMENT, name);
      assert.equal(client.violations(garbled).length, 1, name);
      if (nothingNeeded.has(name)) continue;
      const empty = await refused(name, {});
      assert.equal(empty.code, status.INVALID_ARGUMENT, name);
      const [violation] = client.violations(empty);
      assert.match(violation?.field ?? '', /^[a-z_]+$/, name);
      assert.equal(violation?.description, empty.details, name);
    }
  });

  it('a value that cannot be is refused with its field, and nothing is done', async () => {
    const partner_id = await newPartner();
    const long = 'x'.repeat(201);
    const cases: [string, JsonObject, string][] = [
      ['Partners.CreatePartner', { name: '' }, 'name'],
      ['Partners.CreatePartner', { name: long }, 'name'],
      ['Partners.CreatePartner', { name: 'a', limits: { requests_per_second: 0 } }, 'limits.requests_per_second'],
      ['Partners.CreatePartner', { name: 'a', limits: { orders_kobo_per_day: '-1' } }, 'limits.orders_kobo_per_day'],
      ['Partners.CreatePartner', { name: 'a', features: ['FEATURE_UNSPECIFIED'] }, 'features[0]'],
      ['Partners.CreatePartner', { name: 'a', features: [99] }, 'features[0]'],
      ['Partners.GetPartner', { partner_id: 'par_1' }, 'partner_id'],
      ['Partners.ListPartners', { limit: 101 }, 'limit'],
      ['Partners.ListPartners', { limit: -1 }, 'limit'],
      ['Partners.ListPartners', { name_contains: 'x' }, 'name_contains'],
      ['Partners.ListPartners', { name_contains: 'x'.repeat(101) }, 'name_contains'],
      ['Partners.SuspendPartner', { partner_id, reason: long }, 'reason'],
      ['Partners.SetLimits', { partner_id }, 'limits'],
      [
        'Partners.SetLimits',
        { partner_id, limits: { requests_burst: 5 }, set_back: ['AGREED_LIMIT_REQUESTS_BURST'] },
        'set_back[0]',
      ],
      ['Keys.CreateKey', { partner_id, scopes: [] }, 'scopes'],
      ['Keys.CreateKey', { partner_id, scopes: ['SCOPE_UNSPECIFIED'] }, 'scopes[0]'],
      ['Keys.CreateKey', { partner_id, scopes: ['SCOPE_READ'], addresses: ['127.1'] }, 'addresses[0]'],
      ['Keys.AddScopes', { partner_id, key_id: `key_${'a'.repeat(20)}`, scopes: [] }, 'scopes'],
      ['Keys.AddScopes', { partner_id, key_id: 'key_1', scopes: ['SCOPE_READ'] }, 'key_id'],
      ['Accounts.LinkAccount', { partner_id, account: 'A-1' }, 'account'],
      ['Accounts.LookUpAccount', { account: 'A-1' }, 'account'],
      ['Accounts.ListAccounts', {}, 'partner_id'],
      ['Audit.ListEntries', { before_id: '-1' }, 'before_id'],
      ['Audit.ListEntries', { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' }, 'to'],
      ['Diagnostics.ListContradictions', { partner_id, object_id: `ord_${'a'.repeat(20)}` }, 'partner_id'],
      ['Diagnostics.ListContradictions', { limit: 101 }, 'limit'],
      ['Diagnostics.AcknowledgeContradiction', { object_id: `ord_${'a'.repeat(20)}`, reason: 'a drill' }, 'up_to_step'],
      ['Diagnostics.AcknowledgeContradiction', { object_id: `ord_${'a'.repeat(20)}`, up_to_step: 1 }, 'reason'],
      ['Trading.PauseTrading', { reason: long }, 'reason'],
      ['Trading.AddStop', { symbol: 'DANGCEM', actions: ['STOP_ACTION_BUY'] }, 'reason'],
      ['Trading.AddStop', { symbol: 'dangcem', actions: ['STOP_ACTION_BUY'], reason: 'a drill' }, 'symbol'],
      ['Trading.EndStop', { id: 'stp_1', reason: 'a drill' }, 'id'],
      ['Trading.ListStops', { limit: 201 }, 'limit'],
      ['Trading.CountOpenOrders', { symbol: 'dangcem' }, 'symbol'],
      ['Trading.CountOpenOrders', { side: 'ORDER_SIDE_BUY' }, 'partner_id'],
      ['Trading.CancelOpenOrders', { symbol: 'DANGCEM', at_most: 1 }, 'reason'],
      ['Trading.CancelOpenOrders', { symbol: 'DANGCEM', reason: 'a drill' }, 'at_most'],
      ['Trading.CancelOpenOrders', { symbol: 'DANGCEM', at_most: 50_001, reason: 'a drill' }, 'at_most'],
      ['Trading.CancelOpenOrders', { at_most: 1, reason: 'a drill' }, 'partner_id'],
      ['Trading.GetBulkCancel', { id: 'bcl_1' }, 'id'],
      ['Trading.ListBulkCancels', { limit: 201 }, 'limit'],
      ['Trading.ListBulkCancelOrders', { id: `bcl_${'a'.repeat(20)}`, result: 9 }, 'result'],
      ['Trading.StopBulkCancel', { id: 'bcl_1', reason: 'a drill' }, 'id'],
      ['Releases.SetReleaseAmount', { partner_id, above_kobo: '-1', reason: 'a drill' }, 'above_kobo'],
      ['Releases.ListHeldWithdrawals', { limit: 101 }, 'limit'],
      ['Releases.ProposeRelease', { withdrawal_id: 'wdr_1', evidence: 'a drill' }, 'withdrawal_id'],
      ['Releases.RefuseWithdrawal', { withdrawal_id: 'wdr_1', reason: 'a drill' }, 'withdrawal_id'],
      ['Clock.AdvanceClock', { by: '-1s' }, 'by'],
      ['Clock.AdvanceClock', { by: '34560001s' }, 'by'],
      ['Wallets.CreditWallet', { partner_id, amount_kobo: '0', bank_reference: 'a' }, 'amount_kobo'],
      ['Wallets.CreditWallet', { partner_id, amount_kobo: '1', bank_reference: ' a' }, 'bank_reference'],
      ['Wallets.DebitWallet', { partner_id, amount_kobo: '0', bank_reference: 'a' }, 'amount_kobo'],
      ['Wallets.DebitWallet', { partner_id, amount_kobo: '1', bank_reference: 'a ' }, 'bank_reference'],
      ['Wallets.ReverseCredit', { partner_id, amount_kobo: '1', bank_reference: 'a' }, 'credit_bank_reference'],
      ['Wallets.ListCorrections', { partner_id, before_sequence: '-1' }, 'before_sequence'],
      ['Webhooks.RegisterEndpoint', { partner_id, url: 'http://example.com' }, 'url'],
      ['Webhooks.ListDeliveries', { partner_id, state: 9 }, 'state'],
      ['Webhooks.Redeliver', { partner_id }, 'event_id'],
    ];
    for (const [name, request, field] of cases) {
      const error = await refused(name, request);
      assert.equal(error.code, status.INVALID_ARGUMENT, `${name} ${JSON.stringify(request)}: ${error.details}`);
      assert.deepEqual(
        client.violations(error).map((violation) => violation.field),
        [field],
        name,
      );
    }
    assert.deepEqual(
      (await entries(partner_id)).map(({ action }) => action),
      ['Partners.CreatePartner'],
    );
    const absent: [string, JsonObject][] = [
      ['Partners.GetPartner', {}],
      ['Partners.SuspendPartner', {}],
      ['Partners.SetFeatures', {}],
      ['Keys.CreateKey', { scopes: ['SCOPE_READ'] }],
      ['Keys.AddScopes', { key_id: `key_${'a'.repeat(20)}`, scopes: ['SCOPE_READ'] }],
      ['Keys.ListKeys', {}],
      ['Accounts.LinkAccount', { account: 'A1' }],
      ['Accounts.ListAccounts', {}],
    ];
    for (const [name, request] of absent) {
      assert.equal((await refused(name, { partner_id: nobody, ...request })).code, status.NOT_FOUND, name);
    }
  });

  it('another replica follows at once, and within five seconds also when no message comes', async () => {
    // Without a NATS of the same prefix no message reaches it.
    const alone = await startApp(readConfig({ ...gateway.variables, MARINA_NATS_PREFIX: 'elsewhere-' }), silent);
    const other = await startApp(readConfig(gateway.variables), silent);
    try {
      const partner = await gateway.newPartner();
      const statusAt = async ({ restPort }: { restPort: number }) => {
        const headers = { authorization: `Bearer ${partner.key}` };
        return (await fetch(`http://127.0.0.1:${restPort}/v1/limits`, { headers })).status;
      };
      assert.deepEqual([await statusAt(alone), await statusAt(other)], [200, 200]);
      await call('Partners.SuspendPartner', { partner_id: partner.id });
      await eventually(async () => assert.equal(await statusAt(other), 401), 4_500);
      await eventually(async () => assert.equal(await statusAt(alone), 401), 15_000);
    } finally {
      await Promise.all([alone.stop(), other.stop()]);
    }
  });
});

describe('every change an operator makes', () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let client: ReflectedClient;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway(receiver.variables);
    client = await ReflectedClient.connect(`127.0.0.1:${gateway.app.adminPort}`);
  });
  after(async () => {
    client.close();
    await gateway.stop();
    await receiver.close();
  });

  it('is one row of the audit log, with who, what, when, before and after; a call that changes nothing is none', async () => {
    const made: { name: string; request: JsonObject }[] = [];
    const call = async (name: string, request: JsonObject = {}) => {
      made.push({ name, request });
      return client.call(`marina.admin.v1.${name}`, request, operatorToken);
    };
    const { partner } = await call('Partners.CreatePartner', { name: 'Lagoon Invest' });
    const partner_id = partner.id as string;
    const { key } = await call('Keys.CreateKey', { partner_id, scopes: ['SCOPE_TRADE'] });
    await call('Keys.AddScopes', { partner_id, key_id: key.id, scopes: ['SCOPE_READ'] });
    await call('Accounts.LinkAccount', { partner_id, account: 'A1' });
    await call('Accounts.UnlinkAccount', { partner_id, account: 'A1' });
    await call('Partners.SetLimits', { partner_id, limits: { requests_burst: 80 } });
    await call('Partners.SetFeatures', { partner_id, features: ['FEATURE_ACCOUNT_OPENING'] });
    await call('Partners.SuspendPartner', { partner_id });
    await call('Partners.ResumePartner', { partner_id });
    await call('Keys.RevokeKey', { key_id: key.id });
    await call('Wallets.CreditWallet', { partner_id, amount_kobo: '100', bank_reference: 'GTB 1' });
    await call('Wallets.DebitWallet', { partner_id, amount_kobo: '10', bank_reference: 'GTB 2' });
    const reversal = { credit_bank_reference: 'GTB 1', bank_reference: 'GTB 3' };
    await call('Wallets.ReverseCredit', { partner_id, amount_kobo: '20', ...reversal });
    const { secret } = await call('Webhooks.RegisterEndpoint', { partner_id, url: receiver.url('/a') });
    await call('Webhooks.MoveEndpoint', { partner_id, url: receiver.url('/b') });
    const rotated = await call('Webhooks.RotateSecret', { partner_id });
    await call('Webhooks.PauseEndpoint', { partner_id });
    await call('Webhooks.ResumeEndpoint', { partner_id });
    await call('Webhooks.SendTest', { partner_id });
    await call('Diagnostics.ReconcileNow', { partner_id });
    await call('Diagnostics.ReconcileDay', { day: lagosDay(Date.now()) });
    await call('Trading.PauseTrading', { reason: 'a drill' });
    await call('Trading.ResumeTrading', { reason: 'a drill' });
    const { stop } = await call('Trading.AddStop', { partner_id, actions: ['STOP_ACTION_BUY'], reason: 'a drill' });
    await call('Trading.EndStop', { id: stop.id, reason: 'a drill' });
    await call('Releases.SetReleaseAmount', { partner_id, above_kobo: '1000', reason: 'a drill' });
    await call('Clock.AdvanceClock', { by: '60s' });
    // Nothing was delivered that could be sent again, nothing sent that could be released or is unknown, and no day differs.
    const unaudited = new Set(['Webhooks.Redeliver', 'Documents.ReleaseDocument', 'Diagnostics.AcknowledgeBreak']);
    unaudited.add('Diagnostics.AcknowledgeUnsettled');
    // It needs a contradiction: contradictions.integration.test.ts has its entry.
    unaudited.add('Diagnostics.AcknowledgeContradiction');
    // These need two operators and an object with an unknown outcome: settlements.test.ts has their entries.
    for (const call of ['ApproveProposal', 'DeclineProposal']) unaudited.add(`Proposals.${call}`);
    unaudited.add('Settlements.ProposeSettlement');
    // These need a withdrawal that waits: releases.integration.test.ts has their entries.
    for (const call of ['ProposeRelease', 'RefuseWithdrawal']) unaudited.add(`Releases.${call}`);
    // These need open orders: bulk-cancels.integration.test.ts has their entries.
    for (const call of ['CancelOpenOrders', 'StopBulkCancel']) unaudited.add(`Trading.${call}`);
    const reads = /^(Audit|.*\.(Get|List|LookUp|Find|Count|Verify|Watch|Export|WhoAmI))/;
    const changing = client.calls('marina.admin.v1.').filter(({ name }) => !reads.test(name) && !unaudited.has(name));
    assert.deepEqual(made.map(({ name }) => name).toSorted(), changing.map(({ name }) => name).toSorted());

    const { entries } = await client.call('marina.admin.v1.Audit.ListEntries', { limit: 100 }, operatorToken);
    assert.deepEqual(
      entries.map(({ action }: JsonObject) => action),
      made.map(({ name }) => name).reverse(),
    );
    const noState = new Set([
      'Wallets.CreditWallet',
      'Wallets.DebitWallet',
      'Wallets.ReverseCredit',
      'Webhooks.RotateSecret',
      'Webhooks.SendTest',
      'Diagnostics.ReconcileNow',
      'Diagnostics.ReconcileDay',
    ]);
    const noBefore = new Set([
      'Partners.CreatePartner',
      'Keys.CreateKey',
      'Accounts.LinkAccount',
      'Trading.AddStop',
      'Webhooks.RegisterEndpoint',
    ]);
    for (const { action, operator, at, detail, before: was, after: became } of entries) {
      assert.equal(operator, 'tester');
      assert.ok(Math.abs(Date.parse(at) - Date.now()) < 120_000, at);
      assert.equal(typeof JSON.parse(detail), 'object', action);
      if (noState.has(action)) continue;
      if (!noBefore.has(action)) assert.equal(typeof JSON.parse(was), 'object', action);
      if (action !== 'Accounts.UnlinkAccount') assert.equal(typeof JSON.parse(became), 'object', action);
      assert.notEqual(was, became, action);
    }
    const written = JSON.stringify(entries) + gateway.logged.join('');
    for (const text of [secret, rotated.secret, operatorToken])
      assert.ok(!written.includes(text), 'no secret is written');

    for (const [name, request] of [
      ['Partners.ResumePartner', { partner_id }],
      ['Partners.SetLimits', { partner_id, limits: { requests_burst: 80 } }],
      ['Partners.SetFeatures', { partner_id, features: ['FEATURE_ACCOUNT_OPENING'] }],
      ['Keys.RevokeKey', { key_id: key.id }],
      ['Accounts.UnlinkAccount', { partner_id, account: 'A1' }],
      ['Trading.ResumeTrading', {}],
      ['Trading.EndStop', { id: stop.id, reason: 'again' }],
      ['Releases.SetReleaseAmount', { partner_id, above_kobo: '1000', reason: 'again' }],
      ['Webhooks.ResumeEndpoint', { partner_id }],
    ] satisfies [string, JsonObject][]) {
      assert.equal((await client.call(`marina.admin.v1.${name}`, request, operatorToken)).changed, false, name);
    }
    const after = await client.call('marina.admin.v1.Audit.ListEntries', { limit: 100 }, operatorToken);
    assert.equal(after.entries.length, entries.length);
  });

  it('a stream refuses what it cannot take, by its field', async () => {
    const name = 'marina.admin.v1.Diagnostics.WatchEvents';
    for (const [request, field] of [
      [{ partner_ids: ['par_1'] }, 'partner_ids[0]'],
      [{ partner_ids: Array.from({ length: 101 }, () => nobody) }, 'partner_ids'],
      [{ cursor: 'nonsense' }, 'cursor'],
      [{ cursor: 'nonsense', since: '2026-01-01T00:00:00Z' }, 'since'],
    ] satisfies [JsonObject, string][]) {
      const error = await client
        .stream(name, request, operatorToken)
        .next()
        .then(
          () => assert.fail(`${field} was not refused`),
          (thrown: ServiceError) => thrown,
        );
      assert.equal(error.code, status.INVALID_ARGUMENT, field);
      assert.deepEqual(
        client.violations(error).map((violation) => violation.field),
        [field],
      );
    }
  });
});
