/** The figures of what waits, over rows that the test gives for each of the statements. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readBacklog } from '../../../../src/gateway/operators/telemetry/backlog.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { storedKinds } from '../../../../src/gateway/trading/kinds.ts';

/** Business time is a day ahead of real time, as in a sandbox. */
const [now, realNow] = [186_400_000, 100_000_000];
const kinds = storedKinds.map(({ name }) => name);

const oldest = (at: number, more: SqlRow = {}): SqlRow[] => [{ count: 2, oldest: new Date(at), ...more }];

/** Reads the backlog. `answers` are rows by a part of a statement; what has none is empty. */
async function read(answers: Readonly<Record<string, SqlRow[]>>) {
  const used = new Set<string>();
  const answer = ({ sql }: Statement): SqlRow[] => {
    const part = Object.keys(answers).find((text) => sql.includes(text));
    if (part !== undefined) used.add(part);
    return part === undefined ? [] : (answers[part] ?? []);
  };
  const database = { readAll: async (queries: readonly Statement[]) => queries.map(answer) };
  const backlog = await readBacklog(database as never, { now: () => now, realNow: () => realNow } as never);
  assert.deepEqual([...used].toSorted(), Object.keys(answers).toSorted());
  return backlog;
}

it('the oldest of what waits is as old as its own clock says, and nothing is no age', async () => {
  const nothing = await read({});
  assert.ok(nothing.unsettled.every(({ count, oldestMs }) => count === 0 && oldestMs === 0));
  assert.deepEqual(
    nothing.unsettled.map(({ kind }) => kind),
    kinds.flatMap((kind) => [kind, kind, kind]),
  );
  assert.deepEqual([nothing.outbox, nothing.held, nothing.proposals], Array(3).fill({ count: 0, oldestMs: 0 }));
  assert.ok(nothing.removal.every(({ overdueMs }) => overdueMs === 0));
  for (const [at, kind] of kinds.entries()) {
    const { table } = storedKinds[at] ?? {};
    const rows = [
      ...oldest(now - 50, { shown_state: 'uncertain', acknowledged: '1' }),
      ...oldest(realNow - 7, { shown_state: 'other', acknowledged: 0 }),
    ];
    const { unsettled } = await read({ [`FORCE INDEX (${table?.name}_check_at)`]: rows });
    assert.deepEqual(
      unsettled.filter(({ count }) => count > 0),
      [
        { kind, state: 'uncertain', acknowledged: 1, count: 2, oldestMs: 50 },
        { kind, state: 'other', acknowledged: 0, count: 2, oldestMs: 7 },
      ],
    );
  }
  const ahead = await read({ 'FORCE INDEX (orders_check_at)': oldest(now + 9, { shown_state: 'sending' }) });
  assert.equal(ahead.unsettled[0]?.oldestMs, 0, 'another clock is ahead');
});

it('events wait in real time, and proposals, releases and leases are those that are stored', async () => {
  const backlog = await read({
    'FROM outbox FORCE INDEX': oldest(realNow - 30),
    'MIN(proposed_at) AS oldest': oldest(now - 40),
    'WHERE held_until IS NOT NULL': oldest(now - 60),
    'FROM leases': [{ name: 'a', holder: 'b' }],
  });
  const { outbox, proposals, held, leases } = backlog;
  assert.deepEqual(
    [outbox, proposals, held].map(({ oldestMs }) => oldestMs),
    [30, 40, 60],
  );
  assert.deepEqual(
    [outbox, proposals, held].map((one) => one.count),
    [2, 2, 2],
  );
  assert.deepEqual(leases, [{ name: 'a', holder: 'b' }]);
});

it('a worker that removes old rows is overdue since the oldest of all of its rows should be gone', async () => {
  const dayMs = 86_400_000;
  const overdue = async (answers: Readonly<Record<string, SqlRow[]>>) => {
    const { removal } = await read(answers);
    return Object.fromEntries(
      removal.filter(({ overdueMs }) => overdueMs > 0).map(({ worker, overdueMs }) => [worker, overdueMs]),
    );
  };
  const events = (ageMs: number) => ({ 'FROM feed_events': oldest(now - ageMs) });
  assert.deepEqual(await overdue(events(30 * dayMs)), {});
  assert.deepEqual(await overdue(events(30 * dayMs + 5)), { 'feed-retention': 5 });
  const attempts = { 'FROM webhook_attempts': oldest(now - 30 * dayMs - 9) };
  assert.deepEqual(await overdue(attempts), { 'webhook-retention': 9 });
  const deliveries = { 'SELECT occurred_at AS oldest FROM webhook_deliveries': oldest(now - 40 * dayMs) };
  const both = await overdue({ ...attempts, ...deliveries });
  assert.ok((both['webhook-retention'] ?? 0) > 8 * dayMs);
  assert.deepEqual(await overdue({ 'FROM unclaimed_reports': oldest(realNow - 400 * dayMs - 3) }), {
    'unclaimed-report-retention': 3,
  });
  assert.deepEqual(await overdue({ 'FROM bulk_cancels': oldest(now - 400 * dayMs - 4) }), {
    'bulk-cancel-retention': 4,
  });
  assert.deepEqual(await overdue({ 'SELECT expires_at AS oldest': oldest(now - 6) }), { 'proposal-expiry': 6 });
});
