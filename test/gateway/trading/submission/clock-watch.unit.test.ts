import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import type { ClockAgreement } from '../../../../src/gateway/trading/broker/clock.ts';
import { ClockWatch } from '../../../../src/gateway/trading/submission/clock-watch.ts';
import { createLogger } from '../../../../src/kit/log.ts';

const skewMs = 2_000;
/** A report from so long before its order was stored is evidence that the broker's clock is behind. */
const evidence = -(skewMs + 1_001);
const keptMs = 600_000;

describe('what this process knows of the clock of reports', () => {
  let now: number;
  let measured: ClockAgreement;
  let offsetMs: number;
  let rows: SqlRow[];
  let writes: number;
  let isAway: boolean;
  let watch: ClockWatch;

  beforeEach(() => {
    [now, measured, offsetMs, rows, writes, isAway] = [1_000_000, 'in_step', 0, [], 0, false];
    mock.method(performance, 'now', () => now);
    const database = {
      read: async () => (isAway ? assert.fail('the database is away') : rows),
      write: async (_: Statement) => {
        writes += 1;
        if (isAway) throw new Error('the database is away');
        return 1;
      },
    };
    const clock = {
      skewMs,
      get agreement() {
        return measured;
      },
    };
    const own = {
      get offsetMs() {
        return offsetMs;
      },
    };
    const broker = { id: firstBroker, clock, orders: { honoursNotAfter: async () => true } };
    watch = new ClockWatch(broker as never, database as never, own, createLogger({ name: 'test', level: 'silent' }));
  });

  afterEach(() => mock.restoreAll());

  /** The stored evidence of another replica, of which so much time is left. */
  const stored = (position: string, leftMs: number): SqlRow[] => [{ position, left_ms: leftMs }];

  it('evidence in a report counts for ten minutes from the last one on, to the millisecond', () => {
    watch.reported(evidence);
    // So soon after the first, it is not stored for others, and counts here all the same.
    now += 1;
    watch.reported(evidence);
    now += keptMs - 1;
    assert.equal(watch.known, 'apart');
    now += 1;
    assert.equal(watch.known, 'in_step');
    measured = 'unknown';
    assert.equal(watch.known, 'unknown', 'without evidence it is what the answers of the broker say');
  });

  it('a report is no evidence in a sandbox whose clock was moved, nor while the answers show the wrong clock themselves', () => {
    offsetMs = 1;
    watch.reported(evidence);
    offsetMs = 0;
    measured = 'apart';
    watch.reported(evidence);
    measured = 'in_step';
    assert.deepEqual([watch.known, writes], ['in_step', 0]);
  });

  it('evidence is stored for the other replicas at once, then every two seconds, also after it could not be', async () => {
    const writesAfter = async (ms: number) => {
      now += ms;
      watch.reported(evidence);
      await new Promise(setImmediate);
      return writes;
    };
    assert.deepEqual([await writesAfter(0), await writesAfter(1_999)], [1, 1]);
    isAway = true;
    assert.equal(await writesAfter(1), 2);
    isAway = false;
    assert.deepEqual([await writesAfter(1_999), await writesAfter(1)], [2, 3]);
    assert.equal(watch.known, 'apart');
  });

  it('evidence of another replica counts for what is left of it, however often it is read again', async () => {
    rows = stored('1', 10_000);
    assert.equal(await watch.agreement(), 'apart');
    now += 9_999;
    // By a clock of the database that was set back, more would be left.
    rows = stored('1', 500_000);
    assert.equal(await watch.agreement(), 'apart');
    now += 1;
    assert.equal(await watch.agreement(), 'in_step');
    rows = stored('2', 5_000_000);
    assert.equal(await watch.agreement(), 'apart');
    now += keptMs;
    assert.equal(watch.known, 'in_step', 'it counts for ten minutes at most');
    rows = stored('3', -1);
    assert.equal(await watch.agreement(), 'in_step');
  });

  it('older evidence of another replica does not shorten that of this one', async () => {
    watch.reported(evidence);
    rows = stored('1', 10);
    await watch.agreement();
    now += keptMs - 1;
    assert.equal(watch.known, 'apart');
  });

  it('nothing is decided by what this process knows while it cannot read what the others know', async () => {
    isAway = true;
    await assert.rejects(watch.agreement(), /the database is away/);
  });
});
