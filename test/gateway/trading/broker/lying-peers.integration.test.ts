import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { connect, headers, type KV, type MsgHdrs, type NatsConnection } from 'nats';
import { EventStream } from '../../../../src/gateway/delivery/events/stream.ts';
import { maxEntryBytes, sealEntry } from '../../../../src/gateway/edge/limits/sealed-entry.ts';
import { PeerMac } from '../../../../src/gateway/edge/peers/mac.ts';
import { macHeader } from '../../../../src/gateway/edge/peers/messages.ts';
import type { Distrust } from '../../../../src/gateway/edge/peers/untrusted.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { Nats } from '../../../../src/kit/nats.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';
import { endReplicasAfterEach, newPrefix, type Replica, startSharing, taken, testMac } from '../../../support/slots.ts';

const rate = { perSecond: 20, burst: 40 };
const strangersMac = new PeerMac(onlyKey(Buffer.alloc(32, 8)));

let nats: RestartableServer;
/** Somebody who can do everything in NATS, and has no secret of the ring. */
let attacker: NatsConnection;
before(async () => {
  nats = await startTestNats();
  attacker = await connect({ servers: nats.url });
});
after(async () => {
  await attacker.close();
  await nats.kill();
});
endReplicasAfterEach();

let seen: string[] = [];
const distrust: Distrust = (kind, reason) => void seen.push(`${kind} ${reason}`);
afterEach(() => {
  seen = [];
});

async function pair(prefix: string): Promise<[Replica, Replica]> {
  const together = { url: nats.url, prefix, distrust };
  const one = await startSharing(together);
  const other = await startSharing(together);
  await eventually(() => assert.deepEqual([one.replicas, other.replicas], [2, 2]));
  return [one, other];
}

const bucketOf = (prefix: string): Promise<KV> => attacker.jetstream().views.kv(`${prefix}SLOTS`);

/** Takes tokens until there are none. Tells how many there were. */
async function takeAll(replica: Replica, name: string): Promise<number> {
  for (let count = 0; ; count += 1) if (count > 1_000 || !(await replica.take(name, rate))) return count;
}

