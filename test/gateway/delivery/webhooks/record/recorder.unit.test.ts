import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MadeAttempt } from '../../../../../src/gateway/delivery/webhooks/attempt/attempts.ts';
import { AttemptRecorder, recordAttempts } from '../../../../../src/gateway/delivery/webhooks/record/recorder.ts';
import { deliveries, endpoints } from '../../../../../src/gateway/delivery/webhooks/table.ts';
import type { Database } from '../../../../../src/gateway/store/database.ts';
import type { Decision, SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import type { Logger } from '../../../../../src/kit/log.ts';
import { eventually } from '../../../../support/eventually.ts';
import { anyRow, storedRow } from '../../../../support/stored-row.ts';
import { endpoint } from '../../../../support/webhook-rows.ts';

/** A healthy endpoint's row, as the database has it. */
const row = storedRow(endpoints, endpoint());

function attempt(version: number): MadeAttempt {
  const made = { partnerId: 'par_1', version: BigInt(version), number: 1, at: 0, isProbe: false };
  const answer = { outcome: 'delivered', status: 200, errorClass: null, durationMs: 1 } as const;
  return { ...made, ...answer, fence: 1n, generation: 1, round: 0 };
}

/** A recorder of a database that fails as often as it is told to. */
function startRecorder() {
  const state = { failures: 0, tries: 0, meanwhile: () => {} };
  const warned: number[] = [];
  const recorded: number[][] = [];
  const database = {
    async transaction(statements: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<unknown>) {
      state.tries += 1;
      state.meanwhile();
      if (state.failures > 0) {
        state.failures -= 1;
        throw new Error('the database is away');
      }
      const inserted = ((statements.at(-1)?.values[0] ?? []) as readonly unknown[]).length;
      return decide([[row], [], [{ saved: inserted }]]).result;
    },
  };
  const log = { warn: ({ count }: { count: number }) => void warned.push(count) };
  const options = { database, clock: { now: () => 0, realNow: () => 0 }, log };
  const recorder = new AttemptRecorder(
    options as unknown as { database: Database; clock: { now(): number; realNow(): number }; log: Logger },
    (attempts, rows) => {
      assert.deepEqual([...rows.keys()], ['par_1']);
      recorded.push(attempts.map(({ version }) => Number(version)));
    },
  );
  const stop = new AbortController();
  return { recorder, state, warned, recorded, stop, running: recorder.run(stop.signal) };
}

describe('the recorder of attempts', { timeout: 20_000 }, () => {
  it('attempts are recorded once each and in their order, however often the database fails in between', async () => {
    const { recorder, state, warned, recorded, stop, running } = startRecorder();
    for (const round of [0, 10]) {
      state.failures = 2;
      for (const version of [1, 2]) recorder.add(attempt(round + version));
      await eventually(() => assert.ok(state.failures < 2));
      recorder.add(attempt(round + 3));
      await eventually(() => assert.equal(recorded.flat().length, round === 0 ? 3 : 6));
    }
    assert.deepEqual(recorded.flat(), [1, 2, 3, 11, 12, 13]);
    assert.equal(warned.length, 4);
    stop.abort();
    await running;
  });

  it('attempts whose record fails stay before those that end meanwhile', async () => {
    const { recorder, state, recorded, stop, running } = startRecorder();
    state.failures = 3;
    state.meanwhile = () => {
      if (state.failures > 0) recorder.add(attempt(10 - state.failures));
    };
    for (const version of [1, 2]) recorder.add(attempt(version));
    await eventually(() => assert.equal(recorded.flat().length, 5));
    assert.deepEqual(recorded.flat(), [1, 2, 7, 8, 9]);
    stop.abort();
    await running;
  });

  it('the recorder puts at most 500 attempts into a transaction, and the rest into the next one', async () => {
    const { recorder, recorded, stop, running } = startRecorder();
    for (let version = 1; version <= 1_001; version += 1) recorder.add(attempt(version));
    await eventually(() =>
      assert.deepEqual(
        recorded.map(({ length }) => length),
        [500, 500, 1],
      ),
    );
    assert.deepEqual(
      recorded.flat(),
      Array.from({ length: 1_001 }, (_, at) => at + 1),
    );
    stop.abort();
    await running;
  });

  it('a stop records what waits, and tries that once if the database is away', async () => {
    for (const [failures, tries] of [
      [0, [1, 2]],
      [9, []],
    ] as const) {
      const { recorder, state, recorded, stop, running } = startRecorder();
      state.failures = failures;
      stop.abort();
      for (const version of [1, 2]) recorder.add(attempt(version));
      await running;
      assert.deepEqual([recorded.flat(), state.tries], [tries, 1]);
    }
  });

  it('an attempt that fails after an operator asked for its event again changes nothing of when that is sent', async () => {
    for (const [round, isPutOff] of [
      [0, true],
      [1, false],
    ] as const) {
      const stored = anyRow(deliveries, { partnerId: 'par_1', version: 1n, state: 'waiting', round, tries: 0 });
      let written: readonly Statement[] = [];
      const database = {
        async transaction(_reads: readonly Statement[], decide: (rows: SqlRow[][]) => Decision<unknown>) {
          const { writes, result } = decide([[row], [stored]]);
          written = writes;
          return result;
        },
      };
      const failed = { ...attempt(1), outcome: 'endpoint-failed', status: 500 } as const;
      await recordAttempts(database as unknown as Database, [failed], 0);
      const [progress] = written.filter(({ sql }) => sql.includes('UPDATE webhook_deliveries'));
      assert.match(progress?.sql ?? '', /tries = tries \+ 1/, 'it is counted in each case');
      assert.equal(/due_at/.test(progress?.sql ?? ''), isPutOff, `round ${round}`);
    }
  });
});
