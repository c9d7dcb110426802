/** The pages of a timeline, over a history that the test holds. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { timelineCalls } from '../../../../../src/gateway/operators/calls/diagnostics/timeline.ts';
import type { SqlRow, Statement } from '../../../../../src/gateway/store/statement.ts';
import { statement } from '../../../../../src/gateway/store/statement.ts';
import { TimelineSource } from '../../../../../src/gen/marina/admin/v1/diagnostics_pb.ts';
import { fc } from '../../../../support/properties.ts';

/** The calls over an object with so many steps, one a second. */
function callsOver(count: number) {
  const steps = Array.from({ length: count }, (_, at): SqlRow => {
    const created = new Date(1_000 * (at + 1));
    const nothing = { report_number: null, quantity: null, price_kobo: null, upstream_at: null, trade_sequence: null };
    return {
      ...nothing,
      sequence: at + 1,
      created_at: created,
      at: created,
      kind: 'sent',
      state: 'pending',
      detail: '',
    };
  });
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (sql === 'OBJECT') return [{ partner_id: 'par_a', state: 'pending' }];
    if (sql !== 'STEPS') return [];
    const [after, most] = values.map(Number);
    return steps.filter(({ sequence }) => Number(sequence) > Number(after)).slice(0, most);
  };
  const kind = {
    table: { find: () => statement('OBJECT') },
    history: { page: (_: string, _id: string, after: number, most: number) => statement('STEPS', after, most) },
  };
  const database = {
    read: async (query: Statement) => answer(query),
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
  };
  const clock = { now: () => 0, realNow: () => 0 };
  return timelineCalls(database as never, { ofId: () => kind } as never, clock);
}

it("the pages of an object's timeline show each of its steps once, and say whether there are more", async () => {
  const sizes = { count: fc.integer({ min: 0, max: 12 }), limit: fc.integer({ min: 1, max: 5 }) };
  await fc.assert(
    fc.asyncProperty(fc.record(sizes), async ({ count, limit }) => {
      const { getTimeline } = callsOver(count);
      const seen: unknown[] = [];
      for (let afterStep = 0; ; ) {
        const page = await getTimeline({ id: 'obj_a', afterStep, limit } as never);
        const steps = page.entries.filter(({ source }) => source === TimelineSource.STEP).map(({ step }) => step);
        seen.push(...steps);
        assert.equal(page.lastStep, steps.at(-1) ?? afterStep);
        assert.equal(page.hasMore, seen.length < count);
        if (!page.hasMore) break;
        assert.equal(steps.length, limit);
        afterStep = Number(page.lastStep);
      }
      assert.deepEqual(
        seen,
        Array.from({ length: count }, (_, at) => at + 1),
      );
    }),
    { numRuns: 100 },
  );
});