describe('replicas beside somebody who can publish to NATS', () => {
  it('do not believe a heartbeat without a MAC, or with a wrong one', async () => {
    const prefix = newPrefix();
    const [one] = await pair(prefix);
    const subject = `${prefix}peers.here`;
    const stamp = Date.now() * 1_000;
    const wrong = headers();
    const text = 'fake 1';
    const mac = strangersMac.make(['message', subject, '0123456789abcdef', stamp], text);
    wrong.set(macHeader, `0123456789abcdef ${stamp} ${mac}`);
    for (let fake = 0; fake < 1_000; fake += 1) attacker.publish(subject, `fake-${fake} NaN`);
    attacker.publish(subject, text, { headers: wrong });
    attacker.publish(subject, `fake-${'x'.repeat(900_000)} 1`);
    const large = headers();
    for (let line = 0; line < 20_000; line += 1) large.append('X', `${line}`);
    large.set(macHeader, wrong.get(macHeader));
    attacker.publish(subject, text, { headers: large });
    await eventually(() => {
      assert.equal(seen.filter((each) => each === 'message unsigned').length, 2_000, 'both replicas count each');
      assert.equal(seen.filter((each) => each === 'message forged').length, 2);
      assert.equal(seen.filter((each) => each === 'message too_large').length, 4, 'of text, and of headers');
    });
    assert.equal(one.replicas, 2);
    assert.equal(one.isShared, true, 'messages that are not believed change nothing');
  });

  it('take each message once, and none that was sent on another subject', async () => {
    const prefix = newPrefix();
    const heard: { text: string; head: MsgHdrs | undefined }[] = [];
    const subscription = attacker.subscribe(`${prefix}peers.here`, {
      callback: (_, message) => void heard.push({ text: message.string(), head: message.headers }),
    });
    const [one, other] = await pair(prefix);
    await eventually(() => assert.ok(heard.length > 2));
    subscription.unsubscribe();
    const [first] = heard;
    assert.ok(first?.head !== undefined);
    attacker.publish(`${prefix}peers.here`, first.text, { headers: first.head });
    attacker.publish(`${prefix}peers.gone`, first.text, { headers: first.head });
    await eventually(() => {
      assert.equal(seen.filter((each) => each === 'message repeated').length, 2);
      assert.equal(seen.filter((each) => each === 'message forged').length, 2);
    });
    assert.deepEqual([one.replicas, other.replicas], [2, 2]);
  });

  const lies: Record<string, () => string> = {
    'a bucket that owes 10^15 tokens': () => '{"level":-1e15,"at":0,"held":{}}',
    'a bucket that holds infinitely many tokens': () => '{"level":1e999,"at":0,"held":{}}',
    'an entry that is no JSON': () => 'v2;level=3',
    'an entry with a MAC of another ring': () =>
      sealEntry(strangersMac, 'x', { text: '{"level":-9,"at":0,"held":{}}', stamp: Date.now() }),
    'an entry with 10,000 holders': () =>
      JSON.stringify({ level: 0, at: 0, held: Object.fromEntries(holders(10_000)) }).slice(0, maxEntryBytes),
  };
  for (const [name, lie] of Object.entries(lies)) {
    it(`serve the share of each, together no more than the limit, beside ${name}`, async () => {
      const prefix = newPrefix();
      const [one, other] = await pair(prefix);
      assert.ok(await one.take('rate.a', rate));
      await (await bucketOf(prefix)).put('tokens.rate.a', lie());
      const startedAt = performance.now();
      const served = [await takeAll(one, 'rate.a'), await takeAll(other, 'rate.a')];
      const total = served.reduce((sum, count) => sum + count, 0);
      const seconds = (performance.now() - startedAt) / 1_000;
      assert.ok(total > 0, 'the partner is served');
      assert.ok(total <= rate.burst + rate.perSecond * (seconds + 1), `${served} within ${seconds} s`);
      assert.ok(
        seen.some((each) => each.startsWith('entry ')),
        'it is counted',
      );
      await eventually(() => assert.deepEqual([one.isShared, other.isShared], [false, false]));
      assert.ok(await one.take('rate.b', rate), 'another partner is served');
    });
  }

  it('do not believe a former entry that is written again', async () => {
    const prefix = newPrefix();
    const [one, other] = await pair(prefix);
    const bucket = await bucketOf(prefix);
    const slots = [await taken(one, 'documents.a', 2), await taken(one, 'documents.a', 2)];
    const former = await bucket.get('slots.documents.a');
    assert.ok(former !== null);
    for (const slot of slots) slot.release();
    (await taken(other, 'documents.a', 2)).release();
    await bucket.put('slots.documents.a', former.value);
    await eventually(async () => {
      (await one.acquire('documents.a', 2))?.release();
      (await other.acquire('documents.a', 2))?.release();
      assert.ok(seen.includes('entry repeated'), String(seen));
    });
    const served = await Promise.all([one.acquire('documents.a', 2), other.acquire('documents.a', 2)]);
    assert.equal(served.filter((slot) => slot !== undefined).length, 2, 'one each, their shares');
  });

  it('let no more slots be in use than the limit when the entry is deleted', async () => {
    const prefix = newPrefix();
    const [one, other] = await pair(prefix);
    await taken(one, 'documents.a', 2);
    await taken(one, 'documents.a', 2);
    assert.equal(await other.acquire('documents.a', 2), undefined);
    const bucket = await bucketOf(prefix);
    await bucket.delete('slots.documents.a');
    await other.acquire('documents.a', 2);
    assert.ok(seen.includes('entry removed'), String(seen));
    await eventually(() => assert.equal(one.isShared, false, 'both keep to their shares'));
    assert.equal(await one.acquire('documents.a', 2), undefined);
    assert.ok((await other.used('documents.a')) <= 1, 'its share');
  });

  it('do not believe what has a MAC and makes no sense', async () => {
    const prefix = newPrefix();
    const [one] = await pair(prefix);
    const bucket = await bucketOf(prefix);
    const put = (key: string, text: string) =>
      bucket.put(key, sealEntry(testMac, `${prefix}SLOTS.${key}`, { text, stamp: Date.now() }));
    await put('tokens.rate.c', `{"level":0,"at":${Date.now() + 3_600_000},"held":{}}`);
    await takeAll(one, 'rate.c');
    assert.deepEqual(seen, ['entry nonsense']);
    assert.equal(one.isShared, false);
  });
});

