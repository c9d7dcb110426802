/** The keys of partners as they are shown, over rows that the test holds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  countActiveKeys,
  findShownKey,
  listKeyLines,
  listKeys,
  toKeyLine,
  toShownKey,
} from '../../../../src/gateway/edge/auth/key-store.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { Scope } from '../../../../src/gen/marina/options/v1/options_pb.ts';
import { selectedRows } from '../../../support/rows-database.ts';

const keys: SqlRow[] = ['par_a', 'par_b'].flatMap((partnerId) =>
  ['a', 'b', 'c', 'd'].map((name) => ({
    ...{ partner_id: partnerId, id: `key_${name}`, revoked_at: name === 'b' ? new Date(5) : null },
  })),
);
const names = (rows: readonly SqlRow[]) => rows.map(({ partner_id: partnerId, id }) => `${partnerId} ${id}`);

describe("a partner's keys", () => {
  it("pages of a partner's keys show each once, the newest first", () => {
    for (const most of [1, 2, 3, 4, 5]) {
      const seen: string[] = [];
      for (let before: string | undefined; seen.length <= 4; before = seen.at(-1)?.split(' ')[1]) {
        const page = names(selectedRows(listKeys('par_a', before, most), keys));
        seen.push(...page);
        if (page.length < most) break;
      }
      assert.deepEqual(seen, ['par_a key_d', 'par_a key_c', 'par_a key_b', 'par_a key_a'], `${most}`);
    }
  });

  it("a key is found among its partner's own", () => {
    assert.deepEqual(names(selectedRows(findShownKey('par_b', 'key_c'), keys)), ['par_b key_c']);
    assert.deepEqual(selectedRows(findShownKey('par_b', 'key_x'), keys), []);
  });

  it('a key is shown with its last use and its creator, which are joined by partner and key', () => {
    for (const { sql } of [findShownKey('par_a', 'key_a'), listKeys('par_a', undefined, 1)]) {
      assert.match(sql, /key_uses u ON u\.partner_id = k\.partner_id AND u\.key_id = k\.id/);
      assert.match(
        sql,
        /key_changes c ON c\.partner_id = k\.partner_id AND c\.key_id = k\.id AND c\.action = 'created'/,
      );
    }
  });

  it('only keys that are not revoked are active', () => {
    assert.deepEqual(selectedRows(countActiveKeys('par_a'), keys), [{ active: '3' }]);
  });

  it('a key is shown with all that is known of it', () => {
    const row = {
      ...{ id: 'key_a', scopes: 'read,trade,later', addresses: '["192.0.2.1"]', created_at: new Date(1) },
      ...{ used_at: new Date(2), revoked_at: new Date(3), created_by: 'key_b' },
    };
    assert.deepEqual(toShownKey(row), {
      ...{ id: 'key_a', scopes: [Scope.READ, Scope.TRADE, Scope.UNSPECIFIED], scopeNames: ['read', 'trade', 'later'] },
      ...{ addresses: ['192.0.2.1'], createdAt: 1, usedAt: 2, revokedAt: 3, createdBy: 'key_b' },
    });
    const fresh = toShownKey({
      ...row,
      scopes: '',
      addresses: '[]',
      used_at: null,
      revoked_at: null,
      created_by: null,
    });
    assert.deepEqual(
      [fresh.scopes, fresh.addresses, fresh.usedAt, fresh.revokedAt, fresh.createdBy],
      [[], [], undefined, undefined, undefined],
    );
  });

  it('a key in a line is active in the first generation alone, and has the key that made it', () => {
    for (const [generation, createdBy, line] of [
      [1, 'key_b', { createdBy: 'key_b', isActive: true }],
      ['1', null, { createdBy: undefined, isActive: true }],
      [2, 'key_b', { createdBy: 'key_b', isActive: false }],
    ] as const) {
      assert.deepEqual(toKeyLine({ id: 'key_a', created_by: createdBy, generation }), { id: 'key_a', ...line });
    }
  });

  it("the lines of a partner's keys begin at its active ones, and end after so many generations", () => {
    const { sql, values } = listKeyLines('par_a', 7);
    assert.deepEqual(values, ['par_a', 'par_a']);
    assert.match(sql, /WHERE k\.partner_id = \? AND k\.revoked_at IS NULL\s+UNION/);
    assert.match(sql, /JOIN api_keys k ON k\.partner_id = \? AND k\.id = l\.created_by/);
    assert.match(sql, /l\.generation < 7\b/);
    for (const name of ['max_recursive_iterations', 'cte_max_recursion_depth']) {
      assert.ok(sql.includes(`${name} = 8`), 'a server must not stop before');
    }
  });
});
