import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it, type TestContext } from 'node:test';
import { type JsMsg, NatsError, type StreamConfig } from 'nats';
import { eventHeaders, eventKeyOf } from '../../../../src/gateway/delivery/events/event-headers.ts';
import type { EventKey, OutboxEvent } from '../../../../src/gateway/delivery/events/outbox.ts';
import { EventStream } from '../../../../src/gateway/delivery/events/stream.ts';
import { PeerMac } from '../../../../src/gateway/edge/peers/mac.ts';
import { onlyKey } from '../../../../src/kit/key-ring.ts';
import type { Nats } from '../../../../src/kit/nats.ts';
import { eventually } from '../../../support/eventually.ts';

const mac = new PeerMac(onlyKey(randomBytes(32)));

function event(id: string, version = 1n): OutboxEvent {
  const about = { type: 'order.pending', objectKind: 'order', objectId: 'ord_1' };
  return { partnerId: 'par_1', version, id, ...about, body: Buffer.from('{}') };
}

/** A message of an event as NATS brings it, which notes what becomes of it. */
function message(version: number, said: string[], change: Partial<JsMsg> = {}): JsMsg {
  const subject = 'a.events.par_1.order.pending';
  const noted = (what: string) => void said.push(`${what} ${version}`);
  return {
    ...{ subject, headers: eventHeaders(mac, subject, event('e', BigInt(version))) },
    info: { timestampNanos: Date.now() * 1_000_000 },
    ack: () => noted('ack'),
    nak: (ms: number) => noted(`nak ${ms}`),
    ...change,
  } as unknown as JsMsg;
}

/** JetStream as a stream of events sees it. */
function startStream({ mock }: TestContext, replicas = 1) {
  const clock = { ms: 100_000 };
  mock.method(performance, 'now', () => clock.ms);
  const said: string[] = [];
  const state = {
    isConnected: true,
    /** The ids of events that are not stored. */
    unstored: [] as readonly string[],
    config: { name: 'aEVENTS', num_replicas: 1 } as StreamConfig | undefined,
    /** Whether the servers that have the stream answer, and whether JetStream does. */
    isOffline: false,
    hasLeader: true,
  };
  const notFound = () => {
    const error = new NatsError('stream not found', '404');
    error.api_error = { code: 404, err_code: 10_059, description: 'stream not found' };
    return error;
  };
  const streams = {
    async info() {
      said.push('looks');
      if (state.isOffline) throw new Error('timeout');
      if (state.config === undefined) throw notFound();
      return { config: state.config };
    },
    async add(config: StreamConfig) {
      said.push('adds');
      state.config = config;
      state.isOffline = false;
    },
    async update(_: string, config: StreamConfig) {
      said.push(`updates to ${config.num_replicas}`);
      state.config = config;
    },
    async delete() {
      said.push('deletes');
      throw new Error('timeout');
    },
  };
  const batches: JsMsg[][] = [];
  const consumers = {
    get: async () => ({
      consume: async () => {
        const stopped = new AbortController();
        const messages = (async function* () {
          while (!stopped.signal.aborted) {
            yield* batches.shift() ?? [];
            await new Promise(setImmediate);
          }
        })();
        const none = {
          async next() {
            while (!stopped.signal.aborted) await new Promise(setImmediate);
            return { done: true, value: undefined };
          },
        };
        const status = async () => ({ [Symbol.asyncIterator]: () => none });
        return Object.assign(messages, { stop: () => stopped.abort(), status });
      },
    }),
  };
  const jetStream = {
    async publish(subject: string, _: Uint8Array, { msgID }: { msgID: string }) {
      said.push(`publishes ${msgID} to ${subject}`);
      if (state.unstored.includes(msgID)) throw new Error('503');
    },
    consumers,
  };
  const changed: (() => void)[] = [];
  const manager = {
    streams,
    async getAccountInfo() {
      if (!state.hasLeader) throw new Error('no leader');
    },
  };
  const nats = {
    get connection() {
      return state.isConnected ? {} : undefined;
    },
    requireConnection() {
      if (!state.isConnected) throw new Error('NATS cannot be reached');
      return { jetstream: () => jetStream, jetstreamManager: async () => manager };
    },
    onChange: (watcher: () => void) => void changed.push(watcher),
  };
  const distrust = (_: string, why: string) => void said.push(`distrusts ${why}`);
  const stream = new EventStream({ nats: nats as unknown as Nats, mac, distrust, prefix: 'a', replicas });
  const publish = async (...ids: readonly string[]) => {
    said.splice(0);
    const stored = await stream.publish(ids.map((id) => event(id))).catch(() => undefined);
    return stored?.map(({ id }) => id);
  };
  const reconnect = () => {
    for (const each of changed) each();
  };
  return { stream, clock, said, state, publish, reconnect, batches };
}

