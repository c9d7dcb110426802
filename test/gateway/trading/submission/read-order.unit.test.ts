import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { EnvironmentState } from '../../../../src/gateway/trading/submission/environment.ts';
import { SystemClock } from '../../../../src/kit/clock.ts';
import { createLogger } from '../../../../src/kit/log.ts';

/** An environment whose reads end when the test says so, each with whether trading is paused. */
function environment() {
  const reads: ((rows: SqlRow[]) => void)[] = [];
  const read = () => new Promise<SqlRow[]>((resolve) => reads.push(resolve));
  const state = new EnvironmentState({ read }, new SystemClock(), createLogger({ name: 'test', level: 'silent' }));
  const answer = (index: number, isPaused: boolean) =>
    reads[index]?.([
      { trading_paused_at: isPaused ? new Date() : null, id: null, stops_version: 0, clock_offset_ms: 0 },
    ]);
  return { state, answer };
}

describe('reads of the environment that are under way at once', () => {
  it('are used as long as none that began later was', async () => {
    const { state, answer } = environment();
    const [first, second, third] = [state.refresh(), state.refresh(), state.refresh()];
    answer(1, true);
    await second;
    assert.equal(state.paused, true);
    answer(0, false);
    await first;
    assert.equal(state.paused, true, 'the first began before the second');
    answer(2, false);
    await third;
    assert.equal(state.paused, false);
  });

  it('a read that began before a pause and ends after it does not undo it', async () => {
    const { state, answer } = environment();
    const [poll, afterThePause] = [state.refresh(), state.refresh()];
    answer(1, true);
    await afterThePause;
    assert.equal(state.paused, true);
    answer(0, false);
    await poll;
    assert.equal(state.paused, true);
  });
});
