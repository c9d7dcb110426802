import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ApiError, UnprovenRowError } from '../../../../src/gateway/edge/errors.ts';
import type { Lease } from '../../../../src/gateway/store/lease.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { firstBroker } from '../../../../src/gateway/trading/broker/broker.ts';
import { LaneSlots } from '../../../../src/gateway/trading/submission/lane-slots.ts';
import { DatabaseDiffersError } from '../../../../src/gateway/trading/submission/report-position.ts';
import { type Numbered, ReportSession } from '../../../../src/gateway/trading/submission/report-session.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { eventually } from '../../../support/eventually.ts';

interface Report extends Numbered {
  readonly of: string;
}

/** A session over a database that has some orders, and over an exchange whose reports are applied when the test says so. */
function begin(
  owners: readonly SqlRow[],
  failure?: Error,
  findLost: () => Promise<void> = async () => {},
  fail: (error: unknown) => void = (error) => assert.fail(error as Error),
) {
  const moves: bigint[] = [];
  const ended = new AbortController();
  const applied: string[] = [];
  const seconds: number[] = [];
  let apply = () => {};
  const applying = new Promise<void>((resolve) => {
    apply = resolve;
  });
  const position = {
    number: 5n,
    isFull: false,
    applied: (claims: Iterable<readonly [string, bigint]>) => {
      for (const [id, number] of claims) applied.push(`${id} ${number}`);
    },
    moveTo: (number: bigint) => void moves.push(number),
    store: async () => {},
    check: () => {},
    factFor: () => undefined,
  };
  const lease: Lease = { name: 'order-reports', fence: 1n, signal: new AbortController().signal, isHeld: () => true };
  const session = new ReportSession<never, Report>(
    {
      broker: firstBroker,
      kind: {
        ...{ name: 'order', objectIdOf: ({ of }: Report) => of, table: { name: 'orders' } },
        ...{ reportStep: () => ({}), describeReport: () => ({ report: 'accepted', reference: '' }) },
      },
      database: {
        readAll: async () => [[...owners]],
        transaction: async (_: unknown, decide: (rows: SqlRow[][]) => { result: unknown }) =>
          decide([[...owners]]).result,
      },
      findLost,
      recorder: { changeMany: () => (failure === undefined ? applying.then(() => []) : Promise.reject(failure)) },
      clock: { now: () => 10_000, realNow: () => 0 },
      onApplied: (_: string, age: number) => void seconds.push(age),
      log: createLogger({ name: 'session', level: 'silent' }),
    } as never,
    position as never,
    lease,
    ended.signal,
    new LaneSlots(),
    fail,
  );
  return { session, position, moves, applied, seconds, apply, end: () => ended.abort() };
}

const owner = (id: string, lastReport: number) => ({ id, partner_id: 'p', last_report: lastReport, missed_report: 0 });

