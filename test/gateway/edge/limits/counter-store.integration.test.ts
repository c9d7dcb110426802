import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it, mock } from 'node:test';
import { CounterStore } from '../../../../src/gateway/edge/limits/counter-store.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { Nats } from '../../../../src/kit/nats.ts';
import { testServers } from '../../../support/servers.ts';
import { newPrefix, testMac } from '../../../support/slots.ts';

describe('the shared counters of a replica', () => {
  const distrusted: string[] = [];
  const prefix = newPrefix();
  let nats: Nats;
  let store: CounterStore;
  before(async () => {
    nats = new Nats({ url: (await testServers()).natsUrl, log: createLogger({ name: 'test', level: 'silent' }) });
    await nats.start();
    const distrust = (kind: string, reason: string) => void distrusted.push(`${kind} ${reason}`);
    store = new CounterStore(nats, prefix, randomUUID(), { mac: testMac, distrust });
    await store.open();
  });
  after(() => nats.close());

  const removeBucket = async () => {
    const { streams } = await nats.requireConnection().jetstreamManager();
    await streams.delete(`KV_${prefix}SLOTS`);
  };

  it('counters begin at nothing in a bucket that is made again, and nobody is said to have removed them', async () => {
    const counted = { value: { used: 3 }, revision: 0 };
    for (let times = 0; times < 2; times += 1) {
      assert.ok(await store.write('partner', counted), 'it is written into an empty bucket');
      await removeBucket();
      await store.open();
      assert.deepEqual(await store.read('partner'), { value: undefined, revision: 0 });
    }
    assert.deepEqual(distrusted, []);
  });

  it('entries that are written within a millisecond, also by a replica whose clock is behind, are all believed', async () => {
    const distrust = (kind: string, reason: string) => void distrusted.push(`${kind} ${reason}`);
    const other = new CounterStore(nats, prefix, randomUUID(), { mac: testMac, distrust });
    await Promise.all([store.open(), other.open()]);
    const at = performance.now();
    const now = mock.method(performance, 'now', () => at);
    try {
      let revision = 0;
      for (let used = 1; used <= 6; used += 1) {
        const [writer, reader] = used % 2 === 0 ? [store, other] : [other, store];
        if (revision > 0) await writer.read('busy');
        now.mock.mockImplementation(() => at - used * 1_000);
        revision = (await writer.write('busy', { value: { used }, revision })) ?? 0;
        assert.deepEqual(await reader.read('busy'), { value: { used }, revision });
      }
    } finally {
      now.mock.restore();
    }
    assert.deepEqual(distrusted, []);
  });

  it('counters are said to be removed if somebody takes them out of the same bucket', async () => {
    await store.write('other', { value: { used: 1 }, revision: 0 });
    const { streams } = await nats.requireConnection().jetstreamManager();
    await streams.purge(`KV_${prefix}SLOTS`, { filter: `$KV.${prefix}SLOTS.other` });
    await assert.rejects(store.read('other'), { name: 'UntrustedEntryError' });
    assert.deepEqual(distrusted, ['entry removed']);
  });
});
