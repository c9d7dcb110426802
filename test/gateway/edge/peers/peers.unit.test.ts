import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StoreLostError } from '../../../../src/gateway/edge/limits/counter-store.ts';
import { heartbeatForm, maxReplicas, pauseForm } from '../../../../src/gateway/edge/limits/peers.ts';
import {
  maxEntryBytes,
  openEntry,
  sealEntry,
  UntrustedEntryError,
} from '../../../../src/gateway/edge/limits/sealed-entry.ts';
import { bucketFrom, draw } from '../../../../src/gateway/edge/limits/shared-buckets.ts';
import { SharedPause } from '../../../../src/gateway/edge/limits/shared-pause.ts';
import { reservationsFrom } from '../../../../src/gateway/edge/limits/shared-slots.ts';
import { PeerMac } from '../../../../src/gateway/edge/peers/mac.ts';
import { keysFor, onlyKey, parseKeyRing } from '../../../../src/kit/key-ring.ts';
import { fixed } from '../../../../src/kit/watched-files.ts';
import { World } from '../../../support/limits-model.ts';

const mac = new PeerMac(onlyKey(Buffer.alloc(32, 1)));
const now = { atLeast: 1_000, atMost: 1_000 };

/** A bucket of which so many replicas hold a token. */
const heldBy = (count: number) => ({
  level: 0,
  at: 0,
  held: Object.fromEntries(Array.from({ length: count }, (_, at) => [`r${at}`, { tokens: 1, until: at / 100 }])),
});

describe('what a gateway parses of its peers', () => {
  it('a heartbeat is a name and a time, and nothing else', () => {
    assert.deepEqual(heartbeatForm.exec('a-1 12.5')?.slice(1), ['a-1', '12.5']);
    const none = ['', 'a', 'a NaN', 'a Infinity', 'a -1', 'a 1e3', 'a 1 2', 'a.b 1', `${'a'.repeat(65)} 1`, 'a 1\n'];
    for (const text of none) assert.equal(heartbeatForm.test(text), false, JSON.stringify(text));
  });

  it('a pause is a name and a whole number of milliseconds', () => {
    assert.deepEqual(pauseForm.exec('a 30000')?.slice(1), ['a', '30000']);
    for (const text of ['a', 'a 1.5', 'a -1', 'a 99999999']) assert.equal(pauseForm.test(text), false, text);
  });

  it('counts no more replicas than there can be, however many heartbeats it gets', async () => {
    const world = await World.of(1, 1);
    const [replica] = world.replicas;
    for (let at = 0; at < 2_000; at += 1) replica?.sendToAll('peers.here', `fake-${at} 1`);
    await world.run(100);
    assert.equal(replica?.sharing.replicas, maxReplicas);
  });

  it('a bucket with a level, a time or a number of holders that cannot be is none', () => {
    const lies = [
      { level: -1e15, at: 1, held: {} },
      { level: Number.POSITIVE_INFINITY, at: 1, held: {} },
      { level: Number.NaN, at: 1, held: {} },
      { level: 1, at: Number.NaN, held: {} },
      { level: 1, at: 1, held: [] },
      { level: 1, at: 1, held: { a: { tokens: 1e15, until: 1 } } },
      { level: 1, at: 1, held: { a: { tokens: 1, until: Number.NaN } } },
      { level: 1, at: 1, held: { 'a b': { tokens: 1, until: 1 } } },
      heldBy(maxReplicas + 1),
    ];
    for (const lie of lies) assert.equal(bucketFrom(lie, now), undefined, JSON.stringify(lie).slice(0, 100));
    assert.ok(bucketFrom(heldBy(maxReplicas), now) !== undefined);
    assert.equal(bucketFrom({ level: 1, at: 60_000, held: {} }, now), undefined);
    assert.equal(bucketFrom({ level: 1, at: 1, held: { a: { tokens: 1, until: 60_000 } } }, now), undefined);
    assert.ok(bucketFrom({ level: 1, at: 1_001, held: { a: { tokens: 1, until: 3_000 } } }, now));
  });

  it('reservations that cannot be are none, and members of a later version are ignored', () => {
    for (const lie of [null, [], 'x', { a: -1 }, { a: 0.5 }, { a: 1e9 }, { 'a b': 1 }]) {
      assert.equal(reservationsFrom(lie), undefined, JSON.stringify(lie));
    }
    const many = Object.fromEntries(Array.from({ length: maxReplicas + 1 }, (_, at) => [`r${at}`, 1]));
    assert.equal(reservationsFrom(many), undefined);
    assert.deepEqual(reservationsFrom({ a: 2, later: 'x' }), { a: 2 });
  });

  it('a bucket is filled in time that grows with its holders, and not with their square', () => {
    const by = { replica: 'me', own: 0, ownSince: 0, given: 0, charge: 0, needed: 1, spare: 0, now };
    const timeFor = (count: number) => {
      const bucket = heldBy(count);
      const startedAt = performance.now();
      draw(bucket, { perSecond: 1, burst: 1 }, by);
      return performance.now() - startedAt;
    };
    timeFor(10_000);
    assert.ok(timeFor(50_000) < 2_000, 'a square would take a minute');
  });
});

