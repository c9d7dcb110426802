import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { connect, type NatsConnection } from 'nats';
import { EventStream } from '../../../../src/gateway/delivery/events/stream.ts';
import { CounterStore } from '../../../../src/gateway/edge/limits/counter-store.ts';
import { UntrustedEntryError } from '../../../../src/gateway/edge/limits/sealed-entry.ts';
import { PeerMessages } from '../../../../src/gateway/edge/peers/messages.ts';
import type { Distrust } from '../../../../src/gateway/edge/peers/untrusted.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { Nats } from '../../../../src/kit/nats.ts';
import { eventually } from '../../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { scrape } from '../../../support/metrics.ts';
import { patient } from '../../../support/patience.ts';
import { badHeaders, connectRawNats, manyHeaders, type RawNats } from '../../../support/raw-nats.ts';
import { type RestartableServer, startTestNats } from '../../../support/servers.ts';
import { endReplicasAfterEach, newPrefix, startSharing, testMac } from '../../../support/slots.ts';

const cases = Object.entries(badHeaders);
const log = createLogger({ name: 'test', level: 'silent' });
/** How long the event loop may stand still. nats.js's own reader needs several times as much for one block of 60 KB. */
const stillMs = 1_000;

let nats: RestartableServer;
/** Somebody who can do everything in NATS, and has no secret of the ring. */
let attacker: NatsConnection;
let raw: RawNats;
before(async () => {
  nats = await startTestNats();
  attacker = await connect({ servers: nats.url });
  raw = await connectRawNats(nats.port);
});
after(async () => {
  raw.close();
  await attacker.close();
  await nats.kill();
});
endReplicasAfterEach();

let seen: string[] = [];
const distrust: Distrust = (kind, reason) => void seen.push(`${kind} ${reason}`);
const seenOf = (kind: string) => seen.filter((each) => [`${kind} nonsense`, `${kind} too_large`].includes(each)).length;
const loop = monitorEventLoopDelay({ resolution: 10 });
beforeEach(() => {
  seen = [];
  loop.reset();
  loop.enable();
});
afterEach(() => {
  loop.disable();
  assert.ok(loop.max / 1e6 < patient(stillMs), `the event loop stood still for ${Math.round(loop.max / 1e6)} ms`);
});

/** A connection of a gateway's process, for the time of a test. It must last as long. */
async function withNats(test: (own: Nats) => Promise<void>, countFailure?: () => void): Promise<void> {
  const own = new Nats({ url: nats.url, log, ...(countFailure && { countFailure }) });
  await own.start();
  try {
    const changes: boolean[] = [];
    own.onChange((isConnected) => changes.push(isConnected));
    await test(own);
    assert.deepEqual(changes, [], 'it is connected all the time');
  } finally {
    await own.close();
  }
}

describe('replicas beside somebody who sends headers that are none', () => {
  for (const [name, bytes] of cases) {
    it(`go on counting together after messages with ${name}`, async () => {
      const prefix = newPrefix();
      const together = { url: nats.url, prefix, distrust };
      const replicas = [await startSharing(together), await startSharing(together)];
      await eventually(() => assert.ok(replicas.every((each) => each.replicas === 2)));
      for (const subject of ['here', 'gone', 'alone']) raw.publish(`${prefix}peers.${subject}`, bytes);
      await eventually(() => assert.equal(seenOf('message'), 6, 'both replicas count each of three'));
      const heartbeats: string[] = [];
      const subscription = attacker.subscribe(`${prefix}peers.here`, {
        callback: (_, message) => void heartbeats.push(message.string()),
      });
      await eventually(() => assert.ok(heartbeats.length > 4));
      subscription.unsubscribe();
      assert.ok(replicas.every((each) => each.isShared && each.replicas === 2));
    });
  }

  it('do not believe such an entry, and write it anew', async () => {
    await withNats(async (own) => {
      const prefix = newPrefix();
      const store = new CounterStore(own, prefix, 'r1', { mac: testMac, distrust });
      await store.open();
      for (const [name, bytes] of cases) {
        const key = `tokens.rate.p${cases.findIndex(([each]) => each === name)}`;
        const written = await store.write(key, { value: 1, revision: 0 });
        assert.ok(written !== undefined);
        raw.publish(`$KV.${prefix}SLOTS.${key}`, bytes);
        const error = await eventually(async () => {
          const thrown = await store.read(key).then(
            () => undefined,
            (reason: unknown) => reason,
          );
          assert.ok(thrown instanceof UntrustedEntryError, `${name}: ${thrown}`);
          return thrown;
        });
        assert.ok(error.revision > written);
        assert.ok(seen.includes('entry unsigned'), String(seen));
        assert.notEqual(await store.write(key, { value: 2, revision: error.revision }), undefined);
        assert.equal((await store.read(key)).value, 2);
        raw.publish(`$KV.${prefix}SLOTS.replica.r1`, bytes);
        await eventually(() => store.readClock());
        seen = [];
      }
    });
  });

  it('go on after an answer to a question that has such headers', async () => {
    await withNats(async (own) => {
      const subject = `${newPrefix()}peers.ask.r1`;
      const peers = new PeerMessages(own, testMac, distrust);
      for (const [name, bytes] of cases) {
        seen = [];
        const subscription = attacker.subscribe(subject, {
          callback: (_, message) => raw.publish(message.reply ?? '', bytes),
        });
        await attacker.flush();
        await peers.ask(subject, 'rate.a', 5_000);
        subscription.unsubscribe();
        assert.equal(seenOf('message'), 1, name);
      }
    });
  });
});

