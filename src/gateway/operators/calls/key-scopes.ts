import { status } from '@grpc/grpc-js';
import { AddScopesRequestSchema } from '../../../gen/marina/admin/v1/keys_pb.ts';
import { Scope, ScopeSchema } from '../../../gen/marina/options/v1/options_pb.ts';
import { enumWords } from '../../../kit/enums.ts';
import { type KeySeals, toSealedKey } from '../../edge/auth/key-seals.ts';
import { apiKeys, findKey, scopeNames } from '../../edge/auth/store.ts';
import { queryFact } from '../../store/facts.ts';
import type { SqlRow } from '../../store/statement.ts';
import { AdminError } from './errors.ts';
import type { GuardedCall } from './proposals/four-eyes.ts';
import type { Seen } from './proposals/rules.ts';

const scopeWords = enumWords<typeof Scope>(ScopeSchema);

/** The scopes that move money. */
const moneyScopes: readonly Scope[] = [Scope.FUND, Scope.WITHDRAW];

export function movesMoney(scope: Scope): boolean {
  return moneyScopes.includes(scope);
}

/** Scopes without repetitions, in the order of their numbers. */
export function distinctScopes(scopes: readonly Scope[]): Scope[] {
  return [...new Set(scopes)].sort((one, other) => one - other);
}

/** The call that adds scopes to a key. Scopes that move money need a second operator. */
export function scopesCall(
  seals: KeySeals,
  changed: (keyId: string) => void,
): GuardedCall<typeof AddScopesRequestSchema, SqlRow | undefined, boolean> {
  return {
    name: 'Keys.AddScopes',
    schema: AddScopesRequestSchema,
    asked: ({ partnerId, keyId, scopes }) => ({
      ...{ partnerId, objectId: keyId, about: keyId, touches: 'keys' },
      fact: queryFact(findKey(keyId), ([row]) => row),
      decide: (row) => {
        const key = usableKey(row, partnerId, seals);
        const before = scopeNames(key.scopes);
        const added = distinctScopes(scopes).filter((scope) => !before.includes(scopeWords.word(scope)));
        if (added.length === 0) return { unchanged: false };
        const after = [...before, ...added.map((scope) => scopeWords.word(scope))];
        const sealed = { ...key, scopes: after.join(',') };
        return {
          needsSecond: added.some(movesMoney),
          seen: seenScopes(before),
          apply: () => ({
            writes: [apiKeys.set({ partnerId, id: keyId }, { scopes: sealed.scopes, seal: seals.make(sealed) })],
            entry: { partnerId, subject: keyId, detail: {}, before: { scopes: before }, after: { scopes: after } },
            ...{ after: seenScopes(after), result: true },
          }),
        };
      },
      ended: () => changed(keyId),
    }),
  };
}

/** The scopes of a key as a proposal shows them. */
export function seenScopes(scopes: readonly string[]): Seen {
  return { scopes: scopes.join(',') };
}

/** A partner's key whose row is proven, because a seal is made of it again. Throws an AdminError if it is not. */
function usableKey(row: SqlRow | undefined, partnerId: string, seals: KeySeals) {
  if (row?.partner_id !== partnerId) throw new AdminError(status.NOT_FOUND, 'the partner has no such key');
  const key = toSealedKey(row);
  if (Number(row.is_revoked) !== 0) throw new AdminError(status.FAILED_PRECONDITION, 'the key is revoked');
  if (seals.prove(key, row.seal instanceof Buffer ? row.seal : null) !== 'sealed') {
    throw new AdminError(status.FAILED_PRECONDITION, 'the row of the key has no right seal: make another key');
  }
  return key;
}