describe('a sealed entry', () => {
  const stamp = 1_700_000_000_000;
  const sealed = Buffer.from(sealEntry(mac, 'SLOTS.a', { text: '{"a":1}', stamp }));

  it('is opened with its text and stamp', () => {
    assert.deepEqual(openEntry(mac, 'SLOTS.a', sealed, stamp + 100), { text: '{"a":1}', stamp });
  });

  it('a sealed entry of a replica that still has the former secret is opened, and one of a replica that is ahead is not yet', () => {
    const [former = '', next = ''] = ['a1', 'b2'].map((byte) => byte.repeat(32));
    const macOf = (...secrets: readonly string[]) =>
      new PeerMac(keysFor(fixed(parseKeyRing(secrets.join('\n'))), 'peers' as never));
    const [before, during, after] = [macOf(former), macOf(next, former), macOf(next)];
    const entryOf = (one: PeerMac) => Buffer.from(sealEntry(one, 'SLOTS.a', { text: '1', stamp }));
    const opened = { text: '1', stamp };
    assert.deepEqual(openEntry(during, 'SLOTS.a', entryOf(before), stamp), opened);
    assert.deepEqual(openEntry(during, 'SLOTS.a', entryOf(during), stamp), opened);
    assert.deepEqual(openEntry(after, 'SLOTS.a', entryOf(during), stamp), opened);
    assert.equal(openEntry(before, 'SLOTS.a', entryOf(during), stamp), 'forged');
    assert.equal(openEntry(after, 'SLOTS.a', entryOf(before), stamp), 'forged');
  });

  it('is not believed under another key, ring or time, or if a byte differs', () => {
    const changed = Buffer.from(sealed.toString().replace('"a":1', '"a":2'));
    const other = new PeerMac(onlyKey(Buffer.alloc(32, 2)));
    assert.equal(openEntry(mac, 'SLOTS.b', sealed, stamp), 'forged');
    assert.equal(openEntry(other, 'SLOTS.a', sealed, stamp), 'forged');
    assert.equal(openEntry(mac, 'SLOTS.a', changed, stamp), 'forged');
    assert.equal(openEntry(mac, 'SLOTS.a', sealed, stamp + 5_001), 'late');
    assert.equal(openEntry(mac, 'SLOTS.a', sealed, stamp - 5_001), 'late');
    assert.equal(openEntry(mac, 'SLOTS.a', Buffer.from('{"a":1}'), stamp), 'unsigned');
    assert.equal(openEntry(mac, 'SLOTS.a', Buffer.alloc(maxEntryBytes + 1, 48), stamp), 'too_large');
  });
});

describe('the time for which all replicas keep to their shares', () => {
  it('doubles while lies go on, up to ten minutes, and is short again after a quiet while', () => {
    const pause = new SharedPause();
    const lengths: number[] = [];
    let at = 0;
    for (let lie = 0; lie < 7; lie += 1) {
      const ms = pause.next(at);
      lengths.push(ms / 1_000);
      pause.begin(at, ms);
      assert.equal(pause.isOn(at + ms - 1), true);
      at += ms;
      assert.equal(pause.isOn(at), false);
    }
    assert.deepEqual(lengths, [30, 60, 120, 240, 480, 600, 600]);
    assert.equal(pause.next(at + 600_000), 30_000);
  });

  it('a pause is not cut short by a shorter one that another replica begins', () => {
    const pause = new SharedPause();
    pause.begin(0, 600_000);
    pause.begin(1_000, 30_000);
    assert.deepEqual([pause.isOn(599_999), pause.isOn(600_000)], [true, false]);
    pause.begin(590_000, 30_000);
    assert.deepEqual([pause.isOn(619_999), pause.isOn(620_000)], [true, false]);
  });

  it('begins with an entry that is not believed, and with a bucket that is lost twice within a minute', () => {
    const pause = new SharedPause();
    assert.equal(pause.isNeededFor(new UntrustedEntryError('forged', 1), 0), true);
    assert.equal(pause.isNeededFor(new Error('timeout'), 0), false);
    const losses = [0, 59_000, 120_000].map((at) => pause.isNeededFor(new StoreLostError(), at));
    assert.deepEqual(losses, [false, true, false]);
  });
});
