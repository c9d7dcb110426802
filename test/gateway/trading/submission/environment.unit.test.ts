import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { EnvironmentState, inForceFact, refusalBy } from '../../../../src/gateway/trading/submission/environment.ts';
import { indexesOf, readDays } from '../../../../src/gateway/trading/submission/list.ts';
import { SystemClock } from '../../../../src/kit/clock.ts';
import { eventually } from '../../../support/eventually.ts';

const endsAt = Date.UTC(2026, 2, 2, 12);
const stop = { id: 'stp_1', target: 'account', value: 'A1', actions: 'buy,fund', ends_at: new Date(endsAt) };
const affected = { action: 'buy', partnerId: 'par_a', account: 'A1', symbol: 'S' } as const;

/** An environment that reads these rows, and what it logs. */
function open(rows: readonly SqlRow[] | Error) {
  const state = { rows, reads: 0 };
  const logged: string[] = [];
  const log = {
    info: (text: string) => void logged.push(text),
    warn: (_: object, text: string) => void logged.push(text),
  };
  const read = async () => {
    state.reads += 1;
    if (state.rows instanceof Error) throw state.rows;
    return [...state.rows];
  };
  const clock = Object.assign(new SystemClock(), { now: () => endsAt - 1 });
  return { state, logged, clock, environment: new EnvironmentState({ read }, clock, log as never) };
}

const row = (isPaused: boolean, more: object = { id: null }, offsetMs = 0): SqlRow => ({
  ...{ trading_paused_at: isPaused ? new Date(0) : null, stops_version: 3, clock_offset_ms: offsetMs },
  ...more,
});

describe('what operators have paused and stopped', () => {
  it('a pause comes before a stop, and a stop holds for its account, its actions and its time', async () => {
    const { environment, state, clock } = open([row(false, stop), row(false, { ...stop, id: 'stp_2', value: 'A2' })]);
    assert.equal(environment.obstacleTo(affected), undefined, 'nothing is known yet');
    await environment.refresh();
    assert.deepEqual([environment.paused, environment.stopsVersion, environment.stops.length], [false, 3n, 2]);
    assert.match(environment.obstacleTo(affected)?.evidence ?? '', /the stop stp_1 began/);
    for (const other of [{ action: 'sell' }, { account: 'A3' }, { account: undefined }] as const) {
      assert.equal(environment.obstacleTo({ ...affected, ...other } as never), undefined, JSON.stringify(other));
    }
    clock.now = () => endsAt;
    assert.equal(environment.obstacleTo(affected), undefined, 'its time is over');
    state.rows = [row(true, stop)];
    await environment.refresh();
    assert.match(environment.obstacleTo({ ...affected, action: 'sell' })?.evidence ?? '', /trading was paused/);
    state.rows = [];
    await environment.refresh();
    assert.equal(environment.paused, true, 'a database without the row ends no pause');
  });

  it('the clock of the environment goes forwards only', async () => {
    const { environment, state, clock } = open([row(false, undefined, 5_000)]);
    await environment.refresh();
    state.rows = [row(false, undefined, 4_000)];
    await environment.refresh();
    assert.equal(clock.offsetMs, 5_000);
  });

  it('a pause in a transaction is what its row says, and a database without the row counts as paused', () => {
    const { value, expected } = inForceFact({ stops: [], stopsVersion: 4n });
    const paused = (rows: readonly SqlRow[]) => value([[...rows], []]).paused;
    assert.deepEqual(
      [paused([{ trading_paused_at: null }]), paused([{ trading_paused_at: new Date() }])],
      [false, true],
    );
    assert.equal(paused([]), true);
    assert.deepEqual(value([[{ trading_paused_at: null }], [stop as SqlRow]]).stops[0]?.id, 'stp_1');
    assert.deepEqual(expected?.guards[0]?.values, [4n], 'an expected fact is one of the stops that this process knows');
    assert.match(expected?.guards[0]?.sql ?? '', /trading_paused_at IS NULL AND stops_version = \?/);
  });

  it('a partner is told of a pause, or which of his requests are stopped and what still works', () => {
    const open = [{ ...stop, target: 'account', endsAt } as const];
    assert.equal(refusalBy({ paused: true, stops: [] }, affected, endsAt)?.code, 'trading_paused');
    const stopped = refusalBy({ paused: false, stops: open }, affected, endsAt - 1);
    assert.match(stopped?.message ?? '', /^Orders to buy of this account are stopped/);
    assert.equal(refusalBy({ paused: false, stops: open }, affected, endsAt), undefined);
  });

  it('an environment that cannot be read is named once, and once again when it can', async () => {
    const { environment, state, logged } = open(new Error('the database is away'));
    const stopping = new AbortController();
    const running = environment.worker.run(stopping.signal);
    const readAgain = async () => {
      const { reads } = state;
      environment.wakeup.wake();
      await eventually(() => assert.ok(state.reads > reads));
      await new Promise(setImmediate);
    };
    await readAgain();
    await readAgain();
    assert.deepEqual(logged, ['the environment cannot be read, and is tried again until it can']);
    state.rows = [row(false)];
    await readAgain();
    await readAgain();
    assert.deepEqual(logged.slice(1), ['the environment is read again']);
    stopping.abort();
    await running;
  });
});

describe('the lists of a partner', () => {
  it('a list by changes looks through the days from the first with an object to the last one, or to the day asked for', async () => {
    const days = (first: string | null, last: string | null, until: string) =>
      readDays({ read: async () => [{ first, last }] }, 'orders', 'par_a', until);
    assert.deepEqual(await days('2026-02-27', '2026-03-01', '2026-03-05'), ['2026-02-27', '2026-02-28', '2026-03-01']);
    assert.deepEqual(await days('2026-02-27', '2026-03-01', '2026-02-28'), ['2026-02-27', '2026-02-28']);
    assert.deepEqual(await days('2026-03-01', '2026-03-01', '2026-03-01'), ['2026-03-01']);
    assert.deepEqual(await days('2026-03-02', '2026-03-02', '2026-03-01'), []);
    assert.deepEqual(await days(null, null, '2026-03-01'), []);
    assert.deepEqual(await readDays({ read: async () => [] }, 'orders', 'par_a', '2026-03-01'), []);
  });

  it('a list is read by the indexes that have its values in the order of the ids, and the most of them', () => {
    const indexes = {
      by_id: ['partnerId', 'id'],
      by_state: ['partnerId', 'state', 'id'],
      by_symbol: ['partnerId', 'symbol', 'id'],
      by_both: ['partnerId', 'symbol', 'state', 'id'],
      by_change: ['partnerId', 'state', 'updatedAt'],
    };
    for (const [fields, expected] of [
      [['partnerId'], 'by_id'],
      [['partnerId', 'state'], 'by_state'],
      [['partnerId', 'account'], 'by_id'],
      [['partnerId', 'symbol', 'state'], 'by_both'],
      [['keyId'], 'PRIMARY'],
    ] as const) {
      const equal = Object.fromEntries(fields.map((field) => [field, 'x']));
      assert.equal(indexesOf(indexes, equal), expected, fields.join());
    }
    const { by_both: _, ...fewer } = indexes;
    assert.equal(indexesOf(fewer, { partnerId: 'x', symbol: 'x', state: 'x' }), 'by_state, by_symbol');
  });
});
