import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { changeOwned } from '../../../../src/gateway/operators/calls/call.ts';
import { keyService } from '../../../../src/gateway/operators/calls/keys.ts';
import type { Database } from '../../../../src/gateway/store/database.ts';
import { UnavailableError } from '../../../../src/kit/refusal.ts';

const call = { operator: { name: 'tester' }, action: 'Keys.RevokeKey' } as never;
const clock = { now: () => 0, realNow: () => 0 };

/** Rows of a key `key_a` with a descendant `key_b`. */
const rows: object[][] = [
  [{ partner_id: 'par_a', revoked_at: null }],
  [
    { id: 'key_a', created_by: null, generation: 1 },
    { id: 'key_b', created_by: 'key_a', generation: 1 },
  ],
];

/** A database that decides as any does, and whose COMMIT has an answer or none. */
function database(hasAnswer: boolean): Database {
  const decided = async <T>(decision: { readonly result: T }): Promise<T> => {
    if (!hasAnswer) throw new UnavailableError();
    return decision.result;
  };
  return {
    read: async () => rows[0],
    transaction: (_: unknown, decide: (rows: object[][]) => { readonly result: unknown }) => decided(decide(rows)),
    inPartnerTransaction: (_: unknown, { decide }: { decide(rows: object[][]): { readonly result: unknown } }) =>
      decided(decide(rows)),
  } as unknown as Database;
}

describe("an operator's change that ends something", () => {
  for (const hasAnswer of [true, false]) {
    const commit = hasAnswer ? 'is answered' : 'has no answer';
    for (const [withChildren, ids] of [
      [false, ['key_a']],
      [true, ['key_a', 'key_b']],
    ] as const) {
      it(`a revocation ${withChildren ? 'with descendants' : 'of one key'} is told to all replicas when COMMIT ${commit}`, async () => {
        const ended: string[] = [];
        const parts = { database: database(hasAnswer), clock, ids: {} as never, fourEyesAboveKobo: undefined };
        const { service } = keyService(parts, {} as never, {} as never, (id) => void ended.push(id));
        const revoke = (service.calls as unknown as Record<string, (request: object, call: never) => Promise<unknown>>)
          .revokeKey;
        const revoked = revoke?.({ keyId: 'key_a', withChildren, reason: '' }, call);
        if (hasAnswer) await revoked;
        else await assert.rejects(async () => revoked, UnavailableError);
        assert.deepEqual(ended, ids);
      });
    }

    it(`a change of a partner is told to all replicas when COMMIT ${commit}`, async () => {
      let told = 0;
      const changed = changeOwned(
        database(hasAnswer),
        'par_a',
        'limits',
        { reads: [], value: () => [] },
        () => [],
        () => {
          told += 1;
        },
      );
      if (hasAnswer) await changed;
      else await assert.rejects(changed, UnavailableError);
      assert.equal(told, 1);
    });
  }
});
