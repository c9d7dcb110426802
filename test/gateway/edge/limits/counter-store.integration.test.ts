import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
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

  it('counters are said to be removed if somebody takes them out of the same bucket', async () => {
    await store.write('other', { value: { used: 1 }, revision: 0 });
    const { streams } = await nats.requireConnection().jetstreamManager();
    await streams.purge(`KV_${prefix}SLOTS`, { filter: `$KV.${prefix}SLOTS.other` });
    await assert.rejects(store.read('other'), { name: 'UntrustedEntryError' });
    assert.deepEqual(distrusted, ['entry removed']);
  });
});
