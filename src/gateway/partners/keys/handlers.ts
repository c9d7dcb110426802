import { create } from '@bufbuild/protobuf';
import {
  type CreateKeyRequest,
  type Key,
  KeySchema,
  type Keys,
  ListKeysResponseSchema,
  NewKeySchema,
} from '../../../gen/marina/gateway/v1/keys_pb.ts';
import { type Scope, ScopeSchema } from '../../../gen/marina/options/v1/options_pb.ts';
import { isWithin } from '../../../kit/addresses.ts';
import { type Clock, toSecond } from '../../../kit/clock.ts';
import { enumWords } from '../../../kit/enums.ts';
import type { Keys as SecretKeys } from '../../../kit/key-ring.ts';
import { audit } from '../../edge/auth/audit-store.ts';
import type { KeyUses } from '../../edge/auth/authenticate.ts';
import { areTooWide, badAddress, normalAddresses, tooWide } from '../../edge/auth/key-addresses.ts';
import { activeChildren, maxActiveKeys, maxGenerations } from '../../edge/auth/key-rules.ts';
import type { KeySeals } from '../../edge/auth/key-seals.ts';
import {
  countActiveKeys,
  findShownKey,
  keyChanges,
  listKeyLines,
  listKeys,
  type ShownKey,
  toKeyLine,
  toShownKey,
} from '../../edge/auth/key-store.ts';
import { makeKey } from '../../edge/auth/keys.ts';
import { insertKey, revokeKey } from '../../edge/auth/store.ts';
import type { Call, HandlersOf } from '../../edge/call.ts';
import { ApiError } from '../../edge/errors.ts';
import type { IdMaker } from '../../edge/ids.ts';
import type { Cursors } from '../../edge/paging.ts';
import type { Database } from '../../store/database.ts';
import { rowsFact } from '../../store/facts.ts';
import type { SqlRow } from '../../store/statement.ts';
import { shownMessage } from '../../trading/shown-message.ts';

const scopeWords = enumWords<typeof Scope>(ScopeSchema);

interface KeyHandlerParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  readonly macKeys: SecretKeys;
  readonly keySeals: KeySeals;
  readonly cursors: Cursors;
  readonly uses: KeyUses;
  /** Notifies all replicas that a key was revoked. */
  readonly ended: (keyId: string) => void;
}

/** The operations on a partner's own keys. */
export function keyHandlers(parts: KeyHandlerParts): HandlersOf<typeof Keys> {
  const { database, clock, ids, macKeys, keySeals, cursors, uses, ended } = parts;

  return {
    async listKeys(request, { caller }) {
      const { limit = 25, cursor } = request;
      const issuedFor = ['keys', caller.partnerId];
      const before = cursor === undefined ? undefined : cursors.read(issuedFor, cursor);
      const rows = await database.read(listKeys(caller.partnerId, before, limit + 1));
      const page = cursors.page(issuedFor, rows.map(toShownKey), limit, ({ id }) => id);
      return create(ListKeysResponseSchema, { ...page, data: page.data.map((key) => toMessage(key, uses)) });
    },

    async createKey(request, call) {
      const { caller } = call;
      const { partnerId } = caller;
      const scopes = [...new Set(request.scopes)].sort((one, other) => one - other);
      const addresses = normalAddresses(request.addresses);
      const { id, key: secret, secretHash, macKey } = makeKey(database.environment, macKeys, ids.keyHead());
      const createdAt = clock.now();
      await database.inPartnerTransaction(partnerId, {
        touches: ['keys'],
        fact: rowsFact(findShownKey(partnerId, caller.keyId), countActiveKeys(partnerId)),
        decide: ([own, counted]) => {
          const using = keyInUse(own, keySeals);
          checkScopes(request, using);
          checkAddresses(addresses, using, database.environment === 'live');
          checkCount(Number(counted?.[0]?.active));
          return {
            writes: [
              insertKey({ id, partnerId, secretHash, macKey, scopes, addresses, createdAt }, keySeals),
              keyChanges.insert({ ...changeBy(call, createdAt), keyId: id, action: 'created' }),
              audit(auditedBy(call, 'partner.CreateKey'), createdAt, {
                ...{ partnerId, subject: id, detail: {} },
                after: { scopes: scopes.map((scope) => scopeWords.word(scope)), addresses },
              }),
            ],
            result: undefined,
          };
        },
      });
      return create(NewKeySchema, {
        id,
        scopes,
        addresses,
        createdAt: toSecond(createdAt),
        createdBy: caller.keyId,
        secret,
      });
    },

    async revokeKey({ id: keyId = '', withChildren = false }, call) {
      const { partnerId } = call.caller;
      const revoked = new Set([keyId]);
      try {
        const key = await database.inPartnerTransaction(partnerId, {
          touches: ['keys'],
          fact: rowsFact(
            findShownKey(partnerId, call.caller.keyId),
            findShownKey(partnerId, keyId),
            ...(withChildren ? [listKeyLines(partnerId, maxGenerations)] : []),
          ),
          decide: ([own, wanted, lines = []]) => {
            keyInUse(own, keySeals);
            const row = wanted?.[0];
            if (row === undefined) throw new ApiError('not_found', { message: 'There is no such key.' });
            const found = toShownKey(row);
            const revokedAt = clock.now();
            const ending = activeChildren(keyId, lines.map(toKeyLine));
            if (found.revokedAt === undefined) ending.unshift(keyId);
            const writes = ending.flatMap((id) => {
              revoked.add(id);
              return [
                revokeKey(partnerId, id, revokedAt),
                keyChanges.insert({ ...changeBy(call, revokedAt), keyId: id, action: 'revoked' }),
                audit(auditedBy(call, 'partner.RevokeKey'), revokedAt, {
                  ...{ partnerId, subject: id, detail: id === keyId ? {} : { child_of: keyId } },
                  ...{ before: { revoked: false }, after: { revoked: true } },
                }),
              ];
            });
            return { writes, result: { ...found, revokedAt: found.revokedAt ?? revokedAt } };
          },
        });
        return toMessage(key, uses);
      } finally {
        // COMMIT may have an unknown outcome. The next use of each key queries the database.
        for (const id of revoked) ended(id);
      }
    },
  };
}

