/** The session as operators want it, over a row that the test keeps. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { SessionControl } from '../../../src/fix-adapter/operations/control.ts';
import { fixSession, type SessionRow } from '../../../src/fix-adapter/operations/table.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { Statement } from '../../../src/gateway/store/statement.ts';
import { storedRow } from '../../support/stored-row.ts';

function begin(more: Partial<SessionRow> = {}) {
  const row: SessionRow = {
    ...{ id: 1n, wish: 'on', request: 4n, fence: 1n, obeyed: 4n, state: 'up', since: 0, reason: '' },
    ...more,
  };
  const state = { isAway: false, isMissing: false, failsWrites: false };
  const written: Statement[] = [];
  const database: Partial<Database> = {
    read: async () => {
      if (state.isAway) throw new Error('the database is away');
      return state.isMissing ? [] : [storedRow(fixSession, row)];
    },
    write: async (statement) => {
      if (state.failsWrites) throw new Error('the database is away');
      written.push(statement);
      return 1 as never;
    },
  };
  const session = { runs: 0, running: 0, resumes: 0, says: { state: 'up', reason: '' }, holds: () => {} };
  let letGo: (() => void) | undefined;
  const control = new SessionControl({
    database: database as Database,
    fence: 9n,
    session: {
      run: async (signal) => {
        session.runs += 1;
        session.running += 1;
        if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        if (letGo === undefined && held)
          await new Promise<void>((resolve) => {
            letGo = resolve;
          });
        session.running -= 1;
      },
      status: () => session.says,
      resume: () => {
        session.resumes += 1;
      },
    },
    show: (text) => text.replaceAll('Ada', '*'),
    now: () => 5_000,
    log: { warn() {}, debug() {} } as never,
  });
  let held = false;
  const stopping = new AbortController();
  /** Looks once at the wish and writes once what became of it. */
  const look = async (): Promise<readonly unknown[][]> => {
    const once = new AbortController();
    const looking = control.worker.run(once.signal);
    for (let turns = 0; turns < 6; turns += 1) await turn();
    once.abort();
    await looking;
    return written.splice(0).map(({ values }) => [...values]);
  };
  return {
    ...{ control, row, state, session, stopping, look, written },
    hold: () => {
      held = true;
    },
    release: () => {
      held = false;
      letGo?.();
    },
    wish: (wish: SessionRow['wish']) => Object.assign(row, { wish, request: row.request + 1n }),
  };
}

const time = new Date(5_000);

describe('the control of the session', () => {
  it('the control of the session does not begin while nobody knows what operators want', async () => {
    const { control, state } = begin();
    state.isAway = true;
    await assert.rejects(control.open());
    Object.assign(state, { isAway: false, isMissing: true });
    await assert.rejects(control.open(), /migrate it first/);
    state.isMissing = false;
    await control.open();
    assert.equal(control.isLoggedOut, false);
  });

  it('the control of the session writes the state under its fence, once, and with a time only where it changes', async () => {
    const { control, session, look } = begin();
    await control.open();
    assert.deepEqual(await look(), [[9n, 4n, 'up', '', time, 9n]]);
    assert.deepEqual(await look(), []);
    session.says = { state: 'waiting', reason: 'Ada says no' };
    assert.deepEqual(await look(), [[9n, 4n, 'waiting', '* says no', time, 9n]]);
    session.says = { state: 'waiting', reason: 'r'.repeat(501) };
    assert.deepEqual(await look(), [[9n, 4n, 'waiting', 'r'.repeat(500), 9n]]);
    assert.deepEqual(await look(), []);
  });

  it('the control of the session writes what could not be written, with the time of its change', async () => {
    const { control, session, state, look } = begin();
    await control.open();
    await look();
    session.says = { state: 'waiting', reason: 'no' };
    state.failsWrites = true;
    assert.deepEqual(await look(), []);
    state.failsWrites = false;
    assert.deepEqual(await look(), [[9n, 4n, 'waiting', 'no', time, 9n]]);
  });

  it('the control of the session ends the session when operators want it, and has obeyed when it has ended', async () => {
    const { control, session, stopping, look, wish, hold, release } = begin();
    await control.open();
    hold();
    const running = control.run(stopping.signal);
    await look();
    wish('out');
    assert.deepEqual(await look(), [[9n, 4n, 'logging_out', 'an operator logs it out', time, 9n]]);
    assert.deepEqual([control.isLoggedOut, session.running], [true, 1]);
    release();
    while (session.running > 0) await turn();
    assert.deepEqual(await look(), [[9n, 5n, 'logged_out', 'an operator has logged it out', time, 9n]]);
    assert.deepEqual([session.runs, session.resumes], [1, 0]);
    stopping.abort();
    await running;
  });

  it('the control of the session begins the session again when operators want that, as often as they do', async () => {
    const { control, session, stopping, look, wish } = begin();
    await control.open();
    const running = control.run(stopping.signal);
    for (const round of [1, 2, 3]) {
      wish('out');
      await look();
      while (session.running > 0) await turn();
      assert.equal((await look()).at(-1)?.[2] ?? 'logged_out', 'logged_out');
      wish('on');
      const [report] = await look();
      assert.deepEqual(report?.slice(1, 3), [4n + 2n * BigInt(round), 'up']);
      for (let turns = 0; turns < 6; turns += 1) await turn();
      assert.equal(session.running, 1, 'at once');
      assert.deepEqual([session.runs, session.resumes, control.isLoggedOut], [1 + round, round, false]);
    }
    stopping.abort();
    await running;
  });

  it('the control of the session goes on at once at every wish to be on, and not for the one that it began with', async () => {
    const { control, session, look, wish } = begin();
    await control.open();
    await look();
    assert.equal(session.resumes, 0);
    wish('on');
    assert.deepEqual(await look(), [[9n, 5n, 'up', '', 9n]]);
    wish('on');
    await look();
    assert.equal(session.resumes, 2);
  });

  it('the control of the session begins no session where operators wanted it out before, and says so', async () => {
    const { control, session, stopping, look } = begin({ wish: 'out', obeyed: 3n });
    await control.open();
    const running = control.run(stopping.signal);
    assert.deepEqual(await look(), [[9n, 4n, 'logged_out', 'an operator has logged it out', time, 9n]]);
    assert.equal(session.runs, 0);
    stopping.abort();
    await running;
  });

  it('the control of the session keeps the session as it is while the wish cannot be read', async () => {
    const { control, session, stopping, state, look, wish } = begin();
    await control.open();
    const running = control.run(stopping.signal);
    wish('out');
    state.isAway = true;
    assert.deepEqual(await look(), []);
    assert.deepEqual([session.running, control.isLoggedOut], [1, false]);
    state.isAway = false;
    await look();
    assert.equal(control.isLoggedOut, true);
    stopping.abort();
    await running;
  });
});