describe('a consumer of events beside somebody who sends headers that are none', () => {
  it('acknowledges and counts such messages, and goes on', async () => {
    const prefix = newPrefix();
    const inboxes = new Set<string>();
    const subscription = attacker.subscribe(`$JS.API.CONSUMER.MSG.NEXT.${prefix}EVENTS.>`, {
      callback: (_, message) => void inboxes.add(message.reply ?? ''),
    });
    const ending = new AbortController();
    await withNats(async (own) => {
      const stream = new EventStream({ nats: own, mac: testMac, distrust, prefix, replicas: 1 });
      await stream.restore();
      const consumed: bigint[] = [];
      const worker = stream.worker({
        name: 'webhooks',
        consume: async (events) => void consumed.push(...events.map(({ version }) => version)),
      });
      const running = worker.run(ending.signal).then(
        () => undefined,
        (error: unknown) => error,
      );
      const about = { partnerId: 'par_1', type: 'order.filled', objectKind: 'order', objectId: 'ord_1' };
      const publish = (version: bigint) =>
        stream.publish([{ ...about, version, id: `evt_${version}`, body: Buffer.from('{}') }]);
      await publish(1n);
      await eventually(() => assert.deepEqual(consumed, [1n]), 30_000);
      for (const [, bytes] of cases) raw.publish(`${prefix}events.par_1.order.filled`, bytes);
      await eventually(() => assert.equal(seenOf('event'), cases.length), 30_000);
      await eventually(async () => assert.equal((await stream.pending()).get('webhooks'), 0), 30_000);
      assert.ok(inboxes.size > 0);
      for (const [, bytes] of cases) for (const inbox of inboxes) raw.publish(inbox, bytes);
      await eventually(() => assert.ok(seenOf('event') >= 2 * cases.length), 30_000);
      await publish(2n);
      await eventually(() => assert.deepEqual(consumed, [1n, 2n]), 30_000);
      ending.abort();
      assert.equal(await running, undefined, 'it is the consumer of before');
    }).finally(() => ending.abort());
    subscription.unsubscribe();
  });
});

describe('the connection to NATS', () => {
  it('goes on after a message at which its receiver throws, and counts it', async () => {
    const subject = `${newPrefix()}news`;
    const heard: string[] = [];
    let failures = 0;
    const countFailure = () => {
      failures += 1;
    };
    await withNats(async (own) => {
      own.subscribe(subject, (message) => {
        if (message.string() === 'bad') throw new Error('a defect');
        heard.push(message.string());
      });
      for (const text of ['1', 'bad', 'bad', '2']) own.publish(subject, text);
      await eventually(() => assert.deepEqual(heard, ['1', '2']));
      assert.equal(failures, 2);
    }, countFailure);
  });
});

describe('a gateway beside somebody who sends headers that are none', () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({ MARINA_NATS_URL: nats.url });
  });
  after(() => gateway.stop());

  it('serves, and counts what it does not believe', async () => {
    const partner = await gateway.newPartner();
    const prefix = gateway.natsPrefix;
    const sent = [...cases.map(([, bytes]) => bytes), ...Array<Buffer>(20).fill(manyHeaders(17_000))];
    const names = ['feed', 'webhooks', 'relay'];
    for (const bytes of sent) for (const name of names) raw.publish(`${prefix}peers.say.${name}`, bytes);
    for (const [, bytes] of cases) raw.publish(`${prefix}events.${partner.id}.order.filled`, bytes);
    await eventually(async () => {
      const { value } = await scrape(gateway.app.opsPort);
      const count = (kind: string) =>
        ['nonsense', 'too_large'].reduce(
          (sum, reason) => sum + Number(value('marina_nats_untrusted_total', { kind, reason })),
          0,
        );
      assert.deepEqual([count('message'), count('event')], [sent.length * names.length, cases.length]);
    }, 30_000);
    for (const [, bytes] of cases) {
      raw.publish(`$KV.${prefix}SLOTS.tokens.rate.${partner.id}`, bytes);
      assert.equal((await gateway.rest('GET', '/v1/orders', { key: partner.key })).status, 200);
    }
    const { body } = await gateway.place(partner, { symbol: 'SIM-FILL' });
    assert.equal(body.object, 'order', JSON.stringify(body));
  });
});