/**
 * The calling key as read under the lock: it may have been revoked since the request began. Its row is proven again, so that
 * nobody who can change it makes a key that may do more.
 */
function keyInUse(rows: readonly SqlRow[] | undefined, seals: KeySeals): ShownKey {
  const row = rows?.[0];
  const key = row === undefined || !seals.accepts(row) ? undefined : toShownKey(row);
  if (key === undefined || key.revokedAt !== undefined) throw new ApiError('unauthorized');
  return key;
}

function checkScopes({ scopes }: CreateKeyRequest, using: ShownKey): void {
  const at = scopes.findIndex((scope) => !using.scopes.includes(scope));
  const scope = scopes[at];
  if (scope === undefined) return;
  const param = `scopes[${at}]`;
  throw new ApiError('insufficient_scope', {
    param,
    message: `\`${param}\`: this key does not have the scope \`${scopeWords.word(scope)}\` itself.`,
  });
}

/** A key without addresses works from everywhere, so a key with addresses must not make one. */
function checkAddresses(addresses: readonly string[], using: ShownKey, isLive: boolean): void {
  const isBound = using.addresses.length > 0;
  if (addresses.length === 0) {
    if (!isLive && !isBound) return;
    const why = isLive ? 'a live key needs at least one' : 'this key works from registered addresses only';
    throw new ApiError('missing_required_field', {
      param: 'addresses',
      message: `\`addresses\` is required: ${why}.`,
    });
  }
  if (isLive && areTooWide(addresses)) {
    throw new ApiError('invalid_request', { param: 'addresses', message: `\`addresses\` ${tooWide}` });
  }
  const at = isBound ? addresses.findIndex((address) => !isWithin(address, using.addresses)) : -1;
  if (at >= 0) throw badAddress(at, 'must lie within an address or range of this key.');
}

function checkCount(active: number): void {
  if (active < maxActiveKeys) return;
  throw new ApiError('too_many_keys', {
    limit: 'active_keys',
    message:
      `The limit of ${maxActiveKeys} active keys is used up: there are ${active}, and 0 more can be made. ` +
      'It does not reset by itself; revoke a key first.',
  });
}

/** The audit has the key in place of an operator. */
function auditedBy({ caller, requestId }: Call, action: string) {
  return { operator: '', action, requestId, keyId: caller.keyId };
}

function changeBy({ caller, requestId }: Call, at: number) {
  return { partnerId: caller.partnerId, byKeyId: caller.keyId, requestId, at };
}

function toMessage(key: ShownKey, uses: KeyUses): Key {
  const usedAt = Math.max(key.usedAt ?? 0, uses.notedAt(key.id) ?? 0);
  const lastUsedAt = usedAt === 0 ? undefined : usedAt;
  return shownMessage(KeySchema, key, { scopes: key.scopeNames, lastUsedAt });
}
