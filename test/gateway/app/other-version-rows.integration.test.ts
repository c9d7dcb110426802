import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import type { ServiceError } from '@grpc/grpc-js';
import { connect, type NatsConnection } from 'nats';
import { areThese, copyToFeed } from '../../../src/gateway/delivery/events/outbox.ts';
import { IdMaker } from '../../../src/gateway/edge/ids.ts';
import { type SqlValue, statement } from '../../../src/gateway/store/statement.ts';
import { wallets } from '../../../src/gateway/trading/wallet/store.ts';
import { PartnerState, Partners } from '../../../src/gen/marina/admin/v1/partners_pb.ts';
import { DeliveryState } from '../../../src/gen/marina/admin/v1/webhooks_pb.ts';
import { MarketSession } from '../../../src/gen/marina/broker/v1/accounts_pb.ts';
import { AllocationState } from '../../../src/gen/marina/gateway/v1/allocations_pb.ts';
import { ApplicationState } from '../../../src/gen/marina/gateway/v1/applications_pb.ts';
import { DocumentState, DocumentType } from '../../../src/gen/marina/gateway/v1/documents_pb.ts';
import { Reference } from '../../../src/gen/marina/gateway/v1/reference_pb.ts';
import { WalletTransferType } from '../../../src/gen/marina/gateway/v1/wallet_pb.ts';
import { Feature, Scope } from '../../../src/gen/marina/options/v1/options_pb.ts';
import { ApplicationOutcome, Call } from '../../../src/gen/marina/simulator/v1/controls_pb.ts';
import { createGrpcClient } from '../../../src/kit/grpc-client.ts';
import { adminClient } from '../../support/admin.ts';
import { apply, overRest } from '../../support/documents.ts';
import { eventually } from '../../support/eventually.ts';
import { callTimeout, startGateway, type TestGateway, type TestPartner } from '../../support/gateway.ts';
import { noiseJpeg } from '../../support/images.ts';
import { insertRows } from '../../support/insert-rows.ts';
import { verifyLedger } from '../../support/ledger.ts';
import { scrape } from '../../support/metrics.ts';
import { feeEntry } from '../../support/other-version.ts';
import { connectCall, grpcClients } from '../../support/protocols.ts';
import { WebhookReceiver } from '../../support/webhook-receiver.ts';

const file = await noiseJpeg();

