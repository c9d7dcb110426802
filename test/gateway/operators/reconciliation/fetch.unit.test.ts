import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { create } from '@bufbuild/protobuf';
import {
  fetchStatement,
  IncompleteDayError,
  type StatementsBroker,
} from '../../../../src/gateway/operators/reconciliation/fetch.ts';
import type { RunProgress } from '../../../../src/gateway/operators/reconciliation/progress.ts';
import type { StoredRun } from '../../../../src/gateway/operators/reconciliation/table.ts';
import type { Statement } from '../../../../src/gateway/store/statement.ts';
import { StatementError, type StatementPlace } from '../../../../src/gateway/trading/broker/statements.ts';
import { GetStatementResponseSchema, StatementSection } from '../../../../src/gen/marina/broker/v1/statements_pb.ts';
import { WithdrawalDestination } from '../../../../src/gen/marina/broker/v1/withdrawals_pb.ts';

/** A broker whose statement has some pages of each section, with one order on each page of orders. */
class Broker {
  readonly asked: string[] = [];
  pagesOf = 2;
  takesWithdrawals = true;
  /** How often it was asked what it can do. */
  questions = 0;
  /** The answer to a page that is not as usual, by its section and day. */
  odd: (place: string) => 'incomplete' | 'other period' | Error | undefined = () => undefined;

  readonly orders: StatementsBroker['orders'] = {
    capabilities: async () => {
      this.questions += 1;
      const withdrawalDestinations = this.takesWithdrawals ? [WithdrawalDestination.WALLET] : [];
      return { withdrawalDestinations } as never;
    },
  };

  readonly statements = {
    page: async ({ day, section, cursor, afterKey }: StatementPlace) => {
      const place = `${StatementSection[section]} ${day.slice(8)}`;
      const number = cursor === '' ? 1 : Number(cursor);
      assert.equal(afterKey, cursor === '' ? '' : `key ${number - 1}`, place);
      this.asked.push(`${place} ${number}`);
      const odd = this.odd(place);
      if (odd instanceof Error) throw odd;
      const isComplete = odd !== 'incomplete';
      const nextCursor = number < this.pagesOf ? String(number + 1) : '';
      const orders = section === StatementSection.ORDERS ? [{ clientOrderId: `ord_${number}` }] : [];
      const answer = create(GetStatementResponseSchema, { isComplete, nextCursor, orders });
      const isLater = odd === 'other period' && number > 1;
      return {
        answer,
        fromMs: day === '2026-03-03' ? 2_000 : 1_000,
        toMs: isLater ? 4_000 : 3_000,
        lastKey: `key ${number}`,
      };
    },
  };
}

/** A run of which each save is noted, and that is interrupted after so many of them. */
function runOf(position = '', endsAfter = Number.POSITIVE_INFINITY) {
  const saved: { position: string; notes: boolean }[] = [];
  const progress = {
    run: { day: '2026-03-03', position, records: 0n, periodFrom: null, periodTo: null } as unknown as StoredRun,
    get isInterrupted() {
      return saved.length >= endsAfter;
    },
    async save(changes: Partial<StoredRun>, writes: readonly Statement[]) {
      progress.run = { ...progress.run, ...changes };
      const notes = writes.some(({ values }) => values.flat(2).includes('withdrawals_read'));
      saved.push({ position: progress.run.position, notes });
    },
  };
  return { progress: progress as unknown as RunProgress, saved };
}

const sections = ['ORDERS 03', 'TRADES 03', 'ALLOCATIONS 03', 'POSITIONS 03', 'CASH 03'];
const before = ['POSITIONS 02', 'CASH 02'];
const pagesOf = (...places: readonly string[]) => places.flatMap((place) => [`${place} 1`, `${place} 2`]);
const all = pagesOf(...sections, 'WITHDRAWALS 03', ...before);

