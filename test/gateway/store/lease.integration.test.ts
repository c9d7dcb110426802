import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readBacklog } from '../../../src/gateway/operators/telemetry/backlog.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import { fenced, type Lease, underLease } from '../../../src/gateway/store/lease.ts';
import { statement } from '../../../src/gateway/store/statement.ts';
import { SystemClock } from '../../../src/kit/clock.ts';
import { startWorker, withDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

describe('leases', () => {
  let database: Database;
  withDatabase((opened) => {
    database = opened;
  });

  /** Runs a worker that holds the lease until it is told to stop, and remembers what it held. */
  function hold(name: string, holder: string) {
    const held: Lease[] = [];
    const worker = underLease(database, name, holder, async (lease) => {
      held.push(lease);
      await new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve(), { once: true }));
    });
    return { held, stop: startWorker(worker) };
  }

  /** Whether work under the lease may still be written. */
  const mayWrite = (lease: Lease) =>
    database.transaction([fenced(lease)], ([rows]) => ({ writes: [], result: rows?.[0] !== undefined }));

  it('one of many holds it, and another takes over at once when it is given back', async () => {
    const holders = ['a', 'b', 'c'].map((name) => hold('one', name));
    await eventually(() => assert.equal(holders.flatMap(({ held }) => held).length, 1));
    const first = holders.find(({ held }) => held.length === 1);
    await first?.stop();
    await eventually(() => assert.equal(holders.flatMap(({ held }) => held).length, 2), 3_000);
    const fences = holders.flatMap(({ held }) => held.map(({ fence }) => fence));
    assert.equal(new Set(fences).size, 2);
    await Promise.all(holders.filter((holder) => holder !== first).map((holder) => holder.stop()));
  });

  it('a holder that lost its lease is told, and can write nothing under it any more', async () => {
    const old = hold('two', 'old');
    await eventually(() => assert.equal(old.held.length, 1));
    const [lease] = old.held;
    assert.ok(lease !== undefined && (await mayWrite(lease)));
    // As if it had been frozen until another took the lease.
    await database.write(
      statement(
        `UPDATE leases SET holder = 'new', fence = fence + 1, expires_at = NOW(3) + INTERVAL 14 SECOND WHERE name = 'two'`,
      ),
    );
    assert.equal(await mayWrite(lease), false);
    await eventually(() => assert.equal(lease.signal.aborted, true), 5_000);
    await old.stop();
    const [row] = await database.read(statement(`SELECT holder FROM leases WHERE name = 'two'`));
    assert.equal(row?.holder, 'new', 'it does not give back what is not its own');
  });

  it('is held while its holder ends its work in order at a stop, and not after it', async () => {
    const held: Lease[] = [];
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const stop = startWorker(
      underLease(database, 'stopping', 'holder', async (lease) => {
        held.push(lease);
        await ended;
      }),
    );
    await eventually(() => assert.equal(held.length, 1));
    const [lease] = held;
    assert.ok(lease !== undefined);
    const stopped = stop();
    assert.deepEqual([lease.signal.aborted, lease.isHeld(), await mayWrite(lease)], [true, true, true]);
    // Longer than a lease lasts without being renewed.
    const began = performance.now();
    await eventually(() => assert.ok(performance.now() - began > 4_500), 10_000);
    assert.deepEqual([lease.isHeld(), await mayWrite(lease)], [true, true]);
    const other = hold('stopping', 'other');
    end();
    await stopped;
    assert.equal(lease.isHeld(), false);
    await eventually(() => assert.equal(other.held.length, 1));
    await other.stop();
  });

  it('a lost lease is not held, also while the process stops', async () => {
    const held: Lease[] = [];
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const stop = startWorker(
      underLease(database, 'lost', 'old', async (lease) => {
        held.push(lease);
        await ended;
      }),
    );
    await eventually(() => assert.equal(held.length, 1));
    const stopped = stop();
    await database.write(statement(`UPDATE leases SET holder = 'new', fence = fence + 1 WHERE name = 'lost'`));
    await eventually(() => assert.equal(held[0]?.isHeld(), false), 5_000);
    end();
    await stopped;
  });

  it("is free when its holder is gone and the database's clock was set back since", async () => {
    // As if a holder had taken it and died, and another server with a clock an hour behind had taken over.
    await database.write(
      statement(
        `INSERT INTO leases (name, holder, fence, expires_at) VALUES ('three', 'gone', 7, NOW(3) + INTERVAL 1 HOUR)`,
      ),
    );
    const { leases } = await readBacklog(database, new SystemClock());
    assert.ok(!leases.some(({ name }) => name === 'three'), 'the metrics say that somebody holds it');
    const next = hold('three', 'next');
    await eventually(() => assert.equal(next.held.length, 1, 'nobody holds it'), 5_000);
    assert.equal(next.held[0]?.fence, 8n);
    await next.stop();
  });
});
