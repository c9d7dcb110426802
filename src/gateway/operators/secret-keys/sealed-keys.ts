import { setTimeout as delay } from 'node:timers/promises';
import { type KeyRing, keysFor } from '../../../kit/key-ring.ts';
import { fixed } from '../../../kit/watched-files.ts';
import { KeySeals, keySealUse, type SealedKey } from '../../edge/auth/key-seals.ts';
import { apiKeys } from '../../edge/auth/store.ts';
import type { Database } from '../../store/database.ts';
import { type Statement, statement } from '../../store/statement.ts';
import { type KeyOrigin, readKeyOrigin } from './key-origin.ts';

export interface SealOptions {
  readonly database: Database;
  readonly ring: KeyRing;
  readonly print: (line: string) => void;
}

/** How `keys seal` runs. */
export interface FirstSealOptions extends SealOptions {
  /** Whether rows without a seal are accepted. If not, no gateway wrote such a row, or somebody took its seal away. */
  readonly acceptsUnsealed: boolean;
}

const maxTogether = 200;
/** Between two batches, so that traffic goes first. */
export const restMs = 20;

const foundKey = apiKeys.only('partnerId', 'id', 'secretHash', 'scopes', 'addresses', 'createdAt', 'seal');

/** An active key. */
interface FoundKey {
  readonly key: SealedKey;
  readonly createdAt: number;
  readonly seal: Buffer | null;
}

/**
 * Seals API keys that have no seal: those that are named, and, while rows without a seal are accepted, those that an entry of
 * the audit or of the partner's changes says who made. Once such rows are refused, a key without a seal is one whose row
 * somebody changed, so no key is sealed by itself. A key whose row differs from the audit's entry of its creation is never
 * sealed. It may run at any time, and again after it was killed. Answers whether every active key is sealed.
 */
export async function sealKeys(options: FirstSealOptions, named: readonly string[]): Promise<boolean> {
  const { database, ring, print } = options;
  const seals = sealsUnder(ring, database);
  const counts = { sealed: 0, before: 0, changed: 0, left: 0 };
  for await (const some of activeKeys(database)) {
    for (const found of some) {
      const { key, seal } = found;
      const proof = seals.prove(key, seal);
      if (proof === 'sealed') {
        counts.before += 1;
        continue;
      }
      const origin = await readKeyOrigin(database, key);
      const why = proof === 'forged' ? wrongSeal : whyNot(origin, named.includes(key.id), options);
      if (why !== undefined) {
        counts.left += 1;
        print(printable(`${key.id} of ${key.partnerId} is not sealed: ${why}`));
      } else if ((await database.write(saveSeal(key, null, seals.make(key)))) > 0) {
        counts.sealed += 1;
        print(printable(`${key.id} of ${key.partnerId} is sealed; ${described(found, origin)}`));
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
const isRefused =
  'it has no seal, and MARINA_UNSEALED_ROWS refuses such rows. Outside an upgrade somebody changed its row: revoke it and make another';
const otherFacts =
  'its scopes or addresses are not those of the entry of the audit that says who made it. Revoke it and make another';

/** Why a key without a seal must not be sealed; undefined: it may. */
function whyNot(
  { madeBy, differs }: KeyOrigin,
  isNamed: boolean,
  { acceptsUnsealed }: FirstSealOptions,
): string | undefined {
  if (differs) return otherFacts;
  if (isNamed) return undefined;
  if (!acceptsUnsealed) return isRefused;
  return madeBy === undefined ? noEntry : undefined;
}

/** What an operator needs to judge a key. */
function described({ key, createdAt }: FoundKey, { madeBy }: KeyOrigin): string {
  return `made by ${madeBy ?? 'nobody known'} at ${new Date(createdAt).toISOString()}; scopes ${key.scopes}; addresses ${key.addresses}`;
}

/** What somebody else may have written to the database must not steer the terminal, or look like another line. */
function printable(line: string): string {
  return line.replace(/\p{C}/gu, '?');
}

/** Seals the keys again that are sealed with a former secret. */
export function resealKeys({ database, ring, print }: SealOptions): Promise<void> {
  const seals = sealsUnder(ring, database);
  return resealRows('API keys', activeKeys(database), print, async ({ key, seal }) => {
    if (seal === null) return undefined;
    const secret = seals.secretOf(key, seal);
    if (secret === undefined) return 'wrong';
    if (secret === ring[0].id) return 'current';
    return (await database.write(saveSeal(key, seal, seals.make(key)))) > 0 ? 'again' : 'changed';
  });
}

/** Seals rows again by `resealRow`, batch by batch, and prints what became of them. Its answer for a row without a seal is undefined. */
export async function resealRows<Row>(
  what: string,
  batches: AsyncIterable<readonly Row[]>,
  print: (line: string) => void,
  resealRow: (row: Row) => Promise<'again' | 'current' | 'changed' | 'wrong' | undefined>,
): Promise<void> {
  const counts = { again: 0, current: 0, changed: 0, wrong: 0 };
  for await (const some of batches) {
    for (const row of some) {
      const outcome = await resealRow(row);
      if (outcome !== undefined) counts[outcome] += 1;
    }
    print(
      `seals of ${what}: ${counts.again} made again, ${counts.current} were current, ` +
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
        `SELECT ${foundKey.list} FROM api_keys FORCE INDEX (api_keys_id)
          WHERE id > ? AND revoked_at IS NULL ORDER BY id LIMIT ${maxTogether}`,
        after,
      ),
    );
    const some = rows.map(foundKey.read).map(({ createdAt, seal, ...key }) => ({ key, createdAt, seal }));
    yield some;
    const last = some.at(-1);
    if (last === undefined) return;
    after = last.key.id;
  }
}

/** Saves a key's seal, unless the row is another than the one that was read. */
function saveSeal(key: SealedKey, before: Buffer | null, seal: Buffer): Statement {
  return apiKeys.set({ ...key, seal: before }, { seal });
}

function sealsUnder(ring: KeyRing, database: Database): KeySeals {
  return new KeySeals(keysFor(fixed(ring), keySealUse), database.environment, false);
}