describe('a consumer of events beside somebody who can publish to NATS', () => {
  it('counts a message that it does not believe once, however often the others of its batch fail', async () => {
    const prefix = newPrefix();
    const own = new Nats({ url: nats.url, log: createLogger({ name: 'test', level: 'silent' }) });
    await own.start();
    const ending = new AbortController();
    let running: Promise<void> | undefined;
    try {
      const stream = new EventStream({ nats: own, mac: testMac, distrust, prefix, replicas: 1 });
      const about = { partnerId: 'par_1', type: 'order.filled', objectKind: 'order', objectId: 'ord_1' };
      const event = { ...about, version: 1n, id: 'evt_1', body: Buffer.from('{}') };
      await stream.restore();
      const lies = 5;
      for (let lie = 0; lie < lies; lie += 1) {
        await attacker.jetstream().publish(`${prefix}events.par_1.order.filled`, '{}');
      }
      await stream.publish([event]);
      const consumed: bigint[] = [];
      let failures = 0;
      const worker = stream.worker({
        name: 'webhooks',
        consume: async (events) => {
          if (failures === 2) return void consumed.push(...events.map(({ version }) => version));
          failures += 1;
          throw new Error('the database is away');
        },
      });
      const begin = async () => {
        while (!ending.signal.aborted) await worker.run(ending.signal).catch(() => undefined);
      };
      running = begin();
      await eventually(() => assert.deepEqual(consumed, [1n]), 30_000);
      assert.deepEqual(seen, Array(lies).fill('event unsigned'));
    } finally {
      ending.abort();
      await running;
      await own.close();
    }
  });
});

describe('a gateway beside somebody who can publish to NATS', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ MARINA_NATS_URL: nats.url });
  });
  after(() => gateway.stop());

  it('serves, and counts what it does not believe', async () => {
    const partner = await gateway.newPartner();
    const prefix = gateway.natsPrefix;
    const subjects = ['here', 'gone', 'alone', 'say.feed', 'say.webhooks', 'say.key-revoked'];
    for (const subject of subjects) attacker.publish(`${prefix}peers.${subject}`, 'lie 1');
    const event = headers();
    event.set('Marina-Partner', partner.id);
    event.set('Marina-Version', '1');
    await attacker.jetstream().publish(`${prefix}events.${partner.id}.order.filled`, '{}', { headers: event });
    await eventually(async () => {
      const { value } = await scrape(gateway.app.opsPort);
      const count = (kind: string, reason: string) => value('marina_nats_untrusted_total', { kind, reason });
      assert.deepEqual([count('message', 'unsigned'), count('event', 'unsigned')], [subjects.length, 1]);
    });
    const bucket = await bucketOf(prefix);
    assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 200);
    await bucket.put(`tokens.rate.${partner.id}`, '{"level":-1e15,"at":0,"held":{}}');
    for (let call = 0; call < 20; call += 1) {
      assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 200);
    }
    const { body } = await gateway.place(partner, { symbol: 'SIM-FILL' });
    assert.equal(body.object, 'order', JSON.stringify(body));
  });
});

function* holders(count: number): Generator<[string, object]> {
  for (let holder = 0; holder < count; holder += 1) yield [`r${holder}`, { tokens: 1, until: 1 }];
}
