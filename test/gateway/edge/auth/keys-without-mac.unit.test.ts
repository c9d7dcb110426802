/** The list of keys without a MAC, over a database that the test answers for. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { KeysWithoutMac } from '../../../../src/gateway/edge/auth/keys-without-mac.ts';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import { type KeyRing, parseKeyRing } from '../../../../src/kit/key-ring.ts';

const [first, second, third] = ['aa', 'bb', 'cc'].map((byte) => byte.repeat(32));
const ring = (...secrets: (string | undefined)[]): KeyRing => parseKeyRing(secrets.join(','));

/** A list of at most three ids. `state` is what the database has, or why it does not answer. */
function open({ mock }: TestContext) {
  const clock = { ms: 10_000 };
  mock.method(performance, 'now', () => clock.ms);
  const state = { ids: ['key_a', 'key_b'], away: undefined as Error | undefined, meanwhile: () => {}, reads: 0 };
  const read = async ({ values, sql }: Statement) => {
    state.reads += 1;
    assert.ok(values.includes(4) || sql.includes('LIMIT 4'), 'one more than are kept');
    state.meanwhile();
    if (state.away !== undefined) throw state.away;
    return state.ids.map((id) => ({ id }));
  };
  const macKeys: { all: KeyRing } = { all: ring(first) };
  const keys = new KeysWithoutMac({ read } as never, macKeys, 3);
  return { keys, state, clock, macKeys };
}
const unavailable = { code: 'service_unavailable' };

describe('a key without a MAC', () => {
  it('a key without a MAC is believed if it is listed, and costs a read in two seconds at most if it is not', async (t) => {
    const { keys, state, clock } = open(t);
    assert.deepEqual([await keys.has('key_a'), state.reads], [true, 1]);
    assert.deepEqual([await keys.has('key_b'), await keys.has('forged'), state.reads], [true, false, 1]);
    clock.ms += 1_999;
    state.ids = ['key_c'];
    assert.deepEqual([await keys.has('key_c'), state.reads], [false, 1]);
    clock.ms += 1;
    assert.deepEqual([await keys.has('key_c'), state.reads], [true, 2]);
    assert.deepEqual([await keys.has('key_a'), state.reads], [false, 2], 'it is revoked');
  });

  it('a key without a MAC is looked up by many callers in one read', async (t) => {
    const { keys, state } = open(t);
    const found = await Promise.all(['key_a', 'forged', 'key_b', 'forged'].map((id) => keys.has(id)));
    assert.deepEqual([found, state.reads], [[true, false, true, false], 1]);
  });

  it('a key without a MAC may be any key if there are more than are kept, until there are fewer again', async (t) => {
    const { keys, state, clock } = open(t);
    state.ids = ['key_a', 'key_b', 'key_c'];
    assert.deepEqual([await keys.has('key_c'), await keys.has('forged')], [true, false]);
    clock.ms += 2_000;
    state.ids = ['key_a', 'key_b', 'key_c', 'key_d'];
    assert.equal(await keys.has('forged'), true, 'the database is asked for each');
    clock.ms += 2_000;
    state.ids = ['key_a'];
    const stop = new AbortController();
    const running = keys.worker.run(stop.signal);
    stop.abort();
    await running;
    assert.deepEqual([await keys.has('forged'), await keys.has('key_a')], [false, true]);
  });

  it('a key without a MAC is judged by the last list while the database is away, and not at all without a list', async (t) => {
    const { keys, state, clock } = open(t);
    state.away = new Error('away');
    await assert.rejects(keys.has('key_a'), unavailable);
    clock.ms += 2_000;
    state.away = undefined;
    assert.equal(await keys.has('key_a'), true);
    for (let failures = 0; failures < 2; failures += 1) {
      clock.ms += 2_000;
      state.away = new Error('away');
      assert.deepEqual([await keys.has('key_a'), await keys.has('forged')], [true, false]);
    }
  });

  it('a key without a MAC is judged by no list from before a secret left the ring, because more keys may be listed since', async (t) => {
    const { keys, state, macKeys } = open(t);
    macKeys.all = ring(first, second);
    assert.equal(await keys.has('forged'), false);
    macKeys.all = ring(second, first);
    state.away = new Error('away');
    assert.equal(await keys.has('forged'), false, 'all secrets of the list are still there');
    macKeys.all = ring(second, third);
    await assert.rejects(keys.has('forged'), unavailable);
    assert.equal(await keys.has('key_a'), true, 'what is listed stays');
    state.away = undefined;
    const { reads } = state;
    macKeys.all = ring(third, second);
    assert.deepEqual(
      [await keys.has('forged'), state.reads],
      [false, reads + 1],
      'a new ring is a reason to read at once',
    );
  });

  it('a key without a MAC is judged by no list whose secrets left the ring while it was read', async (t) => {
    const { keys, state, macKeys } = open(t);
    state.meanwhile = () => {
      macKeys.all = ring(second);
    };
    await assert.rejects(keys.has('forged'), unavailable);
    state.meanwhile = () => {};
    assert.equal(await keys.has('forged'), false, 'it is read again with the new ring');
  });
});