describe('the statement of a day', () => {
  it('a statement is read part by part and page by page, and a run that died goes on after each page', async () => {
    const whole = new Broker();
    const { progress, saved } = runOf();
    assert.equal(await fetchStatement(progress, whole, 100), true);
    assert.deepEqual([whole.asked, whole.questions], [all, 1]);
    assert.deepEqual(
      saved.flatMap(({ notes }, at) => (notes ? [all[at]] : [])),
      ['WITHDRAWALS 03 2'],
    );
    for (const [at, { position }] of saved.entries()) {
      const broker = new Broker();
      const stopped = runOf('', at + 1);
      assert.equal(await fetchStatement(stopped.progress, broker, 100), undefined, 'interrupted');
      assert.equal(stopped.saved.at(-1)?.position, position);
      assert.equal(await fetchStatement(runOf(position).progress, broker, 100), true);
      assert.deepEqual(broker.asked, all, all[at]);
    }
  });

  it('withdrawals are left out of a statement while the broker takes none, and of a position of an earlier version', async () => {
    const broker = new Broker();
    broker.takesWithdrawals = false;
    const { progress, saved } = runOf();
    assert.equal(await fetchStatement(progress, broker, 100), true);
    assert.deepEqual(broker.asked, pagesOf(...sections, ...before));
    assert.ok(saved.every(({ notes }) => !notes));
    for (const [position, rest] of [
      [{ part: 4, cursor: '2', key: 'key 1' }, ['CASH 03 2', ...pagesOf('WITHDRAWALS 03', ...before)]],
      [{ part: 5, cursor: '', key: '' }, pagesOf(...before)],
      [{ part: 6, cursor: '2', key: 'key 1' }, ['CASH 02 2']],
      [{ part: 7, cursor: '', key: '' }, []],
    ] as const) {
      const later = new Broker();
      assert.equal(await fetchStatement(runOf(JSON.stringify(position)).progress, later, 100), true);
      assert.deepEqual(later.asked, rest);
    }
  });

  it('a statement may have as many records as are allowed, where each page counts as one at least', async () => {
    for (const most of [16, 15]) {
      const { progress } = runOf();
      const reading = fetchStatement(progress, new Broker(), most);
      if (most === 16) assert.equal(await reading, true);
      else await assert.rejects(reading, /more than 15 records/);
      assert.equal(progress.run.records, BigInt(most));
    }
  });

  it('a day without a whole statement of the day before is read without it, and a day that is not closed is not', async () => {
    const noStatement = new StatementError('no_statement', 'there is none');
    const away = new StatementError('unavailable', 'away');
    for (const [place, odd, outcome] of [
      ['POSITIONS 02', 'incomplete', false],
      ['CASH 02', 'incomplete', false],
      ['POSITIONS 02', noStatement, false],
      ['CASH 02', noStatement, false],
      ['POSITIONS 02', away, away],
      ['ORDERS 03', noStatement, noStatement],
      ['ORDERS 03', 'incomplete', new IncompleteDayError('the broker has not closed the day')],
      ['CASH 03', 'incomplete', new IncompleteDayError('the broker has not closed the day')],
    ] as const) {
      const broker = new Broker();
      broker.odd = (asked) => (asked === place ? odd : undefined);
      const reading = fetchStatement(runOf().progress, broker, 100);
      if (outcome instanceof Error) await assert.rejects(reading, outcome, place);
      else assert.equal(await reading, outcome, place);
    }
  });

  it('a statement whose period changes from page to page makes no sense, unless it is that of the day before', async () => {
    for (const place of ['ORDERS 03', 'TRADES 03', 'WITHDRAWALS 03', 'CASH 02']) {
      const broker = new Broker();
      broker.odd = (asked) => (asked === place ? 'other period' : undefined);
      const { progress } = runOf();
      const reading = fetchStatement(progress, broker, 100);
      if (place === 'CASH 02') assert.equal(await reading, true);
      else await assert.rejects(reading, { problem: 'nonsense' }, place);
      assert.deepEqual([progress.run.periodFrom, progress.run.periodTo], [2_000, 3_000], place);
    }
  });
});