const looks = (said: readonly string[]) => said.filter((one) => !one.startsWith('publishes'));

describe('the stream of events', () => {
  it('nothing is published for two seconds after NATS stored nothing, each time, and its failure shows for a minute or until it stores', async (t) => {
    const { stream, clock, said, state, publish } = startStream(t);
    assert.deepEqual([await publish('e1'), stream.isStoring], [['e1'], true]);
    state.unstored = ['e1'];
    for (const time of ['first', 'second']) {
      assert.deepEqual([await publish('e1'), stream.isStoring], [undefined, false], time);
      clock.ms += 1_999;
      assert.deepEqual([await publish('e1'), said], [undefined, []], time);
      clock.ms += 1;
    }
    assert.equal(await publish('e1'), undefined);
    clock.ms += 60_000;
    assert.equal(stream.isStoring, false);
    clock.ms += 1;
    assert.equal(stream.isStoring, true);
    await publish('e1');
    assert.equal(stream.isStoring, false);
    state.unstored = [];
    clock.ms += 2_000;
    assert.deepEqual([await publish('e1'), stream.isStoring], [['e1'], true]);
    assert.deepEqual(await publish('e2'), ['e2'], 'nothing waits after a success');
  });

  it('a loss of NATS is no failure of JetStream', async (t) => {
    const { stream, state, publish } = startStream(t);
    state.isConnected = false;
    assert.deepEqual([await publish('e1'), stream.isStoring], [undefined, true]);
  });

  it('the stream is looked for once, and again after an event was not stored or NATS was away', async (t) => {
    const { said, state, publish, reconnect } = startStream(t);
    await publish('e1');
    assert.deepEqual(said, ['looks', 'publishes e1 to aevents.par_1.order.pending']);
    await publish('e2');
    assert.deepEqual(looks(said), []);
    state.unstored = ['e3'];
    assert.deepEqual(await publish('e3', 'e4'), ['e4']);
    assert.deepEqual([await publish('e4'), looks(said)], [['e4'], ['looks']], 'what was stored counts, at once');
    reconnect();
    state.config = undefined;
    assert.deepEqual([await publish('e5'), looks(said)], [['e5'], ['looks', 'adds']]);
  });

  it('a relay without events looks for a stream that is not known, and not more than every two seconds', async (t) => {
    const { stream, clock, said, state } = startStream(t);
    state.isConnected = false;
    await stream.restore();
    assert.deepEqual(said, []);
    Object.assign(state, { isConnected: true, isOffline: true });
    for (const time of ['first', 'second']) {
      await stream.restore();
      await stream.restore();
      assert.deepEqual([said.splice(0), stream.isStoring], [['looks'], false], time);
      clock.ms += 2_000;
    }
    state.isOffline = false;
    await stream.restore();
    await stream.restore();
    assert.deepEqual([said, stream.isStoring], [['looks'], true]);
  });

  for (const [replicas, ms] of [
    [1, 5_000],
    [3, 30_000],
  ] as const) {
    it(`a stream of ${replicas} copies is made again after ${ms} ms without an answer, if the others have a leader`, async (t) => {
      const { stream, clock, said, state, publish } = startStream(t, replicas);
      state.isOffline = true;
      const publishAfter = async (passedMs: number) => {
        clock.ms += passedMs;
        await publish('e1');
        return looks(said);
      };
      assert.deepEqual(await publishAfter(0), ['looks']);
      state.isOffline = false;
      assert.equal((await publishAfter(2_000))[0], 'looks', 'it answers in between');
      state.unstored = ['e1'];
      await publishAfter(0);
      state.isOffline = true;
      assert.deepEqual(await publishAfter(2_000), ['looks']);
      assert.deepEqual(await publishAfter(ms - 1), ['looks'], 'not long enough since then');
      state.hasLeader = false;
      assert.deepEqual(await publishAfter(2_000), ['looks'], 'nobody could delete it');
      Object.assign(state, { hasLeader: true, unstored: [] });
      said.splice(0);
      const consumer = stream.worker({ name: 'webhooks', consume: async () => {} });
      await assert.rejects(consumer.run(new AbortController().signal), /timeout/);
      assert.deepEqual(said, ['looks'], 'a consumer waits for the relay');
      assert.deepEqual(await publishAfter(2_000), ['looks', 'deletes', 'adds']);
      assert.equal(state.config?.num_replicas, replicas);
    });
  }

  it('copies that are too few become more, and are never made fewer', async (t) => {
    for (const [replicas, before, said] of [
      [3, 1, ['looks', 'updates to 3']],
      [3, 3, ['looks']],
      [1, 3, ['looks']],
    ] as const) {
      const started = startStream(t, replicas);
      started.state.config = { num_replicas: before } as StreamConfig;
      await started.publish('e1');
      assert.deepEqual(looks(started.said), said);
    }
  });

  it('messages are acknowledged once they are consumed, tried again if that fails, and thrown away if no gateway sent them', async (t) => {
    const { stream, said, batches } = startStream(t);
    const consumed: string[] = [];
    const state = { fails: false };
    const worker = stream.worker({
      name: 'webhooks',
      async consume(events: readonly EventKey[]) {
        if (state.fails) throw new Error('the database is away');
        consumed.push(...events.map(({ version }) => String(version)));
        said.push('consumed');
      },
    });
    for (const round of ['first', 'second']) {
      const stop = new AbortController();
      const running = worker.run(stop.signal);
      batches.push([message(1, said), message(2, said, { headers: undefined }), message(3, said)]);
      await eventually(() => assert.equal(said.filter((one) => one.startsWith('ack')).length, 3));
      assert.deepEqual(
        [consumed.splice(0), said.filter((one) => one !== 'looks')],
        [
          ['1', '3'],
          ['distrusts unsigned', 'ack 2', 'consumed', 'ack 1', 'ack 3'],
        ],
        round,
      );
      said.splice(0);
      stop.abort();
      await running;
      state.fails = true;
      const failing = assert.rejects(worker.run(new AbortController().signal), /the database is away/);
      batches.push([message(4, said, { headers: undefined }), message(5, said)]);
      await failing;
      assert.deepEqual(said.splice(0), ['distrusts unsigned', 'ack 4', 'nak 1000 5'], round);
      state.fails = false;
    }
  });
});

