import type { KeyRing } from '../../../kit/key-ring.ts';
import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { defineTable, instant, type RowOf, text } from '../../store/table.ts';

/**
 * When each of the gateway's secrets was current in any process, in business time. Digests name no secret, so this tells how
 * old what a secret digested can be. It keeps nothing of the secrets but their ids.
 */
export const secretKeys = defineTable({
  name: 'secret_keys',
  columns: { id: text(16), firstUsedAt: instant(), lastUsedAt: instant() },
  primary: ['id'],
});

type SecretKeyUse = RowOf<typeof secretKeys>;

/** How often a process notes which secret is current, in milliseconds. */
export const notedEveryMs = 60_000;

/** Notes that a secret is current. A later note of another process stays. */
export function noteUse(id: string, now: number): Statement {
  const { sql, values } = secretKeys.insert({ id, firstUsedAt: now, lastUsedAt: now });
  return { sql: `${sql} ON DUPLICATE KEY UPDATE last_used_at = GREATEST(last_used_at, VALUES(last_used_at))`, values };
}

/** The secrets that were current, oldest first. */
export async function readUses(database: Database): Promise<SecretKeyUse[]> {
  const rows = await database.read(
    statement(`SELECT ${secretKeys.all.list} FROM secret_keys ORDER BY first_used_at, id`),
  );
  return rows.map(secretKeys.all.read);
}

/** The secrets that were current and that a ring lacks, oldest first. */
export async function usesLackedBy(database: Database, ring: KeyRing): Promise<SecretKeyUse[]> {
  return (await readUses(database)).filter(({ id }) => !ring.some((key) => key.id === id));
}

const dayMs = 86_400_000;
/** For so long what a secret made is read. */
export const neededForMs = 30 * dayMs;

/**
 * Those of them that were current in the last 30 days of the database. After a restore that is before the backup: what the
 * broker was sent since can be sealed with one of them.
 */
export async function neededUsesLackedBy(database: Database, ring: KeyRing): Promise<SecretKeyUse[]> {
  const uses = await readUses(database);
  const since = Math.max(...uses.map(({ lastUsedAt }) => lastUsedAt)) - neededForMs;
  return uses.filter(({ id, lastUsedAt }) => lastUsedAt >= since && !ring.some((key) => key.id === id));
}
