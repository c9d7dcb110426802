import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError, UnprovenRowError } from '../../../../src/gateway/edge/errors.ts';
import type { Lease } from '../../../../src/gateway/store/lease.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { LaneSlots } from '../../../../src/gateway/trading/submission/lane-slots.ts';
import { type Numbered, ReportSession } from '../../../../src/gateway/trading/submission/report-session.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { eventually } from '../../../support/eventually.ts';

interface Report extends Numbered {
  readonly of: string;
}

/** A session over a database that has some orders, and over an exchange whose reports are applied when the test says so. */
function begin(owners: readonly SqlRow[], failure?: Error, findLost: () => Promise<void> = async () => {}) {
  const moves: bigint[] = [];
  const ended = new AbortController();
  const applied: string[] = [];
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
    factFor: () => undefined,
  };
  const lease: Lease = { name: 'order-reports', fence: 1n, signal: new AbortController().signal, isHeld: () => true };
  const session = new ReportSession<never, Report>(
    {
      kind: { name: 'order', objectIdOf: ({ of }: Report) => of, table: { name: 'orders' } },
      database: {
        readAll: async () => [[...owners]],
        transaction: async (_: unknown, decide: (rows: SqlRow[][]) => { result: unknown }) =>
          decide([[...owners]]).result,
      },
      findLost,
      recorder: { changeMany: () => (failure === undefined ? applying.then(() => []) : Promise.reject(failure)) },
      clock: { now: () => 0, realNow: () => 0 },
      log: createLogger({ name: 'session', level: 'silent' }),
    } as never,
    position as never,
    lease,
    ended.signal,
    new LaneSlots(),
    (error) => assert.fail(error as Error),
  );
  return { session, moves, applied, apply, end: () => ended.abort() };
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

  for (const [cause, problem] of [
    [new UnprovenRowError('the wallet has no right seal'), 'damaged'],
    [new Error('the lock was not given'), 'locked'],
  ] as const) {
    it(`are ${problem} if the error of their partner has the cause "${cause.message}"`, async () => {
      const { session, end } = begin([owner('ord_a', 0)], new ApiError('service_unavailable', { cause }));
      try {
        await session.add([{ number: 6n, of: 'ord_a' }]);
        await eventually(() => assert.equal(session.problem, problem));
      } finally {
        end();
      }
    });
  }
});
