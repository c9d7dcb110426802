import { pause, type Worker } from '../../kit/worker.ts';
import type { Database } from './database.ts';
import { hasNotRunOut, type Statement, statement } from './statement.ts';
import { defineTable, instant, text, whole } from './table.ts';

/** How long a lease lasts without being renewed, and how often it is. Both in real time. */
const lengthMs = 4_000;
const renewEveryMs = 1_000;

/** The holder of each job that only one process may do. Its times are the database's own, which nothing else uses. */
export const leases = defineTable({
  name: 'leases',
  columns: { name: text(40), holder: text(64), fence: whole(), expiresAt: instant() },
  primary: ['name'],
});

/** A lease that is held, as far as is known: a holder that was frozen learns only later that it lost it. */
export interface Lease {
  readonly name: string;
  /** Grows with every holder. */
  readonly fence: bigint;
  /** Aborted when the lease was lost, could not be renewed in time, the work under it has ended or failed, or the process stops. */
  readonly signal: AbortSignal;
  /**
   * Whether no other can hold it yet, by a clock that goes on while the process is frozen. It stays true while the process
   * stops, until the work has ended, so that the work can end in order.
   */
  isHeld(): boolean;
}

/**
 * A worker that only one process runs at a time: it waits for the lease, runs while it holds it, and gives it back.
 * Time is the database's own, so that the clocks of replicas do not matter. A frozen holder finds its signal aborted when
 * it wakes, but may still make the write it was about to make. So work under a lease must be such as may be done twice,
 * or carry the fence in its transaction (`fenced`), which then finds nothing.
 */
export function underLease(
  database: Database,
  name: string,
  holder: string,
  work: (lease: Lease) => Promise<void>,
): Worker {
  return {
    name,
    async run(signal) {
      while (!signal.aborted) {
        const askedAt = performance.now();
        const fence = await acquire(database, name, holder);
        if (fence === undefined) await pause(renewEveryMs, signal);
        else await runHolding(database, { name, holder, fence }, askedAt + lengthMs, signal, work);
      }
    },
  };
}

/**
 * A statement that finds a row only while the lease is still ours, for the reads of a transaction. It locks the lease. The
 * position of the reports is written behind it; everything else done under a lease may be done twice.
 */
export function fenced(lease: Pick<Lease, 'name' | 'fence'>): Statement {
  return statement('SELECT fence FROM leases WHERE name = ? AND fence = ? FOR UPDATE', lease.name, lease.fence);
}

interface Held {
  readonly name: string;
  readonly holder: string;
  readonly fence: bigint;
}

async function runHolding(
  database: Database,
  held: Held,
  heldUntil: number,
  stopping: AbortSignal,
  work: (lease: Lease) => Promise<void>,
): Promise<void> {
  const lost = new AbortController();
  const done = new AbortController();
  const signal = AbortSignal.any([stopping, lost.signal, done.signal]);
  let until = heldUntil;
  const renewing = keepRenewing(database, held, until, done.signal, {
    renewed: (next) => {
      until = next;
    },
    lost: () => lost.abort(),
  });
  const isHeld = () => !lost.signal.aborted && !done.signal.aborted && performance.now() < until;
  try {
    await work({ name: held.name, fence: held.fence, signal, isHeld });
  } finally {
    done.abort();
    await renewing;
    await release(database, held).catch(() => undefined); // It runs out by itself when it cannot be given back.
  }
}

/**
 * Renews until it is stopped. Calls `lost` if another took the lease or it was not renewed within its length, however long a
 * renewal takes.
 */
async function keepRenewing(
  database: Database,
  held: Held,
  heldUntil: number,
  done: AbortSignal,
  { renewed, lost }: { renewed: (heldUntil: number) => void; lost: () => void },
): Promise<void> {
  let expiry = setTimeout(lost, heldUntil - performance.now());
  try {
    while (!done.aborted) {
      await pause(renewEveryMs, done);
      if (done.aborted) return;
      const askedAt = performance.now();
      try {
        if (!(await renew(database, held))) return lost();
        clearTimeout(expiry);
        expiry = setTimeout(lost, askedAt + lengthMs - performance.now());
        renewed(askedAt + lengthMs);
      } catch {
        // The database may come back before the lease runs out; then another holder is impossible too.
      }
    }
  } finally {
    clearTimeout(expiry);
  }
}

async function acquire(database: Database, name: string, holder: string): Promise<bigint | undefined> {
  return database.transaction<bigint | undefined>(
    [
      statement(`INSERT IGNORE INTO leases (name, holder, fence, expires_at) VALUES (?, '', 0, NOW(3))`, name),
      statement(
        `SELECT fence, NOT (${hasNotRunOut('expires_at')}) AS free FROM leases WHERE name = ? FOR UPDATE`,
        name,
      ),
    ],
    ([, rows]) => {
      const row = rows?.[0];
      if (row === undefined || Number(row.free) === 0) return { writes: [], result: undefined };
      const fence = BigInt(String(row.fence)) + 1n;
      const take = statement(
        `UPDATE leases SET holder = ?, fence = ?, expires_at = NOW(3) + INTERVAL ${lengthMs * 1_000} MICROSECOND WHERE name = ?`,
        holder,
        fence,
        name,
      );
      return { writes: [take], result: fence };
    },
  );
}

async function renew(database: Database, { name, fence }: Held): Promise<boolean> {
  const changed = await database.write(
    statement(
      `UPDATE leases SET expires_at = NOW(3) + INTERVAL ${lengthMs * 1_000} MICROSECOND WHERE name = ? AND fence = ?`,
      name,
      fence,
    ),
  );
  return changed === 1;
}

async function release(database: Database, { name, fence }: Held): Promise<void> {
  await database.write(statement('UPDATE leases SET expires_at = NOW(3) WHERE name = ? AND fence = ?', name, fence));
}
