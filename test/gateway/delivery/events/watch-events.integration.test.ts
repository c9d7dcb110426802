import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Client, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { startApp } from '../../../../src/gateway/app/app.ts';
import { readConfig } from '../../../../src/gateway/app/config.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { ErrorSchema } from '../../../../src/gen/marina/gateway/v1/errors_pb.ts';
import { type Event, Events, type WatchEventsResponse } from '../../../../src/gen/marina/gateway/v1/events_pb.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { adminClient } from '../../../support/admin.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway, type TestPartner } from '../../../support/gateway.ts';
import { patient } from '../../../support/patience.ts';
import { startTestNats } from '../../../support/servers.ts';

type Ports = { readonly restPort: number; readonly grpcPort: number };
type Protocol = (ports: Ports) => Client<typeof Events>;

const overGrpc: Protocol = ({ grpcPort }) =>
  createClient(Events, createGrpcTransport({ baseUrl: `http://127.0.0.1:${grpcPort}` }));
const overConnect: Protocol = ({ restPort }) =>
  createClient(Events, createConnectTransport({ baseUrl: `http://127.0.0.1:${restPort}`, httpVersion: '1.1' }));
const protocols = [
  ['gRPC', overGrpc],
  ['Connect', overConnect],
] as const;

/** A stream that is being read. */
class Watcher {
  readonly messages: WatchEventsResponse[] = [];
  readonly events: Event[] = [];
  /** The error that ended it. */
  error: ConnectError | undefined;
  readonly #leaving = new AbortController();
  readonly #reading: Promise<void>;

  constructor(client: Client<typeof Events>, { key }: TestPartner, cursor?: string) {
    const headers = { authorization: `Bearer ${key}` };
    const request = cursor === undefined ? {} : { cursor };
    this.#reading = this.#read(client.watchEvents(request, { headers, signal: this.#leaving.signal }));
  }

  get versions(): number[] {
    return this.events.map(({ version }) => Number(version));
  }

  get cursor(): string {
    return this.messages.at(-1)?.nextCursor ?? '';
  }

  get code(): string | undefined {
    return this.error?.findDetails(ErrorSchema)[0]?.code;
  }

  /** Waits until these are the versions it has brought. */
  has(versions: readonly number[], boundMs?: number): Promise<void> {
    return eventually(() => assert.deepEqual(this.versions, versions), boundMs);
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#reading;
  }

  async #read(stream: AsyncIterable<WatchEventsResponse>): Promise<void> {
    try {
      for await (const message of stream) {
        this.messages.push(message);
        this.events.push(...message.events);
      }
    } catch (error) {
      this.error = ConnectError.from(error);
    }
  }
}

const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, at) => first + at);

async function placeResting(gateway: TestGateway, partner: TestPartner, count: number): Promise<void> {
  for (let number = 0; number < count; number += 1) {
    const order = { symbol: 'SIM-REST', time_in_force: 'gtc', quantity: 1 + number };
    const { status, text } = await gateway.place(partner, order);
    assert.equal(status, 201, text);
  }
}

