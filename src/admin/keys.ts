import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import { makeKey } from '../auth/keys.ts';
import { insertKey, revokeKey } from '../auth/store.ts';
import type { Database } from '../db/database.ts';
import { statement } from '../db/statement.ts';
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
import { ScopeSchema } from '../gen/marina/options/v1/options_pb.ts';
import { mostActiveKeys, normalAddress } from '../keys/rules.ts';
import { countActiveKeys, listKeys, type ShownKey, toShownKey } from '../keys/store.ts';
import type { Clock } from '../lib/clock.ts';
import { enumWords } from '../lib/enums.ts';
import type { IdMaker } from '../lib/ids.ts';
import { audit } from './audit.ts';
import { AdminError, invalidField, type Operator, pageSize } from './call.ts';
import { requirePartner } from './credit.ts';

const scopeWords = enumWords(ScopeSchema);

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
    await requirePartner(database, partnerId);
    const { id, key: secret, secretHash } = makeKey(database.environment, macSecret, ids.keyHead());
    const createdAt = clock.now();
    await database.inPartner(partnerId, {
      touches: ['keys'],
      reads: [countActiveKeys(partnerId)],
      decide: (_, [counted]) => {
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
    const key = toMessage({ id, scopes, addresses, createdAt, usedAt: undefined, revokedAt: undefined });
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

  async function revokeKey_({ keyId, reason }: RevokeKeyRequest, operator: Operator): Promise<RevokeKeyResponse> {
    const find = statement('SELECT partner_id, revoked_at FROM api_keys WHERE id = ? FOR UPDATE', keyId);
    try {
      const changed = await database.transaction([find], ([rows]) => {
        const key = rows?.[0];
        if (key === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such key');
        if (key.revoked_at !== null) return { writes: [], result: false };
        const revokedAt = clock.now();
        const said = audit({
          at: revokedAt,
          operator,
          action: 'Keys.RevokeKey',
          partnerId: String(key.partner_id),
          subject: keyId,
          detail: { reason },
          before: { revoked: false },
          after: { revoked: true },
        });
        return { writes: [revokeKey(keyId, revokedAt), said], result: true };
      });
      return create(RevokeKeyResponseSchema, { changed });
    } finally {
      // Whether it is revoked may be unknown by now: whoever uses it next asks the database.
      ended(keyId);
    }
  }

  return { createKey, listKeys: listKeys_, revokeKey: revokeKey_ };
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
  });
}

function toTimestamp(ms: number | undefined): Timestamp | undefined {
  return ms === undefined ? undefined : timestampFromMs(ms);
}
