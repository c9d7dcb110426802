/** How a run of a day goes on, waits and ends, over a broker and a database that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { RunLostError } from '../../../../src/gateway/operators/reconciliation/progress.ts';
import type { BreakKindName } from '../../../../src/gateway/operators/reconciliation/rules.ts';
import { Runner, retryMs } from '../../../../src/gateway/operators/reconciliation/runner.ts';
import {
  type RunNote,
  reconciliationBreaks,
  type StoredBreak,
  type StoredRun,
} from '../../../../src/gateway/operators/reconciliation/table.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { StatementError } from '../../../../src/gateway/trading/broker/statements.ts';
import { GetStatementResponseSchema } from '../../../../src/gen/marina/broker/v1/statements_pb.ts';
import { UnavailableError } from '../../../../src/kit/refusal.ts';
import { storedRow } from '../../../support/stored-row.ts';

const day = '2026-03-03';
/** Seven days after the day, at noon in Lagos: the last one on which it is tried again. */
const lastDay = Date.UTC(2026, 2, 10, 11);
const dayMs = 86_400_000;

const waiting: StoredRun = {
  ...{ day, number: 2, state: 'waiting', startedBy: null, startedAt: 0, endedAt: null, nextAt: 0, tries: 1 },
  ...{ problem: '', step: 'clear', position: '', periodFrom: null, periodTo: null },
  ...{ records: 7n, objects: 8n, breaks: 9n, tookMs: 0n },
};

const found: StoredBreak = {
  ...{ partnerId: '', id: '', day, kind: 'order_state', objectId: 'ord_1', account: 'A', symbol: '', ours: 'o' },
  ...{ brokers: 'b', isUnsettled: false, isOpen: true, run: 1, firstSeenAt: 0, lastSeenAt: 0, goneAt: null },
  ...{ acknowledgedBy: null, acknowledgedAt: null, acknowledgedReason: null },
};

function pageOf(isComplete: boolean) {
  return { answer: create(GetStatementResponseSchema, { isComplete }), fromMs: 1, toMs: 2, lastKey: '' };
}

/** A database with a run, the number of its day's records, its notes and its breaks. */
class Days {
  run: StoredRun;
  now = lastDay;
  items = 0;
  notes: RunNote[] = [];
  breaks: StoredBreak[] = [];
  isHeld = true;
  /** The error of a transaction, by the run that it would save. */
  refuses: (changes: Partial<StoredRun>) => Error | undefined = () => undefined;
  readonly saved: Partial<StoredRun>[] = [];
  readonly gone: string[] = [];
  readonly ended: [state: string, seconds: number][] = [];
  readonly lease = new AbortController();
  afterSave = () => {};
  page: () => unknown = () => pageOf(true);

  constructor(run: Partial<StoredRun> = {}) {
    this.run = { ...waiting, ...run };
  }

