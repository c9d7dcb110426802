import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { AddScopesRequestSchema, Keys, type RevokeKeyRequest } from '../../../gen/marina/admin/v1/keys_pb.ts';
import { type Scope, ScopeSchema } from '../../../gen/marina/options/v1/options_pb.ts';
import { enumWords } from '../../../kit/enums.ts';
import type { Keys as SecretKeys } from '../../../kit/key-ring.ts';
import { areTooWide, normalAddresses, tooWide } from '../../edge/auth/key-addresses.ts';
import { activeChildren, maxActiveKeys, maxGenerations } from '../../edge/auth/key-rules.ts';
import type { KeySeals } from '../../edge/auth/key-seals.ts';
import {
  countActiveKeys,
  findShownKey,
  listKeyLines,
  listKeys,
  type ShownKey,
  toKeyLine,
  toShownKey,
} from '../../edge/auth/key-store.ts';
import { makeKey } from '../../edge/auth/keys.ts';
import { insertKey, revokeKey } from '../../edge/auth/store.ts';
import type { Environment } from '../../store/database.ts';
import { rowsFact } from '../../store/facts.ts';
import { type SqlRow, type Statement, statement } from '../../store/statement.ts';
import { type AuditEntry, audit } from './audit.ts';
import { type AdminCall, adminService, changeOwned, listed, requirePartner } from './call.ts';
import { AdminError, invalidField } from './errors.ts';
import { distinctScopes, movesMoney, scopesCall, seenScopes } from './key-scopes.ts';
import { approvedCall, askFor, type FourEyesParts, proposedWith } from './proposals/four-eyes.ts';

const scopeWords = enumWords<typeof Scope>(ScopeSchema);

/**
 * The operators' calls on partners' keys, and what approving further scopes does. `macKeys` make their MACs. `changed` notifies
 * all replicas that a key has ended or has other scopes.
 */