describe('watching events', { concurrency: 6 }, () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ MARINA_SUBMIT_TIMEOUT_MS: '10000' });
  });
  after(() => gateway.stop());
  const list = (partner: TestPartner, query = '') => gateway.rest('GET', `/v1/events${query}`, { key: partner.key });

  for (const [name, protocol] of protocols) {
    it(`${name}: brings what is held, then each event as it happens, as ListEvents has them`, async () => {
      const partner = await gateway.newPartner();
      await placeResting(gateway, partner, 3);
      await eventually(async () => assert.equal((await list(partner)).body.data.length, 3));
      const watcher = new Watcher(protocol(gateway.app), partner);
      await watcher.has(upTo(3));
      const startedMs = performance.now();
      await placeResting(gateway, partner, 1);
      await watcher.has(upTo(4));
      assert.ok(performance.now() - startedMs < patient(2_000));
      const { body } = await list(partner);
      assert.deepEqual(
        watcher.events.map(({ id, type, data }) => [id, type, data.value?.id]),
        body.data.map(({ id, type, data }: { id: string; type: string; data: { id: string } }) => [id, type, data.id]),
      );
      assert.equal(watcher.cursor, body.next_cursor);
      await watcher.leave();
    });

    it(`${name}: says at once where its reader stands, also when there is nothing`, async () => {
      const partner = await gateway.newPartner();
      const watcher = new Watcher(protocol(gateway.app), partner);
      await eventually(() => assert.equal(watcher.messages.length, 1));
      assert.equal(watcher.cursor, (await list(partner)).body.next_cursor);
      await watcher.leave();
    });

    it(`${name}: goes on after any cursor, its own or ListEvents'`, async () => {
      const partner = await gateway.newPartner();
      await placeResting(gateway, partner, 4);
      await eventually(async () => assert.equal((await list(partner)).body.data.length, 4));
      const listed = new Watcher(protocol(gateway.app), partner, (await list(partner, '?limit=2')).body.next_cursor);
      await listed.has([3, 4]);
      await listed.leave();
      await placeResting(gateway, partner, 1);
      const resumed = new Watcher(protocol(gateway.app), partner, listed.cursor);
      await resumed.has([5]);
      await resumed.leave();
    });

    it(`${name}: refuses a cursor that was not issued for this partner's events`, async () => {
      const [partner, other] = [await gateway.newPartner(), await gateway.newPartner()];
      for (const cursor of ['nonsense', (await list(other)).body.next_cursor]) {
        const watcher = new Watcher(protocol(gateway.app), partner, cursor);
        await eventually(() => assert.equal(watcher.code, 'invalid_request'));
        assert.equal(watcher.error?.findDetails(ErrorSchema)[0]?.param, 'cursor');
        assert.deepEqual(watcher.messages, []);
      }
    });

    it(`${name}: many orders at once come once each and in order, to a stream that was opened amid them`, async () => {
      const partner = await gateway.newPartner({ limits: { ordersKoboPerDay: 10n ** 15n } });
      const early = new Watcher(protocol(gateway.app), partner);
      const queue = upTo(40);
      const place = async () => {
        for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
          await gateway.place(partner, { symbol: 'SIM-PARTS', quantity: 10 + next });
        }
      };
      const placing = Promise.all(upTo(8).map(place));
      await eventually(() => assert.ok(early.events.length > 20));
      const late = new Watcher(protocol(gateway.app), partner);
      await placing;
      for (const watcher of [early, late]) {
        await watcher.has(upTo(160), 20_000);
        await watcher.leave();
      }
    });

    it(`${name}: ends within seconds when its key is revoked, and says so`, async () => {
      const admin = adminClient(gateway.app.adminPort);
      const partner = await gateway.newPartner();
      const watcher = new Watcher(protocol(gateway.app), partner);
      await eventually(() => assert.equal(watcher.messages.length, 1));
      await admin.keys.revokeKey({ keyId: partner.keyId, reason: 'leaked' }, admin.options);
      await eventually(() => assert.equal(watcher.code, 'unauthorized'), 5_000);
      admin.close();
    });

    it(`${name}: a key revoked behind the back of a replica ends its streams within seconds`, async () => {
      const partner = await gateway.newPartner();
      const watcher = new Watcher(protocol(gateway.app), partner);
      await eventually(() => assert.equal(watcher.messages.length, 1));
      await gateway.database.write(statement('UPDATE api_keys SET revoked_at = NOW(3) WHERE id = ?', partner.keyId));
      await eventually(() => assert.equal(watcher.code, 'unauthorized'), 7_000);
    });
  }

  it('stops at a gap, and goes on once it is filled', async () => {
    const partner = await gateway.newPartner();
    await placeResting(gateway, partner, 3);
    await eventually(async () => assert.equal((await list(partner)).body.data.length, 3));
    const second = [partner.id, 2] as const;
    const where = 'FROM feed_events WHERE partner_id = ? AND version = ?';
    const [row] = await gateway.database.read(statement(`SELECT * ${where}`, ...second));
    await gateway.database.write(statement(`DELETE ${where}`, ...second));
    const watcher = new Watcher(overGrpc(gateway.app), partner);
    await watcher.has([1]);
    const insert = 'INSERT INTO feed_events (partner_id, version, id, body, occurred_at) VALUES (?, 2, ?, ?, ?)';
    const values = [partner.id, String(row?.id), row?.body as Buffer, row?.occurred_at as Date] as const;
    await gateway.database.write(statement(insert, ...values));
    await watcher.has(upTo(3), 3_000);
    await watcher.leave();
  });

  it('says now and then that it is alive, with the same cursor', async () => {
    const partner = await gateway.newPartner();
    const watcher = new Watcher(overConnect(gateway.app), partner);
    await eventually(() => assert.equal(watcher.messages.length, 2), 15_000);
    const [first, second] = watcher.messages;
    assert.deepEqual([second?.events, second?.nextCursor], [[], first?.nextCursor]);
    await watcher.leave();
  });

  it('a partner has ten streams over all protocols, and another when one of them ends', async () => {
    const partner = await gateway.newPartner();
    const open = (at: number) => new Watcher((at % 2 === 0 ? overGrpc : overConnect)(gateway.app), partner);
    const watchers = upTo(10).map(open);
    await eventually(() => assert.ok(watchers.every(({ messages }) => messages.length === 1)));
    for (const at of [0, 1]) {
      const refused = open(at);
      await eventually(() => assert.equal(refused.code, 'rate_limited'));
    }
    await watchers[0]?.leave();
    await eventually(async () => {
      const watcher = open(0);
      await eventually(() => assert.equal(watcher.messages.length, 1), 500);
      await watcher.leave();
    });
    await Promise.all(watchers.map((watcher) => watcher.leave()));
  });

  it('sees what happens on another replica, and ends when its own stops', async () => {
    const silent = createLogger({ name: 'test', level: 'silent' });
    const other = await startApp(readConfig({ ...gateway.variables }), silent);
    const partner = await gateway.newPartner();
    const watchers = protocols.map(([, protocol]) => new Watcher(protocol(other), partner));
    await placeResting(gateway, partner, 2);
    for (const watcher of watchers) await watcher.has(upTo(2), 3_000);
    const startedMs = performance.now();
    await other.stop();
    assert.ok(performance.now() - startedMs < patient(4_000));
    for (const [at, watcher] of watchers.entries()) {
      await eventually(() => assert.equal(watcher.code, 'service_unavailable'));
      await placeResting(gateway, partner, 1);
      const resumed = new Watcher(overGrpc(gateway.app), partner, watcher.cursor);
      await resumed.has(upTo(3 + at, 3));
      await resumed.leave();
    }
  });
});

