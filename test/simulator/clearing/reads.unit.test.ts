import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { Reads } from '../../../src/simulator/clearing/reads.ts';
import { unanswered, type WireCall } from '../../../src/simulator/wire/rpc.ts';

/** A read that ends when the test says so. */
function begin(reads: Reads, account: string) {
  const call = new EventEmitter();
  let settle = (_: unknown) => {};
  let fail = (_: Error) => {};
  const read = reads.count(
    call as unknown as WireCall,
    account,
    () =>
      new Promise<unknown>((resolve, reject) => {
        settle = resolve;
        fail = reject;
      }),
  );
  return {
    answer: async (value: unknown = 1) => {
      settle(value);
      return read;
    },
    fail: async () => {
      fail(new Error('no'));
      await assert.rejects(read, /^Error: no$/);
    },
    cancel: () => void call.emit('cancelled'),
  };
}

describe('the count of concurrent reads', () => {
  it('the most at once are those since the last question, of all and of one account', async () => {
    const reads = new Reads();
    const [one, two, other] = [begin(reads, 'A1'), begin(reads, 'A1'), begin(reads, 'A2')];
    await one.answer();
    assert.deepEqual(reads.take(), { most: 3, mostOfAccount: 2, now: 2 });
    assert.deepEqual(reads.take(), { most: 2, mostOfAccount: 1, now: 2 });
    await two.answer();
    await other.answer();
    assert.deepEqual(reads.take(), { most: 2, mostOfAccount: 1, now: 0 });
    assert.deepEqual(reads.take(), { most: 0, mostOfAccount: 0, now: 0 });
  });

  it('a read of no account counts for all', async () => {
    const reads = new Reads();
    await begin(reads, '').answer();
    assert.deepEqual(reads.take(), { most: 1, mostOfAccount: 0, now: 0 });
  });

  it('each read is given back once, however it ends', async () => {
    const reads = new Reads();
    const all = Array.from({ length: 5 }, () => begin(reads, 'A1'));
    const [answered, failed, cancelled, both, lost] = all;
    assert.equal(await answered?.answer('x'), 'x');
    await failed?.fail();
    cancelled?.cancel();
    cancelled?.cancel();
    both?.cancel();
    await both?.answer();
    assert.deepEqual(reads.take(), { most: 5, mostOfAccount: 5, now: 1 });
    // A call without an answer counts until its caller gives up.
    assert.equal(await lost?.answer(unanswered), unanswered);
    assert.equal(reads.take().now, 1);
    lost?.cancel();
    assert.equal(reads.take().now, 0);
    assert.deepEqual(reads.take(), { most: 0, mostOfAccount: 0, now: 0 });
  });
});