describe('the reports of one stream on their way', () => {
  it('are none before the first one was read, whatever the position is', async () => {
    const { session } = begin([owner('ord_a', 6)]);
    assert.deepEqual([session.hasRead, session.read], [false, 5n]);
    await session.add([{ number: 6n, of: 'ord_a' }]);
    assert.deepEqual([session.hasRead, session.read], [true, 6n]);
  });

  it('move the position at once if their orders have them from the answers to the sends', async () => {
    const { session, moves, applied } = begin([owner('ord_a', 7)]);
    await session.add([
      { number: 6n, of: 'ord_a' },
      { number: 7n, of: 'ord_a' },
    ]);
    assert.deepEqual([moves.at(-1), applied], [7n, ['ord_a 6', 'ord_a 7']]);
  });

  it('move the position to before the first that is not applied, and past it once it is', async () => {
    const { session, moves, applied, apply } = begin([owner('ord_a', 6), owner('ord_b', 0)]);
    await session.add([
      { number: 6n, of: 'ord_a' },
      { number: 7n, of: 'ord_b' },
      { number: 8n, of: 'ord_a' },
    ]);
    assert.deepEqual([moves.at(-1), applied], [6n, ['ord_a 6']]);
    apply();
    await eventually(() => assert.equal(moves.at(-1), 8n));
    assert.deepEqual(applied, ['ord_a 6', 'ord_b 7', 'ord_a 8']);
  });

  it('reports are applied in their order though their order is found while the first of them is looked for', async () => {
    const owners: SqlRow[] = [];
    const looks: (() => void)[] = [];
    // The first two looks for lost objects end when the test says so.
    const findLost = async () => {
      if (looks.length < 2) await new Promise<void>((resolve) => void looks.push(resolve));
    };
    const { session, moves, applied, apply } = begin(owners, undefined, findLost);
    apply();
    await session.add([{ number: 6n, of: 'ord_a' }]);
    await eventually(() => assert.equal(looks.length, 1));
    owners.push(owner('ord_a', 0));
    await session.add([{ number: 7n, of: 'ord_a' }]);
    looks[0]?.();
    await eventually(() => assert.deepEqual(applied, ['ord_a 6']));
    await session.add([{ number: 8n, of: 'ord_a' }]);
    await eventually(() => assert.equal(looks.length, 2));
    assert.deepEqual(applied, ['ord_a 6'], 'report 8 waits for report 7');
    looks[1]?.();
    await eventually(() => assert.equal(moves.at(-1), 8n));
    assert.deepEqual(applied, ['ord_a 6', 'ord_a 7', 'ord_a 8']);
  });

  it('what a session that has ended still applies, or finds nowhere, is nothing to the session that follows it', async () => {
    let found = () => {};
    const findLost = () => new Promise<void>((resolve) => (found = resolve));
    // The lost one fails, because reports are read again since, and that ends nothing any more.
    const { session, moves, applied, apply, end } = begin([owner('ord_a', 0)], undefined, findLost, () => {});
    await session.add([
      { number: 6n, of: 'ord_a' },
      { number: 7n, of: 'ord_lost' },
    ]);
    const before = [...moves];
    end();
    apply();
    found();
    await session.idle();
    assert.deepEqual([applied, moves], [[], before], 'it is read again from the position that the database has');
  });

  it('no further report is taken while too many wait to be proven, and all go on once they are', async () => {
    const { session, position } = begin([owner('ord_a', 9)]);
    let stores = 0;
    position.isFull = true;
    position.store = async () => {
      stores += 1;
      if (stores === 2) position.isFull = false;
    };
    const adding = session.add([{ number: 6n, of: 'ord_a' }]);
    await eventually(() => assert.equal(stores, 1));
    assert.equal(session.read, 5n, 'it is not read before there is room');
    await adding;
    assert.equal(session.read, 6n);
    assert.equal(stores, 3, 'twice for room, and once for the report itself');
  });

  it('a session ends when its position cannot be stored, or the database differs, and at nothing else', async () => {
    const away = new Error('the database is away');
    const differs = new DatabaseDiffersError('it lacks a report');
    for (const [failure, storing, ends] of [
      [undefined, away, [away]],
      [differs, undefined, [differs]],
      [new ApiError('service_unavailable', { cause: new Error('locked') }), undefined, []],
    ] as const) {
      const failures: unknown[] = [];
      const fail = (error: unknown) => void failures.push(error);
      const { session, position, apply, end } = begin([owner('ord_a', 0)], failure, undefined, fail);
      apply();
      if (storing !== undefined) position.store = () => Promise.reject(storing);
      await session.add([{ number: 6n, of: 'ord_a' }]);
      await session.idle();
      await new Promise(setImmediate);
      assert.deepEqual(failures.slice(0, 1), ends, String(failure ?? storing));
      end();
    }
  });

  it('the age of reports is that of the last that has a time, and never below nothing', async () => {
    const { session, seconds } = begin([owner('ord_a', 99)]);
    const at = (ms: number) => timestampFromMs(ms);
    await session.add([
      { number: 6n, of: 'ord_a', at: at(1_000) },
      { number: 7n, of: 'ord_a', at: at(4_000) },
      { number: 8n, of: 'ord_a' },
    ]);
    await session.add([{ number: 9n, of: 'ord_a' }]);
    await session.add([{ number: 10n, of: 'ord_a', at: at(12_000) }]);
    assert.deepEqual(seconds, [6, 0]);
  });

  it('reports that fail again and again are called locked, damaged or not found, and damaged if any of them is', async () => {
    const away = async () => {
      throw new Error('the broker is away');
    };
    const [locked, unproven] = [new Error('the lock was not given'), new UnprovenRowError('no right seal')];
    const cases = [
      { cause: locked, isLost: false, problem: 'locked' },
      { cause: unproven, isLost: false, problem: 'damaged' },
      { cause: locked, isLost: true, problem: 'unfound' },
      { cause: unproven, isLost: true, problem: 'damaged' },
    ].map(({ cause, isLost, problem }) => {
      const failure = new ApiError('service_unavailable', { cause });
      return { ...begin([owner('ord_a', 0)], failure, away), isLost, problem };
    });
    try {
      for (const { session, isLost } of cases) {
        if (isLost) await session.add([{ number: 6n, of: 'ord_lost' }]);
        await session.add([{ number: 7n, of: 'ord_a' }]);
      }
      for (const { session, problem } of cases) await eventually(() => assert.equal(session.problem, problem));
    } finally {
      for (const { end } of cases) end();
    }
  });
});
