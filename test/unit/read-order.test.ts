import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SqlRow } from '../../src/db/statement.ts';
import { SystemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { EnvironmentState, ReadOrder } from '../../src/submission/environment.ts';

describe('reads that are under way at once', () => {
  it('are used as long as none that began later was', () => {
    const order = new ReadOrder();
    const [first, second, third] = [order.begin(), order.begin(), order.begin()];
    assert.deepEqual([second(), first(), third()], [true, false, true]);
  });

  it('of the environment: one that began before a pause and ends after it does not undo it', async () => {
    const reads: ((rows: SqlRow[]) => void)[] = [];
    const read = () => new Promise<SqlRow[]>((resolve) => reads.push(resolve));
    const state = new EnvironmentState({ read }, new SystemClock(), createLogger({ name: 'test', level: 'silent' }));
    const [poll, afterThePause] = [state.refresh(), state.refresh()];
    reads[1]?.([{ trading_paused_at: new Date(), clock_offset_ms: 5_000 }]);
    await afterThePause;
    assert.equal(state.paused, true);
    reads[0]?.([{ trading_paused_at: null, clock_offset_ms: 0 }]);
    await poll;
    assert.equal(state.paused, true);
  });
});
