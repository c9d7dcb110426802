import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { normalAddress } from '../auth/addresses.ts';
import { makeKey } from '../auth/keys.ts';
import { insertKey, revokeKey } from '../auth/store.ts';
import type { Database } from '../db/database.ts';
import { reading } from '../db/facts.ts';
import { type Statement, statement } from '../db/statement.ts';
import {
  type CreateKeyRequest,
  type CreateKeyResponse,
  CreateKeyResponseSchema,
  type ListKeysRequest,
  type ListKeysResponse,
  ListKeysResponseSchema,
  type PartnerKey,
  PartnerKeySchema,
  type RevokeKeyRequest,
  type RevokeKeyResponse,
  RevokeKeyResponseSchema,
} from '../gen/marina/admin/v1/keys_pb.ts';
import { type Scope, ScopeSchema } from '../gen/marina/options/v1/options_pb.ts';
import { activeChildren, mostActiveKeys, mostGenerations } from '../keys/rules.ts';
import {
  countActiveKeys,
  findShownKey,
  listKeyLines,
  listKeys,
  type ShownKey,
  toKeyLine,
  toShownKey,
} from '../keys/store.ts';
import type { Clock } from '../lib/clock.ts';
import { enumWords } from '../lib/enums.ts';
import type { IdMaker } from '../lib/ids.ts';
import { audit } from './audit.ts';
import { AdminError, invalidField, type Operator, pageSize } from './call.ts';
import { requirePartner } from './credit.ts';

const scopeWords = enumWords<typeof Scope>(ScopeSchema);

export interface KeyAdminParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly ids: IdMaker;
  /** What the MACs of keys are made with. */
  readonly macSecret: Buffer;
  /** Tells this replica and the others that a key has ended. */
  readonly ended: (keyId: string) => void;
}