  #answer({ sql, values }: Statement): SqlRow[] {
    if (sql.includes("section = 'note'")) return this.notes.map((name) => ({ item_id: name }));
    if (sql.startsWith('SELECT 1 FROM reconciliation_items')) return this.items > 0 ? [{ 1: 1 }] : [];
    if (sql.startsWith('SELECT MIN(id)')) return [{ id: null }];
    if (sql.startsWith('SELECT fence')) return this.isHeld ? [{ fence: 1 }] : [];
    if (!sql.includes('FROM reconciliation_breaks')) return [];
    const isWanted = ({ id }: StoredBreak) =>
      sql.includes('id IN (?)') ? [values[0]].flat().includes(id) : id > String(values[1]);
    const most = Number(/LIMIT (\d+)/.exec(sql)?.[1] ?? 1e6);
    return this.breaks
      .filter(isWanted)
      .slice(0, most)
      .map((row) => storedRow(reconciliationBreaks, row));
  }

  #write({ sql, values }: Statement): void {
    if (sql.startsWith('DELETE FROM reconciliation_items')) this.items -= Number(/LIMIT (\d+)/.exec(sql)?.[1]);
    if (sql.startsWith('UPDATE reconciliation_breaks')) this.gone.push(String(values.at(-1)));
  }

  readonly database = {
    read: async (query: Statement) => this.#answer(query),
    readAll: async (queries: readonly Statement[]) => queries.map((query) => this.#answer(query)),
    transaction: async (reads: readonly Statement[], decide: (found: SqlRow[][]) => { writes: Statement[] }) => {
      const { writes } = decide(reads.map((query) => this.#answer(query)));
      const changes: Record<string, unknown> = {};
      for (const { sql, values } of writes.filter(({ sql }) => sql.startsWith('UPDATE reconciliation_runs'))) {
        const columns = (/ SET (.*) WHERE /.exec(sql)?.[1] ?? '').split(', ').map((set) => set.split(' ')[0] ?? '');
        for (const [at, column] of columns.entries()) {
          const value = values[at];
          const field = column.replace(/_./g, ([, letter = '']) => letter.toUpperCase());
          changes[field] = value instanceof Date ? value.getTime() : value;
        }
      }
      const refusal = this.refuses(changes as Partial<StoredRun>);
      if (refusal !== undefined) throw refusal;
      for (const write of writes) this.#write(write);
      this.saved.push(changes as Partial<StoredRun>);
      this.run = { ...this.run, ...changes };
      this.afterSave();
    },
  };

  /** Goes on with the run. Answers what the log said, with its level. */
  async goOn(): Promise<readonly (readonly [string, string])[]> {
    const lines: [string, string][] = [];
    const level = (name: string) => (_: object, text: string) => void lines.push([name, text]);
    const capabilities = async () => ({ withdrawalDestinations: [], accountTransactions: false });
    const runner = new Runner({
      ...{ database: this.database, clock: { now: () => this.now }, isShared: false, mostRecords: 1_000 },
      log: { debug: level('debug'), info: level('info'), warn: level('warn') },
      broker: { orders: { capabilities }, statements: { page: async () => this.page() } },
      reads: { readFor: (_: string, read: (time: object) => Promise<unknown>) => read({}) },
      ended: (state: string, seconds: number) => this.ended.push([state, seconds]),
    } as never);
    const lease = { name: 'reconciliation', fence: 1n, signal: this.lease.signal, isHeld: () => true };
    await runner.run(this.run, lease as never);
    return lines;
  }
}

/** Makes the broker's statement fail. */
function failing(error: Error, run: Partial<StoredRun> = {}): Days {
  const days = new Days(run);
  days.page = () => {
    days.items = 1_500;
    throw error;
  };
  return days;
}

const text = (state: string, nextAt: number | null) => `${state} ${nextAt === null ? 'never' : nextAt - lastDay}`;

describe('the end of a run', () => {
  it('a run of an empty day completes once, with what it did not compare, and nothing goes on with it', async () => {
    const days = new Days();
    days.items = 2_500;
    const lines = await days.goOn();
    const { state, step, nextAt, endedAt, tries, problem, records, objects, breaks } = days.run;
    assert.deepEqual([state, step, nextAt, endedAt, tries], ['complete', 'end', null, lastDay, 2]);
    assert.deepEqual([records, objects, breaks], [7n, 0n, 0n], 'one for each page of the statement');
    assert.equal(problem, '');
    assert.ok(days.items <= 0, 'its records are removed');
    assert.deepEqual(
      days.ended.map(([state]) => state),
      ['complete'],
    );
    assert.deepEqual(
      lines.map(([name]) => name),
      ['info'],
    );
  });

  it('a run begins with no figures of the try before, and counts its tries', async () => {
    const days = new Days({ position: 'p', step: 'objects', periodFrom: 1, periodTo: 2 });
    await days.goOn();
    assert.deepEqual(
      { ...days.saved[0] },
      {
        ...{ state: 'running', tries: 2, step: 'clear', position: '' },
        ...{ records: 0n, objects: 0n, breaks: 0n, periodFrom: null, periodTo: null },
      },
    );
  });

  it('a run that goes on from its beginning counts the records of the statement anew', async () => {
    const days = new Days({ state: 'running', records: 500n });
    await days.goOn();
    assert.deepEqual([days.run.records, days.run.tries], [7n, 1]);
  });

  it('a try that fails is made again in ten minutes, and one that the broker does not offer is the last', async () => {
    const verdicts: readonly (readonly [Error, state: string, problem: string])[] = [
      [new StatementError('not_offered', 'it offers none'), text('not_offered', null), 'it offers none'],
      [new StatementError('no_statement', 'none yet'), text('failed', lastDay + retryMs), 'none yet'],
      [new StatementError('nonsense', 'odd'), text('failed', lastDay + retryMs), 'odd'],
      [
        new Error('outside', { cause: new Error('the cause') }),
        text('failed', lastDay + retryMs),
        'the gateway could not compare it: the cause',
      ],
      [new TypeError('a defect'), text('failed', lastDay + retryMs), 'the gateway could not compare it: a defect'],
    ];
    for (const [error, end, problem] of verdicts) {
      const days = failing(error);
      await days.goOn();
      assert.deepEqual([text(days.run.state, days.run.nextAt), days.run.problem, days.run.step], [end, problem, 'end']);
      assert.ok(days.items <= 0, 'no record is left');
      assert.equal(days.ended.length, 1);
      const clearing = days.saved.findIndex(({ step }) => step === 'fetch');
      assert.ok(
        days.saved.slice(clearing).some(({ step }) => step === 'clear'),
        'a run that is killed while its records are removed begins again',
      );
    }
    const open = new Days();
    open.page = () => pageOf(false);
    await open.goOn();
    assert.equal(text(open.run.state, open.run.nextAt), text('incomplete', lastDay + retryMs));
  });

  it('a day is given up when a try fails more than seven days after it', async () => {
    const error = new StatementError('unavailable', 'away');
    const last = failing(error);
    await last.goOn();
    assert.equal(last.run.nextAt, lastDay + retryMs);
    const later = failing(error, { problem: 'away' });
    later.now += dayMs;
    const lines = await later.goOn();
    assert.deepEqual([later.run.state, later.run.nextAt], ['failed', null]);
    assert.deepEqual(
      lines.map(([name]) => name),
      ['warn'],
      'although the problem is known',
    );
  });

  it('a problem that stays is told once', async () => {
    const error = new StatementError('unavailable', 'away');
    const levels = async (days: Days) => (await days.goOn()).map(([name]) => name);
    assert.deepEqual(await levels(failing(error)), ['warn']);
    assert.deepEqual(await levels(failing(error, { problem: 'away' })), ['info']);
    assert.deepEqual(await levels(failing(error, { problem: 'another' })), ['warn']);
  });

  it('a run that the database refuses goes on where it is, a minute later, and is no end', async () => {
    for (const error of [
      new UnavailableError({ cause: new Error('gone away') }),
      new ApiError('exchange_unavailable'),
    ]) {
      const days = failing(error);
      await days.goOn();
      assert.deepEqual([days.run.state, days.run.step, days.run.nextAt], ['running', 'fetch', lastDay + 60_000]);
      assert.notEqual(days.run.problem, '');
      assert.deepEqual(days.ended, []);
      const { problem } = days.run;
      assert.deepEqual(await days.goOn(), [], 'the same problem is told once');
      days.now += dayMs;
      days.run = { ...days.run, problem: 'another' };
      await days.goOn();
      assert.equal(days.run.nextAt, days.now + 60_000, 'a day that is too old is tried once more');
      assert.equal(days.run.problem, problem);
      await days.goOn();
      assert.deepEqual([days.run.state, days.run.nextAt], ['failed', null], 'and then given up');
    }
  });

  it('an end that cannot be saved waits, and what cannot even wait throws the refusal', async () => {
    const days = new Days();
    const refusal = new UnavailableError({ cause: new Error('full') });
    days.refuses = ({ state }) => (state === 'complete' ? refusal : undefined);
    await days.goOn();
    assert.deepEqual([days.run.state, days.run.nextAt, days.ended.length], ['running', lastDay + 60_000, 0]);
    const failed = failing(new StatementError('unavailable', 'away'));
    failed.refuses = ({ state }) => (state === 'failed' ? refusal : undefined);
    await failed.goOn();
    assert.deepEqual([failed.run.state, failed.run.nextAt, failed.ended.length], ['running', lastDay + 60_000, 0]);
    const away = new Days();
    away.refuses = () => refusal;
    await assert.rejects(away.goOn(), refusal);
    const defect = failing(new StatementError('unavailable', 'away'));
    const other = new Error('a defect');
    defect.refuses = ({ state }) => (state === 'failed' ? other : undefined);
    await assert.rejects(defect.goOn(), other);
  });

  it('a run whose lease is lost saves nothing more, and a stopped one is left as it is', async () => {
    const lost = new Days();
    lost.isHeld = false;
    await assert.rejects(lost.goOn(), RunLostError);
    assert.deepEqual(lost.saved, []);
    const stopped = failing(new StatementError('unavailable', 'away'));
    stopped.page = () => {
      stopped.lease.abort();
      throw new StatementError('unavailable', 'away');
    };
    await stopped.goOn();
    assert.deepEqual([stopped.run.state, stopped.run.step, stopped.ended], ['running', 'fetch', []]);
    const working = new Days();
    working.afterSave = () => working.run.step === 'statement' && working.lease.abort();
    await working.goOn();
    const { step, nextAt } = working.run;
    assert.deepEqual([step, nextAt, working.saved.at(-1)?.step], ['statement', waiting.nextAt, 'statement']);
    const atEnd = new Days();
    atEnd.afterSave = () => atEnd.run.step === 'end' && atEnd.lease.abort();
    await atEnd.goOn();
    assert.deepEqual([atEnd.run.state, atEnd.ended], ['running', []], 'the next start ends it');
  });

  it('a run whose turn is over lets the others go before it, and goes on where it was', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const days = new Days({ state: 'running', problem: 'the database was away', step: 'fetch', nextAt: 5 });
    days.afterSave = () => {
      if (days.run.step === 'statement') t.mock.timers.tick(60_000);
    };
    await days.goOn();
    const { state, step, nextAt, problem } = days.run;
    assert.deepEqual([state, step, nextAt, problem], ['running', 'statement', lastDay, '']);
    days.afterSave = () => {};
    await days.goOn();
    assert.deepEqual([days.run.state, days.run.tries], ['complete', 1]);
  });

  it('a day without the statement of the day before says that positions and money were not compared', async () => {
    const days = new Days();
    let pages = 0;
    days.page = () => {
      pages += 1;
      return pageOf(pages <= 5);
    };
    days.notes = ['withdrawals_left_out', 'transactions_not_offered'];
    const lines = await days.goOn();
    assert.equal(
      days.run.problem,
      'positions and money were not compared: the broker has no complete statement of the day before; ' +
        'withdrawals were not compared: the broker takes none; ' +
        'transactions were not compared: the broker does not offer them',
    );
    assert.deepEqual(
      days.saved.flatMap(({ step }) => step ?? []),
      [
        ...['fetch', 'without_before', 'objects_without_before', 'accounts_without_before'],
        ...['gone_without_before', 'end_without_before', 'end'],
      ],
    );
    assert.ok(!/ day agrees/.test(lines[0]?.[1] ?? ''), 'it does not say that the whole day agrees');
  });
});

describe('the breaks of a day that a run did not find', () => {
  const kinds = ['order_state', 'position', 'cash', 'withdrawal_extra', 'transaction_sum'] as const;
  const breakOf = (kind: BreakKindName, id: string, more: Partial<StoredBreak> = {}) => ({
    ...found,
    id,
    kind,
    ...more,
  });

  /** Runs the step. Answers the kinds of the breaks that are gone then. */
  async function goneOf(step: 'gone' | 'gone_without_before', ...notes: readonly RunNote[]): Promise<string[]> {
    const days = new Days({ state: 'running', step, breaks: 0n });
    days.notes = [...notes];
    days.breaks = kinds.map((kind) => breakOf(kind, kind));
    await days.goOn();
    assert.equal(days.run.state, 'complete');
    return days.gone;
  }

  it('the breaks of a day that a run did not find are gone, as far as the run compared their kind', async () => {
    assert.deepEqual(await goneOf('gone'), ['order_state', 'position', 'cash']);
    assert.deepEqual(await goneOf('gone_without_before'), ['order_state']);
    assert.deepEqual(await goneOf('gone', 'withdrawals_left_out', 'transactions_not_offered'), kinds.slice(0, 3));
    assert.deepEqual(await goneOf('gone', 'withdrawals_read'), kinds.slice(0, 4));
    assert.deepEqual(await goneOf('gone_without_before', 'transactions_read'), ['order_state', 'transaction_sum']);
    assert.deepEqual(await goneOf('gone', 'withdrawals_read', 'transactions_read'), [...kinds]);
  });

  it('the breaks of a day that a run did not find stay as they are if they were gone before, and those that it found are counted once each, page after page', async () => {
    const days = new Days({ state: 'running', step: 'gone', breaks: 0n });
    const id = (at: number) => `brk_${String(at).padStart(3, '0')}`;
    days.breaks = Array.from({ length: 250 }, (_, at) =>
      breakOf('order_state', id(at), at % 5 === 0 ? { run: 2 } : at % 5 === 1 ? { goneAt: 3 } : {}),
    );
    const lines = await days.goOn();
    assert.equal(days.run.breaks, 50n);
    assert.deepEqual(
      days.gone,
      days.breaks.filter(({ run, goneAt }) => run === 1 && goneAt === null).map((one) => one.id),
    );
    assert.deepEqual(
      lines.map(([name]) => name),
      ['warn'],
      'a day that differs is told loudly',
    );
  });
});
