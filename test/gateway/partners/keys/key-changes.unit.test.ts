import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Call } from '../../../../src/gateway/edge/call.ts';
import { keyHandlers } from '../../../../src/gateway/partners/keys/handlers.ts';
import type { SqlRow } from '../../../../src/gateway/store/statement.ts';
import { UnavailableError } from '../../../../src/kit/refusal.ts';

const key = (id: string, more: object = {}): SqlRow => ({
  ...{ id, scopes: 'read', addresses: '', created_at: new Date(0), used_at: null, revoked_at: null, created_by: null },
  ...more,
});
const own = key('key_own');
const lines = [
  { id: 'key_a', created_by: 'key_own', generation: 1 },
  { id: 'key_b', created_by: 'key_a', generation: 1 },
  { id: 'key_c', created_by: 'key_own', generation: 1 },
];

/** The calls of a partner with the key `key_own`, over rows that a test gives, and a COMMIT that has an answer or none. */
function open(rows: readonly SqlRow[][], { isSealed = true, hasAnswer = true } = {}) {
  const ended: string[] = [];
  const written: string[] = [];
  type Work = {
    fact: { reads: unknown[] };
    decide(rows: readonly SqlRow[][]): { writes: { sql: string }[]; result: unknown };
  };
  const handlers = keyHandlers({
    database: {
      environment: 'sandbox',
      inPartnerTransaction: async (_: string, { fact, decide }: Work) => {
        const { writes, result } = decide(rows.slice(0, fact.reads.length));
        written.push(...writes.map(({ sql }) => /^(?:INSERT INTO|UPDATE) (\w+)/.exec(sql)?.[1] ?? sql));
        if (!hasAnswer) throw new UnavailableError();
        return result;
      },
    },
    ...{ clock: { now: () => 5_000, realNow: () => 5_000 }, uses: { notedAt: () => undefined } },
    keySeals: { accepts: () => isSealed },
    ended: (id: string) => void ended.push(id),
  } as never);
  const call = { caller: { partnerId: 'par_a', keyId: 'key_own' }, requestId: 'req' } as unknown as Call;
  const revoke = (id: string, withChildren = false) => handlers.revokeKey({ id, withChildren } as never, call);
  return { revoke, ended, written };
}

describe('the revocation of a key by its partner', () => {
  for (const [withChildren, ids] of [
    [false, ['key_a']],
    [true, ['key_a', 'key_b']],
  ] as const) {
    for (const hasAnswer of [true, false]) {
      it(`a key ${withChildren ? 'and what was made with it end' : 'ends'} on all replicas, ${hasAnswer ? 'once it is stored' : 'also if COMMIT has no answer'}`, async () => {
        const { revoke, ended, written } = open([[own], [key('key_a')], lines], { hasAnswer });
        if (hasAnswer) await revoke('key_a', withChildren);
        else await assert.rejects(revoke('key_a', withChildren), UnavailableError);
        assert.deepEqual(ended, ids);
        assert.deepEqual(
          written,
          ids.flatMap(() => ['api_keys', 'key_changes', 'audit_entries']),
        );
      });
    }
  }

  it('a key that was revoked before keeps its time, and what was made with it ends all the same', async () => {
    const before = key('key_a', { revoked_at: new Date(1_000) });
    const { revoke, ended, written } = open([[own], [before], lines]);
    const { revokedAt } = await revoke('key_a', true);
    assert.equal(revokedAt?.seconds, 1n);
    assert.deepEqual([ended, written.length], [['key_a', 'key_b'], 3]);
  });

  it('a key that was revoked meanwhile, is gone, or has no right seal revokes nothing', async () => {
    for (const [using, isSealed] of [
      [[key('key_own', { revoked_at: new Date(1_000) })], true],
      [[], true],
      [[own], false],
    ] as const) {
      const { revoke, written } = open([[...using], [key('key_a')], lines], { isSealed });
      await assert.rejects(revoke('key_a'), { code: 'unauthorized' });
      assert.deepEqual(written, []);
    }
    await assert.rejects(open([[own], [], lines]).revoke('key_x'), { code: 'not_found' });
  });
});
