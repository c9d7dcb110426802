import { type Scope, ScopeSchema } from '../../../gen/marina/options/v1/options_pb.ts';
import { enumWords } from '../../../kit/enums.ts';
import { type SqlRow, type Statement, statement } from '../../store/statement.ts';
import { defineTable, instant, text } from '../../store/table.ts';
import { addressesFrom } from './key-addresses.ts';
import type { KeyLine } from './key-rules.ts';
import { scopeNames } from './store.ts';

const scopeWords = enumWords<typeof Scope>(ScopeSchema);

export interface ShownKey {
  readonly id: string;
  /** `UNSPECIFIED` for a scope of another version. */
  readonly scopes: readonly Scope[];
  readonly scopeNames: readonly string[];
  readonly addresses: readonly string[];
  readonly createdAt: number;
  /** When it was last used, if that is stored yet. */
  readonly usedAt: number | undefined;
  readonly revokedAt: number | undefined;
  /** The key it was made with; undefined if an operator made it. */
  readonly createdBy: string | undefined;
}

const shown = `SELECT k.partner_id, k.id, k.secret_hash, k.seal, k.scopes, k.addresses, k.created_at, k.revoked_at, u.used_at, c.by_key_id AS created_by
  FROM api_keys k FORCE INDEX (PRIMARY) LEFT JOIN key_uses u ON u.partner_id = k.partner_id AND u.key_id = k.id
    LEFT JOIN key_changes c ON c.partner_id = k.partner_id AND c.key_id = k.id AND c.action = 'created'`;

export function findShownKey(partnerId: string, id: string): Statement {
  return statement(`${shown} WHERE k.partner_id = ? AND k.id = ?`, partnerId, id);
}

/** Lists keys made before the given one, or all, newest first. */
export function listKeys(partnerId: string, before: string | undefined, most: number): Statement {
  const order = `ORDER BY k.id DESC LIMIT ${most}`;
  if (before === undefined) return statement(`${shown} WHERE k.partner_id = ? ${order}`, partnerId);
  return statement(`${shown} WHERE k.partner_id = ? AND k.id < ? ${order}`, partnerId, before);
}

export function toShownKey(row: SqlRow): ShownKey {
  const names = scopeNames(row.scopes);
  return {
    id: String(row.id),
    scopes: names.map((name) => scopeWords.value(name)),
    scopeNames: names,
    addresses: addressesFrom(row.addresses),
    createdAt: (row.created_at as Date).getTime(),
    usedAt: (row.used_at as Date | null)?.getTime(),
    revokedAt: (row.revoked_at as Date | null)?.getTime(),
    createdBy: row.created_by === null ? undefined : String(row.created_by),
  };
}

/** Counts a partner's active keys. The number is stable under the partner's lock. */
export function countActiveKeys(partnerId: string): Statement {
  return statement('SELECT COUNT(*) AS active FROM api_keys WHERE partner_id = ? AND revoked_at IS NULL', partnerId);
}

/**
 * Lists a partner's active keys and all their ancestors, each with the key it was made with, or null if an operator
 * made it. `generation` is 1 for an active key. Keys are never removed, so the list is complete up to
 * `mostGenerations`. Servers limit recursion by a setting, which is raised for this statement: MariaDB reads the first
 * comment, MySQL the hint.
 */
export function listKeyLines(partnerId: string, mostGenerations: number): Statement {
  const most = mostGenerations + 1;
  return statement(
    `/*M!100600 SET STATEMENT max_recursive_iterations = ${most} FOR */
    WITH RECURSIVE key_line (id, created_by, generation) AS (
      SELECT k.id, c.by_key_id, 1 FROM api_keys k
        LEFT JOIN key_changes c ON c.partner_id = k.partner_id AND c.key_id = k.id AND c.action = 'created'
        WHERE k.partner_id = ? AND k.revoked_at IS NULL
      UNION
      SELECT k.id, c.by_key_id, l.generation + 1 FROM key_line l
        JOIN api_keys k ON k.partner_id = ? AND k.id = l.created_by
        LEFT JOIN key_changes c ON c.partner_id = k.partner_id AND c.key_id = k.id AND c.action = 'created'
        WHERE l.generation < ${mostGenerations}
    )
    SELECT /*+ SET_VAR(cte_max_recursion_depth = ${most}) */ id, created_by, MIN(generation) AS generation
      FROM key_line GROUP BY id, created_by`,
    partnerId,
    partnerId,
  );
}

export function toKeyLine(row: SqlRow): KeyLine {
  const createdBy = row.created_by === null ? undefined : String(row.created_by);
  return { id: String(row.id), createdBy, isActive: Number(row.generation) === 1 };
}

/**
 * Partners' changes of their keys, for audit. Rows are only added, in the transaction of the change. Each key has one
 * row for its creation and one for its end.
 */
export const keyChanges = defineTable({
  name: 'key_changes',
  columns: {
    partnerId: text(24),
    keyId: text(24),
    action: text<'created' | 'revoked'>(8),
    at: instant(),
    /** The key that made the change. */
    byKeyId: text(24),
    requestId: text(36),
  },
  primary: ['partnerId', 'keyId', 'action'],
});
