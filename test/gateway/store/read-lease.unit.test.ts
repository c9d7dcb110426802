import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ReadLease, readableMs } from '../../../src/gateway/store/read-lease.ts';

describe('reads at a node of a Galera cluster', () => {
  function leaseWith(write: (lease: ReadLease) => Promise<unknown>) {
    const clock = { ms: 100_000 };
    const writes = { count: 0 };
    const lease: ReadLease = new ReadLease(
      () => {
        writes.count += 1;
        return write(lease);
      },
      () => clock.ms,
    );
    return { lease, clock, writes };
  }
  const refused = { name: 'UnavailableError' };

  it('are allowed for four seconds from the beginning of a write that was committed there', () => {
    const { lease, clock } = leaseWith(async () => {});
    lease.note('one', clock.ms);
    clock.ms += readableMs - 1;
    lease.check('one');
    clock.ms += 1;
    assert.throws(() => lease.check('one'), refused);
    assert.ok(lease.isOver);
  });

  it('are refused at every other node, and never at a server that is no node', () => {
    const { lease, clock } = leaseWith(async () => {});
    lease.note('one', clock.ms);
    assert.throws(() => lease.check('two'), refused);
    lease.check(undefined);
  });

  it('keep the proof of a later write when an earlier one is noted after it', () => {
    const { lease, clock } = leaseWith(async () => {});
    lease.note('two', clock.ms);
    lease.note('one', clock.ms - 1_000);
    assert.throws(() => lease.check('one'), refused, 'reads went back to the node before');
    clock.ms += readableMs - 1;
    lease.check('two');
  });

  it('make one write together when the last one is too long ago', async () => {
    const { lease, clock, writes } = leaseWith(async (own) => own.note('one', clock.ms));
    await Promise.all([lease.prove(), lease.prove(), lease.prove()]);
    assert.equal(writes.count, 1);
    lease.check('one');
  });

  it('are refused at once for a moment after a write that failed, and then try again', async () => {
    const { lease, clock, writes } = leaseWith(() => Promise.reject(new Error('gateways write through another node')));
    await lease.prove();
    assert.throws(() => lease.check('one'), refused);
    await assert.rejects(lease.prove(), refused);
    assert.equal(writes.count, 1);
    clock.ms += 251;
    await lease.prove();
    assert.equal(writes.count, 2);
  });

  it('reads at a node of a Galera cluster wait a second and a half for a write that hangs, which no other joins until it has ended', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let end = () => {};
    const { lease, clock, writes } = leaseWith(
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
    );
    for (const time of [1, 2]) {
      let waited = 0;
      for (const _ of ['first', 'second']) {
        const proving = lease.prove().then(() => {
          waited += 1;
        });
        t.mock.timers.tick(1_499);
        await new Promise(setImmediate);
        const before = waited;
        t.mock.timers.tick(1);
        await proving;
        assert.deepEqual([before, waited], [waited - 1, before + 1]);
        await assert.rejects(lease.prove(), refused);
        clock.ms += 249;
        await assert.rejects(lease.prove(), refused, 'a moment later');
        clock.ms += 1;
      }
      assert.equal(writes.count, time, 'one write, however often it was waited for');
      lease.note('one', clock.ms);
      end();
      await new Promise(setImmediate);
      lease.check('one');
      clock.ms += readableMs;
      assert.equal(lease.isOver, true);
    }
  });
});