describe('watching events over time', () => {
  it('refuses a cursor before what was removed, and brings the oldest held without one', async () => {
    const gateway = await startGateway();
    const admin = adminClient(gateway.app.adminPort);
    try {
      const partner = await gateway.newPartner();
      const start = (await gateway.rest('GET', '/v1/events', { key: partner.key })).body.next_cursor;
      await placeResting(gateway, partner, 2);
      const patient = new Watcher(overGrpc(gateway.app), partner);
      await patient.has(upTo(2));
      const days = (count: number) => ({ by: { seconds: BigInt(count * 86_400) } });
      await admin.clock.advanceClock(days(31), admin.options);
      await eventually(async () => {
        const { body } = await gateway.rest('GET', '/v1/events', { key: partner.key });
        assert.deepEqual(body.data, []);
      });
      await placeResting(gateway, partner, 1);
      await patient.has(upTo(3));
      await patient.leave();
      const fresh = new Watcher(overConnect(gateway.app), partner);
      await fresh.has([3]);
      await fresh.leave();
      const late = new Watcher(overConnect(gateway.app), partner, start);
      await eventually(() => assert.equal(late.code, 'invalid_request'));
      assert.match(late.error?.message ?? '', /oldest version held is 3/);
    } finally {
      admin.close();
      await gateway.stop();
    }
  });

  it('goes on without NATS', async () => {
    const nats = await startTestNats();
    const gateway = await startGateway({ MARINA_NATS_URL: nats.url });
    try {
      const partner = await gateway.newPartner();
      const watcher = new Watcher(overGrpc(gateway.app), partner);
      await placeResting(gateway, partner, 1);
      await watcher.has([1]);
      await nats.stop();
      await placeResting(gateway, partner, 2);
      await watcher.has(upTo(3), 6_000);
      await watcher.leave();
    } finally {
      await gateway.stop();
      await nats.stop();
    }
  });
});