describe('what a newer version stored with names this version does not know', { concurrency: 4 }, () => {
  let receiver: WebhookReceiver;
  let gateway: TestGateway;
  let grpc: ReturnType<typeof grpcClients>;
  let admin: ReturnType<typeof adminClient>;
  let nats: NatsConnection;
  before(async () => {
    receiver = await WebhookReceiver.start();
    gateway = await startGateway(receiver.variables);
    grpc = grpcClients(gateway);
    admin = adminClient(gateway.app.adminPort);
    nats = await connect({ servers: String(gateway.variables.MARINA_NATS_URL).split(',') });
  });
  after(async () => {
    await nats.close();
    grpc.close();
    admin.close();
    // Rows are changed here as another version does, without events and entries.
    await gateway.stop(['objects', 'ledgers', 'exchange']);
    await receiver.close();
  });

  const write = (sql: string, ...values: SqlValue[]) => gateway.database.write(statement(sql, ...values));

  async function readRow(sql: string, ...values: SqlValue[]) {
    const [row] = await gateway.database.read(statement(sql, ...values));
    return row;
  }

  async function get({ key }: TestPartner, path: string) {
    const answer = await gateway.rest('GET', path, { key });
    assert.equal(answer.status, 200, answer.text);
    return answer.body;
  }

  async function calls(call: Call, id: string): Promise<number> {
    const { messages } = await gateway.controls.listMessages({}, callTimeout);
    return messages.filter((message) => message.call === call && message.clientOrderId === id).length;
  }

  it('an allocation is shown and left alone: its reserve stays, and the ledger is not called faulty', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000n);
    const plain = await gateway.allocate(partner, { amount_kobo: 1_000 });
    const { body: other } = await gateway.allocate(partner, { amount_kobo: 3_000 });
    assert.equal(plain.status, 201, plain.text);
    const held = other.id;
    await write(`UPDATE allocations SET state = 'in_review', reject_reason = 'too_odd' WHERE id = ?`, held);
    await write('UPDATE allocations SET check_at = ? WHERE id = ?', new Date(Date.now() - 1_000), held);
    const stored = await readRow('SELECT * FROM allocations WHERE id = ?', held);

    const { data } = await get(partner, '/v1/allocations');
    assert.deepEqual(
      data.map(({ state, reject_reason }: Record<string, string>) => [state, reject_reason]),
      [
        ['in_review', 'too_odd'],
        ['booked', null],
      ],
    );
    assert.equal((await get(partner, `/v1/allocations/${held}`)).state, 'in_review');
    const listed = await grpc.allocations.listAllocations({}, grpc.as(partner));
    assert.deepEqual(
      listed.data.map(({ state }) => state),
      [AllocationState.UNSPECIFIED, AllocationState.BOOKED],
    );
    const overConnect = await connectCall(gateway, partner, 'Allocations/GetAllocation', { id: held });
    assert.equal(overConnect.body.state, 'ALLOCATION_STATE_UNSPECIFIED');
    const alike = await gateway.allocate(partner, { amount_kobo: 3_000 });
    assert.deepEqual([alike.status, alike.body.error?.code], [409, 'similar_allocation_unresolved']);
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
    assert.equal(await calls(Call.LOOK_UP_ALLOCATION, held), 0);
    assert.deepEqual(await readRow('SELECT * FROM allocations WHERE id = ?', held), stored);
    const { allocations_kobo_per_day: day } = await get(partner, '/v1/limits');
    assert.equal(day.used, 4_000, 'it counts whole');
  });

  it('a wallet entry is shown with what it moved, and the ledger is whole', async () => {
    const partner = await gateway.newPartner();
    await gateway.fund(partner, 10_000n);
    const row = await readRow(wallets.find({ partnerId: partner.id }).sql, partner.id);
    assert.ok(row !== undefined);
    const head = wallets.all.read(row);
    const id = new IdMaker(Date).object('wtr');
    const createdAt = Math.floor(Date.now() / 1_000) * 1_000;
    // A newer version's fee of 300: made as an entry of a known type is, with its own name and sums.
    const fee = feeEntry(head, { id, amountKobo: 300n, createdAt });
    await write(
      `INSERT INTO wallet_transfers (partner_id, sequence, id, type, amount_kobo, available_after_kobo,
        reserved_after_kobo, posted_after_kobo, allocation_id, account, bank_reference, created_at, previous_hash, hash)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL, ?, ?, ?)`,
      partner.id,
      fee.sequence,
      id,
      fee.type,
      fee.amountKobo,
      fee.availableKobo,
      fee.reservedKobo,
      fee.postedKobo,
      new Date(createdAt),
      fee.previousHash,
      fee.hash,
    );
    await write(
      'UPDATE wallets SET last_sequence = ?, last_hash = ?, available_kobo = ? WHERE partner_id = ?',
      fee.sequence,
      fee.hash,
      fee.availableKobo,
      partner.id,
    );
    const booked = await gateway.allocate(partner, { amount_kobo: 1_000 });
    assert.equal(booked.status, 201, booked.text);
    const { data } = await get(partner, '/v1/wallet/transfers');
    assert.deepEqual(
      data.map(({ type, available_change_kobo }: Record<string, unknown>) => [type, available_change_kobo]),
      [
        ['post', 0],
        ['reserve', -1_000],
        ['fee', -300],
        ['credit', 10_000],
      ],
    );
    const listed = await grpc.wallet.listTransfers({}, grpc.as(partner));
    assert.equal(listed.data[2]?.type, WalletTransferType.UNSPECIFIED);
    assert.equal(listed.data[2]?.availableChangeKobo, -300n);
    const overConnect = await connectCall(gateway, partner, 'Wallet/ListTransfers', {});
    assert.equal(overConnect.body.data[2].type, 'WALLET_TRANSFER_TYPE_UNSPECIFIED');
    assert.deepEqual(await verifyLedger(admin, partner.id), []);
  });

  it('an application is shown, takes no documents, and misses no decision of the broker', async () => {
    const partner = await gateway.newPartner();
    const send = overRest(gateway.app.restPort);
    const id = await apply(gateway.rest, partner.key, { last_name: 'SIM-WAIT' });
    for (const type of ['photo', 'government_id', 'utility_bill', 'signature']) {
      assert.equal((await send({ key: partner.key, id, type, file })).outcome, 'delivered');
    }
    await write(`UPDATE applications SET state = 'under_review' WHERE id = ?`, id);
    assert.equal((await get(partner, `/v1/applications/${id}`)).state, 'under_review');
    assert.equal((await get(partner, '/v1/applications')).data[0].state, 'under_review');
    const one = await grpc.applications.getApplication({ id }, grpc.as(partner));
    assert.equal(one.state, ApplicationState.UNSPECIFIED);
    const overConnect = await connectCall(gateway, partner, 'Applications/ListApplications', {});
    assert.equal(overConnect.body.data[0].state, 'APPLICATION_STATE_UNSPECIFIED');
    const before = await calls(Call.SEND_DOCUMENT, id);
    const refused = await send({ key: partner.key, id, type: 'photo', file });
    assert.deepEqual([refused.status, refused.outcome], [409, 'application_not_accepting_documents']);
    assert.equal(await calls(Call.SEND_DOCUMENT, id), before);

    await gateway.controls.decideApplication(
      { clientApplicationId: id, outcome: ApplicationOutcome.OPEN },
      callTimeout,
    );
    await eventually(async () => {
      const row = await readRow('SELECT * FROM applications WHERE id = ?', id);
      assert.ok(BigInt(String(row?.missed_report)) > BigInt(String(row?.last_report)));
      assert.deepEqual([row?.state, row?.account], ['under_review', null]);
    });
    await write(`UPDATE applications SET state = 'submitted' WHERE id = ?`, id);
    const opened = await eventually(async () => {
      const application = await get(partner, `/v1/applications/${id}`);
      assert.equal(application.state, 'opened');
      return application;
    });
    const { data } = await get(partner, '/v1/accounts');
    assert.ok(data.some(({ account }: { account: string }) => account === opened.account));
  });

  it('a document is shown with the stored names, and no file of its type is sent', async () => {
    const partner = await gateway.newPartner();
    const send = overRest(gateway.app.restPort);
    const id = await apply(gateway.rest, partner.key);
    for (const type of ['photo', 'signature']) {
      assert.equal((await send({ key: partner.key, id, type, file })).outcome, 'delivered');
    }
    await write(`UPDATE documents SET state = 'verified' WHERE application_id = ? AND type = 'photo'`, id);
    await write(`UPDATE documents SET type = 'passport' WHERE application_id = ? AND type = 'signature'`, id);
    const named = ({ type, state }: { type: unknown; state: unknown }) => [type, state];
    const { data } = await get(partner, `/v1/applications/${id}/documents`);
    assert.deepEqual(data.map(named).sort(), [
      ['passport', 'delivered'],
      ['photo', 'verified'],
    ]);
    const listed = await grpc.applications.listDocuments({ id }, grpc.as(partner));
    assert.deepEqual(listed.data.map(named).sort(), [
      [DocumentType.UNSPECIFIED, DocumentState.DELIVERED],
      [DocumentType.PHOTO, DocumentState.UNSPECIFIED],
    ]);
    const before = await calls(Call.SEND_DOCUMENT, id);
    const refused = await send({ key: partner.key, id, type: 'photo', file });
    assert.deepEqual([refused.status, refused.outcome], [409, 'document_in_flight']);
    assert.equal(await calls(Call.SEND_DOCUMENT, id), before);
    const release = admin.documents.releaseDocument(
      { applicationId: id, type: 'photo', reason: 'test' },
      admin.options,
    );
    await assert.rejects(release, ({ details }: ServiceError) => details.includes('another version'));
  });

  it("a key's unknown scope grants nothing, and takes nothing from its other scopes", async () => {
    const partner = await gateway.newPartner({ scopes: [Scope.READ, Scope.KEYS] });
    await write(`UPDATE api_keys SET scopes = CONCAT(scopes, ',lend'), seal = NULL WHERE id = ?`, partner.keyId);
    const { data } = await get(partner, '/v1/keys');
    assert.deepEqual(data[0].scopes, ['read', 'keys', 'lend']);
    const listed = await grpc.keys.listKeys({}, grpc.as(partner));
    assert.deepEqual(listed.data[0]?.scopes, [Scope.READ, Scope.KEYS, Scope.UNSPECIFIED]);
    const overConnect = await connectCall(gateway, partner, 'Keys/ListKeys', {});
    assert.deepEqual(overConnect.body.data[0].scopes, ['SCOPE_READ', 'SCOPE_KEYS', 'SCOPE_UNSPECIFIED']);
    const order = await gateway.place(partner, { symbol: 'SIM-REST' });
    assert.deepEqual([order.status, order.body.error?.code], [403, 'insufficient_scope']);
    const wider = grpc.keys.createKey({ scopes: [Scope.UNSPECIFIED] }, grpc.as(partner));
    await assert.rejects(wider, ({ code }: ServiceError) => code === 3);
    const seen = await admin.keys.listKeys({ partnerId: partner.id }, admin.options);
    assert.deepEqual(seen.keys[0]?.scopes, [Scope.READ, Scope.KEYS, Scope.UNSPECIFIED]);
  });

  for (const [what, addresses] of [
    ['a list of objects', '[{"range":"127.0.0.0/8"}]'],
    ['an object', '{"allow":["127.0.0.1"]}'],
    ['a list with a form it does not know', '["loopback"]'],
    ['no JSON', '127.0.0.1'],
  ] as const) {
    it(`a key whose addresses are stored as ${what} works from nowhere`, async () => {
      const partner = await gateway.newPartner({ scopes: [Scope.READ] });
      await write('UPDATE api_keys SET addresses = ?, seal = NULL WHERE id = ?', addresses, partner.keyId);
      const answer = await gateway.rest('GET', '/v1/limits', { key: partner.key });
      assert.deepEqual([answer.status, answer.body.error.code], [401, 'unauthorized'], answer.text);
      const seen = await admin.keys.listKeys({ partnerId: partner.id }, admin.options);
      assert.equal(seen.keys[0]?.addresses.length, 1);
    });
  }

  it('a partner in an unknown state is not active, and is not made active by mistake', async () => {
    const partners = createGrpcClient(Partners, `127.0.0.1:${gateway.app.adminPort}`);
    try {
      const partner = await gateway.newPartner();
      await write(`UPDATE partners SET state = 'closing' WHERE id = ?`, partner.id);
      const answer = await gateway.rest('GET', '/v1/limits', { key: partner.key });
      assert.equal(answer.status, 401);
      const shown = await partners.getPartner({ partnerId: partner.id }, admin.options);
      assert.equal(shown.partner?.state, PartnerState.UNSPECIFIED);
      const resumed = partners.resumePartner({ partnerId: partner.id, reason: 'test' }, admin.options);
      await assert.rejects(resumed, ({ details }: ServiceError) => details.includes('another version'));
      await partners.suspendPartner({ partnerId: partner.id, reason: 'test' }, admin.options);
      await partners.resumePartner({ partnerId: partner.id, reason: 'test' }, admin.options);
      assert.equal((await readRow('SELECT state FROM partners WHERE id = ?', partner.id))?.state, 'active');
    } finally {
      partners.close();
    }
  });

  it("a partner's unknown feature enables nothing here, and stays when its features change", async () => {
    const partners = createGrpcClient(Partners, `127.0.0.1:${gateway.app.adminPort}`);
    try {
      const partner = await gateway.newPartner({ features: [] });
      await write(`UPDATE partners SET features = 'margin_trading' WHERE id = ?`, partner.id);
      const features = async () => (await readRow('SELECT features FROM partners WHERE id = ?', partner.id))?.features;
      await partners.setFeatures(
        { partnerId: partner.id, features: [Feature.ACCOUNT_OPENING], reason: 'test' },
        admin.options,
      );
      assert.equal(await features(), 'account_opening,margin_trading');
      await partners.setFeatures({ partnerId: partner.id, features: [], reason: 'test' }, admin.options);
      assert.equal(await features(), 'margin_trading');
      const refused = await gateway.rest('POST', '/v1/applications', {
        key: partner.key,
        idempotencyKey: randomUUID(),
        body: {},
      });
      assert.equal(refused.body.error.code, 'feature_not_enabled');
    } finally {
      partners.close();
    }
  });

  it('a session that a later broker has is no error: unspecified over every protocol', async () => {
    const partner = await gateway.newPartner();
    await gateway.controls.setMarket({ market: { session: 99 as MarketSession } }, callTimeout);
    const market = createGrpcClient(Reference, `127.0.0.1:${gateway.app.grpcPort}`);
    try {
      assert.equal((await get(partner, '/v1/market')).session, 'unspecified');
      assert.equal((await market.getMarket({}, grpc.as(partner))).session, MarketSession.UNSPECIFIED);
      const overConnect = await connectCall(gateway, partner, 'Reference/GetMarket', {});
      assert.equal(overConnect.body.session, 'MARKET_SESSION_UNSPECIFIED');
    } finally {
      market.close();
    }
  });

  it('events are listed over every protocol and delivered byte for byte, whatever NATS brings besides', async () => {
    const partner = await gateway.newPartner();
    const path = `/${partner.id}`;
    await admin.webhooks.registerEndpoint({ partnerId: partner.id, url: receiver.url(path) }, admin.options);
    // A newer version's messages, and its entries in the bucket of the limits.
    await nats.jetstream().publish(`${gateway.natsPrefix}events.batch.v2`, '{"version":2,"events":[]}');
    const bucket = await nats.jetstream().views.kv(`${gateway.natsPrefix}SLOTS`);
    const entries = [`slots.requests.${partner.id}`, `tokens.rate.${partner.id}`];
    for (const entry of entries) await bucket.put(entry, 'v2;level=3');
    const bodies = [1, 2].map(
      (version) =>
        `{"object":"event","id":"msg_${String(version).padStart(24, '0')}","type":"order.on_hold",` +
        `"timestamp":"2026-11-20T17:12:33Z","version":${version},"data":` +
        (version === 1
          ? `{"object":"order","id":"ord_22222222222222222222","state":"on_hold","side":"borrow","added":{"by":["v2"]}}}`
          : `{"object":"loan","id":"lon_2","state":"open"}}`),
    );
    await write('UPDATE partners SET version = 2 WHERE id = ?', partner.id);
    for (const [index, body] of bodies.entries()) {
      const at = new Date();
      const row = [partner.id, index + 1, `msg_${String(index + 1).padStart(24, '0')}`, 'order.on_hold', body, at, at];
      const columns = ['partner_id', 'version', 'id', 'type', 'body', 'occurred_at', 'publish_at'];
      const copy = copyToFeed(areThese([{ partnerId: partner.id, version: BigInt(index + 1) }]));
      // At once, because the row is removed as soon as it is consumed.
      await gateway.database.transaction([], () => ({
        writes: [insertRows('outbox', columns, [row]), copy],
        result: undefined,
      }));
    }
    const placed = await gateway.place(partner, { symbol: 'SIM-REST', time_in_force: 'gtc' });
    assert.equal(placed.status, 201, placed.text);
    // Its share is served, and the entry is written again later.
    const { value } = await scrape(gateway.app.opsPort);
    assert.ok(value('marina_nats_untrusted_total', { kind: 'entry', reason: 'unsigned' }) > 0);
    await eventually(async () => {
      const answer = await fetch(`http://127.0.0.1:${gateway.app.restPort}/v1/events`, {
        headers: { authorization: `Bearer ${partner.key}` },
      });
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      for (const body of bodies) assert.ok(text.includes(body));
      assert.ok(text.includes('"order.pending"'));
    });
    const { data } = await grpc.events.listEvents({}, grpc.as(partner));
    assert.deepEqual(
      data.map((event) => [event.type, event.data.case, event.data.case === 'order' && event.data.value.state]),
      [
        ['order.on_hold', 'order', 0],
        ['order.on_hold', undefined, false],
        ['order.pending', 'order', 2],
      ],
    );
    const overConnect = await connectCall(gateway, partner, 'Events/ListEvents', {});
    assert.equal(overConnect.status, 200, JSON.stringify(overConnect.body));
    assert.equal(overConnect.body.data[0].order.state, 'ORDER_STATE_UNSPECIFIED');
    await eventually(() => assert.equal(receiver.at(path).length, 3));
    const delivered = receiver.at(path).map(({ body }) => body);
    for (const body of bodies) assert.ok(delivered.includes(body));
    // The answer is recorded after it was received.
    await eventually(async () => {
      const { deliveries } = await admin.webhooks.listDeliveries({ partnerId: partner.id }, admin.options);
      const recorded = deliveries.map(({ state }) => state);
      assert.deepEqual(recorded, [DeliveryState.DELIVERED, DeliveryState.DELIVERED, DeliveryState.DELIVERED]);
    });
    await write(`UPDATE webhook_deliveries SET state = 'parked' WHERE partner_id = ? AND version = 1`, partner.id);
    await write(`UPDATE webhook_attempts SET outcome = 'deferred' WHERE partner_id = ? AND version = 1`, partner.id);
    const { deliveries } = await admin.webhooks.listDeliveries({ partnerId: partner.id }, admin.options);
    assert.equal(deliveries.find(({ version }) => version === 1n)?.state, 0);
    const story = await admin.diagnostics.getTimeline({ id: placed.body.id }, admin.options);
    assert.ok(story.entries.length > 0);
  });
});
