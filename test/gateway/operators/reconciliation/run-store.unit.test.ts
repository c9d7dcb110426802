/** When a day gets another run, and when the one that it has goes on. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type RunStart, startRun } from '../../../../src/gateway/operators/reconciliation/run-store.ts';
import { reconciliationRuns, type StoredRun } from '../../../../src/gateway/operators/reconciliation/table.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { statement } from '../../../../src/gateway/store/statement.ts';
import { storedRow } from '../../../support/stored-row.ts';

const day = '2026-03-03';
const now = 1_000_000;

const ended: StoredRun = {
  ...{ day, number: 3, state: 'complete', startedBy: 'ada', startedAt: 1, endedAt: 2, nextAt: null, tries: 2 },
  ...{ problem: 'p', step: 'end', position: 'x', periodFrom: 1, periodTo: 2 },
  ...{ records: 7n, objects: 8n, breaks: 9n, tookMs: 4n },
};

/** Starts a run after another one. Answers the run, and what is written: the audit's entry, and the run's statement. */
async function start(before: StoredRun | undefined, how: Partial<RunStart> = {}) {
  let written: readonly Statement[] = [];
  const transaction = async (reads: readonly Statement[], decide: (found: SqlRow[][]) => { writes: Statement[] }) => {
    assert.match(reads[0]?.sql ?? '', /ORDER BY number DESC LIMIT 1 FOR UPDATE$/);
    const decision = decide([before === undefined ? [] : [storedRow(reconciliationRuns, before)]]);
    written = decision.writes;
    return (decision as unknown as { result: StoredRun | undefined }).result;
  };
  const started = { startedBy: 'bola', now, ...how };
  const run = await startRun({ transaction } as never, { day }, started, [statement('AUDIT')]);
  return { run, written: written.map(({ sql }) => sql.split(' ')[0]), values: written.at(-1)?.values ?? [] };
}

it('a day gets a first run, and one more when the last one ended for good, each with nothing of another', async () => {
  for (const [before, number] of [
    [undefined, 1],
    [ended, 4],
    [{ ...ended, state: 'not_offered' } as const, 4],
    [{ ...ended, state: 'failed' } as const, 4],
  ] as const) {
    const { run, written } = await start(before);
    assert.deepEqual(run, {
      ...{ day, number, state: 'waiting', startedBy: 'bola', startedAt: now, endedAt: null, nextAt: now, tries: 0 },
      ...{ problem: '', step: 'clear', position: '', periodFrom: null, periodTo: null },
      ...{ records: 0n, objects: 0n, breaks: 0n, tookMs: 0n },
    });
    assert.deepEqual(written, ['AUDIT', 'INSERT']);
  }
});

it('a run that waits or works goes on, and at once if it would wait longer', async () => {
  for (const [nextAt, next] of [
    [now + 600_000, now],
    [now, now],
    [now - 5, now - 5],
  ] as const) {
    for (const state of ['waiting', 'running', 'failed', 'incomplete'] as const) {
      const before = { ...ended, state, nextAt };
      const { run, written } = await start(before);
      assert.deepEqual(run, { ...before, nextAt: next });
      assert.deepEqual(written, nextAt > now ? ['AUDIT', 'UPDATE'] : ['AUDIT']);
    }
  }
});

it('the first run of a day is started only if the day has none, and nothing is written otherwise', async () => {
  for (const before of [ended, { ...ended, state: 'running', nextAt: now } as const]) {
    const { run, written } = await start(before, { startedBy: null, onlyFirst: true });
    assert.deepEqual([run, written], [undefined, []]);
  }
  const { run } = await start(undefined, { startedBy: null, onlyFirst: true });
  assert.deepEqual([run?.number, run?.startedBy], [1, null]);
});
