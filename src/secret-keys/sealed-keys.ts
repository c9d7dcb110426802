import { setTimeout as delay } from 'node:timers/promises';
import { KeySeals, keySealUse, type SealedKey, toSealedKey } from '../auth/key-seals.ts';
import { apiKeys } from '../auth/store.ts';
import type { Database } from '../db/database.ts';
import { type SqlRow, type Statement, statement } from '../db/statement.ts';
import { type KeyRing, keysFor } from '../lib/key-ring.ts';
import { fixed } from '../lib/watched-files.ts';

export interface SealOptions {
  readonly database: Database;
  readonly ring: KeyRing;
  readonly print: (line: string) => void;
}

const mostTogether = 200;
/** Between two batches, so that traffic goes first. */
export const restMs = 20;

/** An active key, and who made it. */
interface FoundKey {
  readonly key: SealedKey;
  readonly seal: Buffer | null;
  /** An operator's name or a key's id; undefined: no entry says so. */
  readonly madeBy: string | undefined;
}

/**
 * Seals API keys that an earlier version made, if an entry of the audit or of the partner's changes says who made them, or if
 * they are named. It may run at any time, and again after it was killed. Answers whether every active key is sealed.
 */
export async function sealKeys({ database, ring, print }: SealOptions, named: readonly string[]): Promise<boolean> {
  const seals = sealsUnder(ring, database);
  const counts = { sealed: 0, before: 0, changed: 0, left: 0 };
  for await (const some of activeKeys(database)) {
    for (const { key, seal, madeBy } of some) {
      const proof = seals.prove(key, seal);
      const isKnown = madeBy !== undefined || named.includes(key.id);
      if (proof === 'sealed') counts.before += 1;
      else if (proof === 'forged' || !isKnown) {
        counts.left += 1;
        print(`${key.id} of ${key.partnerId} is not sealed: ${proof === 'forged' ? wrongSeal : noEntry}`);
      } else if ((await database.write(saveSeal(key, null, seals.make(key)))) > 0) {
        counts.sealed += 1;
        print(`${key.id} of ${key.partnerId} is sealed; made by ${madeBy ?? 'nobody known'}`);
      } else counts.changed += 1;
    }
    await delay(restMs);
  }
  print(
    `API keys: ${counts.sealed} sealed, ${counts.before} were sealed, ${counts.changed} were changed meanwhile, ` +
      `${counts.left} are not sealed`,
  );
  return counts.left === 0;
}

const wrongSeal =
  'its row was changed, or its key left MARINA_SECRET_KEY. It is refused: revoke it, or put the key back';
const noEntry = 'no entry says who made it. Revoke it, or name it to this command if you know it';

/** Seals the keys again that are sealed with a former secret. */
export async function resealKeys({ database, ring, print }: SealOptions): Promise<void> {
  const seals = sealsUnder(ring, database);
  const counts = { again: 0, current: 0, changed: 0, wrong: 0 };
  for await (const some of activeKeys(database)) {
    for (const { key, seal } of some) {
      if (seal === null) continue;
      const secret = seals.secretOf(key, seal);
      if (secret === undefined) counts.wrong += 1;
      else if (secret === ring[0].id) counts.current += 1;
      else if ((await database.write(saveSeal(key, seal, seals.make(key)))) > 0) counts.again += 1;
      else counts.changed += 1;
    }
    print(
      `seals of API keys: ${counts.again} made again, ${counts.current} were current, ` +
        `${counts.changed} were changed meanwhile, ${counts.wrong} are wrong under every key of the ring`,
    );
    await delay(restMs);
  }
}

/** What seals some rows: how many each secret of the ring, by its id; how many have none, and how many a wrong one. */
export interface SealCounts {
  readonly bySecret: ReadonlyMap<string, number>;
  readonly unsealed: number;
  readonly wrong: number;
}

export async function countKeySeals(database: Database, ring: KeyRing): Promise<SealCounts> {
  const seals = sealsUnder(ring, database);
  const bySecret = new Map<string, number>();
  const counts = { unsealed: 0, wrong: 0 };
  for await (const some of activeKeys(database)) {
    for (const { key, seal } of some) {
      const secret = seals.secretOf(key, seal);
      if (secret !== undefined) bySecret.set(secret, (bySecret.get(secret) ?? 0) + 1);
      else counts[seal === null ? 'unsealed' : 'wrong'] += 1;
    }
  }
  return { bySecret, ...counts };
}

async function* activeKeys(database: Database): AsyncGenerator<readonly FoundKey[]> {
  for (let after = ''; ; ) {
    const rows = await database.read(
      statement(
        `SELECT k.partner_id, k.id, k.secret_hash, k.scopes, k.addresses, k.seal, COALESCE(
            (SELECT MIN(a.operator) FROM audit_entries a FORCE INDEX (audit_entries_subject)
              WHERE a.subject = k.id AND a.action = 'Keys.CreateKey' AND a.partner_id = k.partner_id),
            (SELECT c.by_key_id FROM key_changes c
              WHERE c.partner_id = k.partner_id AND c.key_id = k.id AND c.action = 'created')) AS made_by
          FROM api_keys k FORCE INDEX (api_keys_id)
          WHERE k.id > ? AND k.revoked_at IS NULL ORDER BY k.id LIMIT ${mostTogether}`,
        after,
      ),
    );
    yield rows.map(toFoundKey);
    const last = rows.at(-1);
    if (last === undefined) return;
    after = String(last.id);
  }
}

function toFoundKey(row: SqlRow): FoundKey {
  return {
    key: toSealedKey(row),
    seal: row.seal instanceof Buffer ? row.seal : null,
    madeBy: row.made_by === null ? undefined : String(row.made_by),
  };
}

/** Saves a key's seal, unless the row is another than the one that was read. */
function saveSeal(key: SealedKey, before: Buffer | null, seal: Buffer): Statement {
  return apiKeys.set({ ...key, seal: before }, { seal });
}

function sealsUnder(ring: KeyRing, database: Database): KeySeals {
  return new KeySeals(keysFor(fixed(ring), keySealUse), database.environment, false);
}