describe('a message about an event', () => {
  it('a message is believed if a gateway signed exactly it, within a minute of its own time', (t) => {
    const now = 1_800_000_000_000;
    t.mock.method(Date, 'now', () => now);
    const subject = 'a.events.par_1.order.pending';
    const made = () => eventHeaders(mac, subject, event('e', 12n));
    const readAt = (ms: number, headers = made(), at = subject) =>
      eventKeyOf(mac, { subject: at, headers, info: { timestampNanos: ms * 1_000_000 } as JsMsg['info'] });
    const key = { partnerId: 'par_1', version: 12n };
    for (const [apartMs, found] of [
      [0, key],
      [60_000, key],
      [60_001, 'late'],
      [-60_000, key],
      [-60_001, 'late'],
    ] as const) {
      assert.deepEqual(readAt(now + apartMs), found, `${apartMs} ms`);
    }
    assert.equal(readAt(now, made(), 'a.events.par_2.order.pending'), 'forged');
    for (const [name, value, found] of [
      ['Marina-Partner', 'par_2', 'forged'],
      ['Marina-Version', '13', 'forged'],
      ['Marina-Partner', '', 'nonsense'],
      ['Marina-Version', '1e3', 'nonsense'],
      ['Marina-Mac', 'none', 'unsigned'],
      ['Marina-Mac', `${now} ${'x'.repeat(22)}`, 'forged'],
      [
        'Marina-Mac',
        made()
          .get('Marina-Mac')
          .replace(`${now}`, `${now + 1}`),
        'forged',
      ],
    ] as const) {
      const headers = made();
      headers.set(name, value);
      assert.equal(readAt(now, headers), found, `${name}: ${value}`);
    }
  });
});
