import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readReconciliation } from '../../../../src/gateway/operators/reconciliation/figures-store.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';

const hourMs = 3_600_000;
/** A day is compared at 20:00 in Lagos, which is 19:00 UTC. */
const minute = 20 * 60;
const evening = Date.UTC(2026, 2, 5, 19);

interface Stored {
  readonly breaks?: SqlRow[];
  readonly lastDay?: string | null;
  readonly complete?: [day: string, number: number];
  readonly refused?: [day: string, number: number];
  readonly firstPartnerAt?: number;
  readonly days?: [day: string, isDone: number][];
}

/** The figures at an instant, of what the database has. */
function figuresOf(
  { breaks = [], lastDay = null, complete, refused, firstPartnerAt, days = [] }: Stored,
  now = evening,
) {
  const run = (of: [string, number] | undefined) => (of === undefined ? [] : [{ day: of[0], number: of[1] }]);
  const first = firstPartnerAt === undefined ? [] : [{ created_at: new Date(firstPartnerAt) }];
  const ofDays = days.map(([day, isDone]) => ({ day, is_done: isDone }));
  const rows = [breaks, [{ day: lastDay }], run(complete), run(refused), first, ofDays];
  return readReconciliation({ readAll: async () => rows }, { now: () => now, realNow: () => 0 }, minute);
}

it('days are overdue from their evening on, until a run of them is complete or the broker offers none', async () => {
  const firstPartnerAt = Date.UTC(2026, 2, 3, 22, 59);
  const overdue = async (stored: Stored, now = evening) => {
    const found = await figuresOf({ firstPartnerAt, ...stored }, now);
    return [found.overdue, found.overdueMs / hourMs];
  };
  assert.deepEqual(await overdue({}), [3, 48]);
  assert.deepEqual(await overdue({}, evening - 1), [2, 48 - 1 / hourMs], 'before the evening');
  assert.deepEqual(
    await overdue({ firstPartnerAt: firstPartnerAt + 60_000 }),
    [2, 24],
    'from the day of the first partner',
  );
  assert.deepEqual(
    await overdue({
      days: [
        ['2026-03-03', 1],
        ['2026-03-04', 0],
      ],
    }),
    [2, 24],
  );
  assert.deepEqual(
    await overdue({
      days: [
        ['2026-03-03', 0],
        ['2026-03-04', 1],
      ],
    }),
    [2, 48],
  );
  const all: [string, number][] = [
    ['2026-03-03', 1],
    ['2026-03-04', 1],
    ['2026-03-05', 1],
  ];
  assert.deepEqual(await overdue({ days: all }), [0, 0]);
  const { overdue: none, overdueMs } = await figuresOf({});
  assert.deepEqual([none, overdueMs], [0, 0], 'without a partner there is nothing to compare');
});

it('whether the broker offers statements is told by the newest run that was answered', async () => {
  for (const [complete, refused, isOffered] of [
    [undefined, undefined, undefined],
    [['2026-03-04', 1], undefined, true],
    [undefined, ['2026-03-04', 1], false],
    [['2026-03-04', 1], ['2026-03-05', 1], false],
    [['2026-03-05', 1], ['2026-03-04', 2], true],
    [['2026-03-05', 9], ['2026-03-05', 10], false],
    [['2026-03-05', 10], ['2026-03-05', 9], true],
  ] as const) {
    const stored = { complete: complete && [...complete], refused: refused && [...refused] } as Stored;
    assert.equal((await figuresOf(stored)).isOffered, isOffered, `${complete} and ${refused}`);
  }
});

it('the last day that was compared ends at midnight in Lagos, and open breaks are counted by kind', async () => {
  const breaks = [{ kind: 'cash', count: '12' }];
  const found = await figuresOf({ lastDay: '2026-03-04', breaks });
  assert.deepEqual(
    [found.lastDay, found.lastDayEndsAt, found.breaks],
    ['2026-03-04', Date.UTC(2026, 2, 4, 23), [['cash', 12]]],
  );
  const none = await figuresOf({});
  assert.deepEqual([none.lastDay, none.lastDayEndsAt, none.breaks], [undefined, undefined, []]);
});
