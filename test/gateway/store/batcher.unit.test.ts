import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PageReader, RowReader } from '../../../src/gateway/store/batcher.ts';
import type { Database } from '../../../src/gateway/store/database.ts';
import type { SqlRow, Statement } from '../../../src/gateway/store/statement.ts';

describe('rows of a partner that are read together', () => {
  function startReader() {
    const state = { isAway: false };
    const asked: [partnerId: unknown, ids: unknown[]][] = [];
    const database = {
      async read({ sql, values: [partnerId, ...ids] }: Statement) {
        asked.push([partnerId, ids]);
        assert.equal((sql.match(/\?/g) ?? []).length, ids.length + 1, 'a mark for each value');
        if (state.isAway) throw new Error('away');
        const found = [...new Set(ids)].filter((id) => !String(id).startsWith('none'));
        return found.map((id) => ({ id, of: partnerId }) as SqlRow);
      },
    };
    const reader = new RowReader(database, 'orders', 'id, state');
    const readAll = (...wanted: readonly string[]) =>
      Promise.allSettled(
        wanted.map(async (one) => {
          const [partnerId = '', id = ''] = one.split(' ');
          const row = await reader.read(partnerId, id);
          return row && `${row.of} ${row.id}`;
        }),
      ).then((results) => results.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.message)));
    return { state, asked, readAll };
  }

  it('each caller has its own row, of one read for each partner, in which each id is once', async () => {
    const { asked, readAll } = startReader();
    for (const turn of ['first', 'second']) {
      const wanted = ['a 1', 'b 1', 'a 2', 'a 1', 'a none', 'b 1'];
      const found = wanted.map((one) => (one === 'a none' ? undefined : one));
      assert.deepEqual(await readAll(...wanted), found, turn);
      assert.deepEqual(asked.splice(0), [
        ['a', ['1', '2', 'none', '1']],
        ['b', ['1']],
      ]);
    }
  });

  it('a round trip reads at most 64 rows, and another one reads the rest beside it', async () => {
    const { asked, readAll } = startReader();
    const wanted = Array.from({ length: 67 }, (_, at) => `a ${at}`);
    assert.deepEqual(await readAll(...wanted), wanted);
    assert.deepEqual(
      asked.map(([, ids]) => ids.length),
      [64, 4],
    );
  });

  it('all who wait for a read that fails are told, and the next read is another one', async () => {
    const { state, readAll } = startReader();
    for (const turn of ['first', 'second']) {
      state.isAway = true;
      assert.deepEqual(await readAll('a 1', 'a 1', 'a 2'), ['away', 'away', 'away'], turn);
      state.isAway = false;
      assert.deepEqual(await readAll('a 1', 'a 1', 'a 2'), ['a 1', 'a 1', 'a 2'], turn);
    }
  });
});

describe('pages that are read together', () => {
  it('each caller has its own page, of its partner, after its version and of its length', async () => {
    const asked: string[] = [];
    const database = {
      async read({ sql, values }: Statement) {
        const most = Number(/LIMIT (\d+)/.exec(sql)?.[1]);
        asked.push(`${values.length / 2} of ${most}`);
        const rows: SqlRow[] = [];
        for (let page = 0; page < values.length / 2; page += 1) {
          const [partnerId, after] = [values[2 * page], Number(values[2 * page + 1])];
          for (let at = 1; partnerId !== '' && at <= most; at += 1)
            rows.push({ page, shown: `${partnerId} ${after + at}` });
        }
        return rows.reverse();
      },
    };
    const reader = new PageReader(database as unknown as Database, 'feed_events', 'version', 'version');
    const pages = [
      reader.read('a', '5', 2),
      reader.read('b', '5', 2),
      reader.read('a', '5', 2),
      reader.read('a', '7', 2),
      reader.read('a', '5', 1),
    ];
    const shown = (await Promise.all(pages)).map((rows) => rows.map((row) => row.shown).sort());
    assert.deepEqual(shown, [['a 6', 'a 7'], ['b 6', 'b 7'], ['a 6', 'a 7'], ['a 8', 'a 9'], ['a 6']]);
    assert.deepEqual(asked, ['4 of 2', '1 of 1']);
  });
});
