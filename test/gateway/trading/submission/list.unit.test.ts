/** The pages of a partner's objects that changed since an instant, over rows in memory. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { firstIdAt } from '../../../../src/gateway/edge/ids.ts';
import type { SqlRow, Statement } from '../../../../src/gateway/store/statement.ts';
import { readPage } from '../../../../src/gateway/trading/submission/list.ts';
import { fc } from '../../../support/properties.ts';

interface Made {
  readonly id: string;
  readonly updatedAt: number;
}

/** A table with these rows, which answers each statement by its conditions. */
function tableOf(rows: readonly Made[]) {
  const newestFirst = [...rows].sort((one, other) => (one.id > other.id ? -1 : 1));
  const answer = ({ sql, values }: Statement): SqlRow[] => {
    if (sql.includes('MIN(counted_day)'))
      return [{ first: rows.length === 0 ? null : '1970-01-01', last: '1970-01-01' }];
    const given = [...values];
    const tests = [...sql.matchAll(/(updated_at|id) (>=|<) \?/g)].map(([, column, comparison]) => {
      const value = given.shift();
      return ({ id, updatedAt }: Made) => {
        const own = column === 'id' ? id : updatedAt;
        const bound = value instanceof Date ? value.getTime() : String(value);
        return comparison === '<' ? own < bound : own >= bound;
      };
    });
    assert.deepEqual(given, []);
    const found = newestFirst.filter((row) => tests.every((passes) => passes(row)));
    return found.slice(0, Number(/LIMIT (\d+)/.exec(sql)?.[1])).map(({ id }) => ({ id }));
  };
  const database = {
    read: async (query: Statement) => answer(query),
    readAll: async (queries: readonly Statement[]) => queries.map(answer),
  };
  const table = { name: 'orders', indexes: {}, find: (_: unknown, _selection: unknown, tail?: Statement) => tail };
  return { database, kind: { table: table as never, prefix: 'ord' as const } };
}

it('pages of any size show each object that changed since an instant once, newest first, whenever it was made', async () => {
  const made = fc.record({ at: fc.integer({ min: 0, max: 6 }), later: fc.integer({ min: 0, max: 6 }) });
  const asked = {
    rows: fc.array(made, { maxLength: 10 }),
    updatedSince: fc.option(fc.integer({ min: 0, max: 7 }), { nil: undefined }),
    size: fc.integer({ min: 1, max: 4 }),
  };
  await fc.assert(
    fc.asyncProperty(fc.record(asked), async ({ rows, updatedSince, size }) => {
      const all = rows.map(({ at, later }, place) => ({
        id: `${firstIdAt('ord', at).slice(0, -1)}${'abcdefghij'[place]}`,
        updatedAt: at + later,
      }));
      const { database, kind } = tableOf(all);
      const seen: string[] = [];
      for (let before: string | undefined; ; ) {
        const listed = { equal: { partnerId: 'par_a' }, updatedSince, before };
        const page = await readPage(database, kind, {} as never, listed, size);
        seen.push(...page.map(({ id }) => String(id)));
        assert.ok(page.length <= size && seen.length <= all.length, `${seen}`);
        if (page.length < size) break;
        before = seen.at(-1);
      }
      const changed = all.filter(({ updatedAt }) => updatedSince === undefined || updatedAt >= updatedSince);
      assert.deepEqual(
        seen,
        changed
          .map(({ id }) => id)
          .sort()
          .reverse(),
      );
    }),
    { numRuns: 300 },
  );
});