/** The operators' calls on partners' keys. Each change is written down in the transaction that makes it. */
export function keyAdminHandlers({ database, clock, ids, macSecret, ended }: KeyAdminParts) {
  async function createKey(request: CreateKeyRequest, operator: Operator): Promise<CreateKeyResponse> {
    const { partnerId, reason } = request;
    const scopes = [...new Set(request.scopes)].sort((one, other) => one - other);
    const addresses = normalAddresses(request.addresses);
    if (addresses.length === 0 && database.environment === 'live') {
      throw invalidField('addresses', 'is required: a live key needs at least one.');
    }
    const everywhere = addresses.findIndex((address) => address.endsWith('/0'));
    if (everywhere >= 0 && database.environment === 'live') {
      throw invalidField(`addresses[${everywhere}]`, 'must not be all addresses: a live key works from some only.');
    }
    await requirePartner(database, partnerId);
    const { id, key: secret, secretHash } = makeKey(database.environment, macSecret, ids.keyHead());
    const createdAt = clock.now();
    await database.inPartner(partnerId, {
      touches: ['keys'],
      fact: reading(countActiveKeys(partnerId)),
      decide: ([counted]) => {
        if (Number(counted?.[0]?.active) >= mostActiveKeys) {
          throw new AdminError(status.FAILED_PRECONDITION, `the partner has ${mostActiveKeys} keys: revoke one first`);
        }
        const after = { scopes: scopes.map((scope) => scopeWords.word(scope)), addresses };
        const said = audit({
          at: createdAt,
          operator,
          action: 'Keys.CreateKey',
          partnerId,
          subject: id,
          detail: { reason },
          after,
        });
        return { writes: [insertKey({ id, partnerId, secretHash, scopes, addresses, createdAt }), said], result: null };
      },
    });
    const key = toMessage({
      ...{ id, scopes, scopeNames: [], addresses, createdAt },
      ...{ usedAt: undefined, revokedAt: undefined, createdBy: undefined },
    });
    return create(CreateKeyResponseSchema, { key, secret });
  }

  async function listKeys_(request: ListKeysRequest): Promise<ListKeysResponse> {
    const { partnerId, beforeKeyId } = request;
    const limit = pageSize(request.limit);
    await requirePartner(database, partnerId);
    const rows = await database.read(listKeys(partnerId, beforeKeyId || undefined, limit + 1));
    return create(ListKeysResponseSchema, {
      keys: rows.slice(0, limit).map((row) => toMessage(toShownKey(row))),
      hasMore: rows.length > limit,
    });
  }

  async function revokeKey_(request: RevokeKeyRequest, operator: Operator): Promise<RevokeKeyResponse> {
    const { keyId, withChildren } = request;
    const ending = new Set([keyId]);
    try {
      const revokedKeyIds = await (withChildren ? revokeLine : revokeOne)(request, operator, ending);
      return create(RevokeKeyResponseSchema, { changed: revokedKeyIds.length > 0, revokedKeyIds });
    } finally {
      // Whether they are revoked may be unknown by now: whoever uses one next asks the database.
      for (const id of ending) ended(id);
    }
  }

  /** Revokes one key without waiting for its partner's lock. */
  function revokeOne({ keyId, reason }: RevokeKeyRequest, operator: Operator): Promise<string[]> {
    const find = statement('SELECT partner_id, revoked_at FROM api_keys WHERE id = ? FOR UPDATE', keyId);
    return database.transaction([find], ([rows]) => {
      const key = rows?.[0];
      if (key === undefined) throw noSuchKey();
      if (key.revoked_at !== null) return { writes: [], result: [] };
      const said = { operator, reason, partnerId: String(key.partner_id), at: clock.now() };
      return { writes: revocation(keyId, said), result: [keyId] };
    });
  }

  /** Revokes a key and all that descend from it, under its partner's lock: no other can be made meanwhile. */
  async function revokeLine(
    { keyId, reason }: RevokeKeyRequest,
    operator: Operator,
    ending: Set<string>,
  ): Promise<string[]> {
    const [owned] = await database.read(statement('SELECT partner_id FROM api_keys WHERE id = ?', keyId));
    if (owned === undefined) throw noSuchKey();
    const partnerId = String(owned.partner_id);
    return database.inPartner(partnerId, {
      touches: ['keys'],
      fact: reading(findShownKey(partnerId, keyId), listKeyLines(partnerId, mostGenerations)),
      decide: ([found = [], lines = []]) => {
        const revoked = activeChildren(keyId, lines.map(toKeyLine));
        if (found[0]?.revoked_at === null) revoked.unshift(keyId);
        for (const id of revoked) ending.add(id);
        const said = { operator, reason, partnerId, at: clock.now() };
        return { writes: revoked.flatMap((id) => revocation(id, said, keyId)), result: revoked };
      },
    });
  }

  return { createKey, listKeys: listKeys_, revokeKey: revokeKey_ };
}

/** Ends a key and writes down who did it. Of a key that ends because of the one it descends from, that one is named. */
function revocation(
  keyId: string,
  { reason, ...said }: { operator: Operator; reason: string; partnerId: string; at: number },
  because = keyId,
): Statement[] {
  const detail = because === keyId ? { reason } : { reason, child_of: because };
  const change = { before: { revoked: false }, after: { revoked: true } };
  return [revokeKey(keyId, said.at), audit({ ...said, action: 'Keys.RevokeKey', subject: keyId, detail, ...change })];
}

function noSuchKey(): AdminError {
  return new AdminError(status.NOT_FOUND, 'there is no such key');
}

function normalAddresses(addresses: readonly string[]): string[] {
  const normal = addresses.map((address, at) => {
    const known = normalAddress(address);
    if (known === undefined) throw invalidField(`addresses[${at}]`, 'must be an IPv4 or IPv6 address or range.');
    return known;
  });
  return [...new Set(normal)];
}

function toMessage(key: ShownKey): PartnerKey {
  return create(PartnerKeySchema, {
    id: key.id,
    scopes: [...key.scopes],
    addresses: [...key.addresses],
    createdAt: timestampFromMs(key.createdAt),
    lastUsedAt: toTimestamp(key.usedAt),
    revokedAt: toTimestamp(key.revokedAt),
    createdByKeyId: key.createdBy ?? '',
  });
}

function toTimestamp(ms: number | undefined): Timestamp | undefined {
  return ms === undefined ? undefined : timestampFromMs(ms);
}