export function keyService(
  parts: FourEyesParts,
  macKeys: SecretKeys,
  keySeals: KeySeals,
  changed: (keyId: string) => void,
) {
  const { database, clock, ids } = parts;
  const adding = scopesCall(keySeals, changed);
  const isOn = parts.fourEyesAboveKobo !== undefined;

  const service = adminService(Keys, {
    async createKey({ partnerId, reason, ...request }, call) {
      const wanted = distinctScopes(request.scopes);
      const scopes = isOn ? wanted.filter((scope) => !movesMoney(scope)) : wanted;
      const addresses = normalAddresses(request.addresses);
      checkAddresses(addresses, database.environment);
      const { id, key: secret, secretHash, macKey } = makeKey(database.environment, macKeys, ids.keyHead());
      const createdAt = clock.now();
      const names = scopes.map((scope) => scopeWords.word(scope));
      const rest = wanted.filter((scope) => !scopes.includes(scope));
      const asked = create(AddScopesRequestSchema, { partnerId, keyId: id, scopes: rest, reason });
      const proposed =
        rest.length === 0 ? undefined : proposedWith(parts, adding, asked, seenScopes(names), call, createdAt);
      await changeOwned(database, partnerId, 'keys', rowsFact(countActiveKeys(partnerId)), ([counted]) => {
        if (Number(counted?.[0]?.active) >= maxActiveKeys) {
          throw new AdminError(status.FAILED_PRECONDITION, `the partner has ${maxActiveKeys} keys: revoke one first`);
        }
        return [
          insertKey({ id, partnerId, secretHash, macKey, scopes, addresses, createdAt }, keySeals),
          audit(call, createdAt, { partnerId, subject: id, detail: { reason }, after: { scopes: names, addresses } }),
          ...(proposed?.writes ?? []),
        ];
      });
      return { key: { id, scopes, addresses, createdAt }, secret, proposal: proposed?.proposal };
    },

    async addScopes(request, call) {
      const { result = false, proposal } = await askFor(parts, adding, request, call);
      return { changed: result, proposal };
    },

    async listKeys({ partnerId, beforeKeyId, limit }) {
      await requirePartner(database, partnerId);
      const { rows, hasMore } = await listed(limit, (most) =>
        database.read(listKeys(partnerId, beforeKeyId || undefined, most)),
      );
      return { keys: rows.map((row) => toMessage(toShownKey(row))), hasMore };
    },

    async revokeKey(request, call) {
      const ending = new Set([request.keyId]);
      try {
        const revoked = await (request.withChildren ? revokeWithDescendants : revokeOne)(request, call, ending);
        return { changed: revoked.revokedKeyIds.length > 0, ...revoked };
      } finally {
        // Called also if the outcome is unknown: the next use of a key then asks the database.
        for (const id of ending) changed(id);
      }
    },
  });
  return { service, action: approvedCall(parts, adding) };

  /** Revokes one key without waiting for its partner's lock. */
  function revokeOne({ keyId, reason }: RevokeKeyRequest, call: AdminCall): Promise<Revoked> {
    const find = statement('SELECT partner_id, revoked_at FROM api_keys WHERE id = ? FOR UPDATE', keyId);
    return database.transaction([find], ([rows]) => {
      const partnerId = ownerIn(rows);
      if (rows?.[0]?.revoked_at !== null) return { writes: [], result: { partnerId, revokedKeyIds: [] } };
      const writes = revocation(call, partnerId, keyId, { reason });
      return { writes, result: { partnerId, revokedKeyIds: [keyId] } };
    });
  }

  /** Revokes a key and its descendants, under its partner's lock, so that no other can be made meanwhile. */
  async function revokeWithDescendants(
    { keyId, reason }: RevokeKeyRequest,
    call: AdminCall,
    ending: Set<string>,
  ): Promise<Revoked> {
    const partnerId = ownerIn(await database.read(statement('SELECT partner_id FROM api_keys WHERE id = ?', keyId)));
    return database.inPartnerTransaction(partnerId, {
      touches: ['keys'],
      fact: rowsFact(findShownKey(partnerId, keyId), listKeyLines(partnerId, maxGenerations)),
      decide: ([own = [], lines = []]) => {
        const revoked = activeChildren(keyId, lines.map(toKeyLine));
        if (own[0]?.revoked_at === null) revoked.unshift(keyId);
        for (const id of revoked) ending.add(id);
        // The entry of a descendant names the key that it descends from.
        const detailOf = (id: string) => (id === keyId ? { reason } : { reason, child_of: keyId });
        const writes = revoked.flatMap((id) => revocation(call, partnerId, id, detailOf(id)));
        return { writes, result: { partnerId, revokedKeyIds: revoked } };
      },
    });
  }

  /** Ends a key and writes the audit entry. */
  function revocation(call: AdminCall, partnerId: string, keyId: string, detail: AuditEntry['detail']): Statement[] {
    const at = clock.now();
    const entry = { partnerId, subject: keyId, detail, before: { revoked: false }, after: { revoked: true } };
    return [revokeKey(partnerId, keyId, at), audit(call, at, entry)];
  }
}

/** The keys that a call ended, and whose they were. */
interface Revoked {
  readonly partnerId: string;
  readonly revokedKeyIds: readonly string[];
}

/** Throws INVALID_ARGUMENT unless a key may work from these addresses. */
function checkAddresses(addresses: readonly string[], environment: Environment): void {
  if (environment !== 'live') return;
  if (addresses.length === 0) throw invalidField('addresses', 'is required: a live key needs at least one.');
  const everywhere = addresses.findIndex((address) => address.endsWith('/0'));
  if (everywhere >= 0) {
    throw invalidField(`addresses[${everywhere}]`, 'must not be all addresses: a live key works from some only.');
  }
  if (areTooWide(addresses)) throw invalidField('addresses', tooWide);
}

/** The partner of a key that was found. Throws if there is none. */
function ownerIn([key]: readonly SqlRow[] = []): string {
  if (key === undefined) throw new AdminError(status.NOT_FOUND, 'there is no such key');
  return String(key.partner_id);
}

function toMessage(key: ShownKey) {
  return { ...key, lastUsedAt: key.usedAt, createdByKeyId: key.createdBy };
}
