import type { Clock } from '../../../kit/clock.ts';
import { checkSuccessor, type KeyRing } from '../../../kit/key-ring.ts';
import { openSecret } from '../../../kit/link.ts';
import type { Logger } from '../../../kit/log.ts';
import type { Secret } from '../../../kit/settings.ts';
import { RefusedChange, type WatchedFiles } from '../../../kit/watched-files.ts';
import { periodic, type Worker } from '../../../kit/worker.ts';
import type { Database } from '../../store/database.ts';
import { countApiKeys } from './status.ts';
import { neededForMs, neededUsesLackedBy, notedEveryMs, noteUse, usesLackedBy } from './table.ts';

/** A secret that was current so short ago may be current in another process, which seals and digests with it. */
const justUsedMs = 5 * 60_000;

/** The gateway's ring of secrets, with the worker that notes which one is current. */
export interface OpenRing {
  readonly ring: WatchedFiles<'secret', KeyRing>;
  readonly worker: Worker;
}

/**
 * Opens the ring. A secret is noted before anything is made with it. Throws if the ring lacks one that was current a moment
 * ago: it would refuse API keys and repeat requests that were made with it. While the gateway runs, a changed ring is refused if it
 * lacks one that was current within the last 30 days, because its file has lost a line, and the next start could fail.
 */
export async function openRing(
  secret: Secret<KeyRing>,
  { database, clock, log }: { readonly database: Database; readonly clock: Clock; readonly log: Logger },
): Promise<OpenRing> {
  const note = ([current]: KeyRing) => database.write(noteUse(current.id, clock.now()));
  const ring = await openSecret({
    name: 'secret key',
    secret,
    check: checkSuccessor,
    prove: async (changed) => {
      await requireNeeded(database, changed, ring.current, clock.now());
      await note(changed);
    },
    log,
  });
  const now = clock.now();
  for (const { id, lastUsedAt } of await usesLackedBy(database, ring.current)) {
    if (lastUsedAt > now - justUsedMs) throw new Error(`${lackOf(id, lastUsedAt)}: ${remedy}`);
    if (lastUsedAt < now - neededForMs) continue;
    const about = { keyId: id, lastUsedAt: new Date(lastUsedAt).toISOString() };
    log.warn(about, 'MARINA_SECRET_KEY lacks a key that was current within the last 30 days');
  }
  await note(ring.current);
  return { ring, worker: periodic('secret key use', notedEveryMs, () => note(ring.current)) };
}

/**
 * Notes that every secret of the ring is needed from now on, as after a restore from a backup. Throws, and notes nothing, if
 * the ring lacks a secret that was current in the 30 days before the backup: what the broker was sent after it can be sealed
 * with that one.
 */
export async function noteRestored(database: Database, ring: KeyRing, now: number): Promise<void> {
  for (const { id, lastUsedAt } of await neededUsesLackedBy(database, ring)) {
    throw new Error(`${lackOf(id, lastUsedAt)}: ${remedy}`);
  }
  for (const { id } of ring) await database.write(noteUse(id, now));
}

/**
 * Throws if a changed ring lacks a secret that was current so lately that what it made is still read, or a secret of the former
 * ring that API keys are still made with.
 */
async function requireNeeded(database: Database, ring: KeyRing, former: KeyRing, now: number): Promise<void> {
  const lacked = await usesLackedBy(database, ring);
  const needed = lacked.findLast(({ lastUsedAt }) => lastUsedAt >= now - neededForMs);
  if (needed !== undefined) throw new RefusedChange(`${lackOf(needed.id, needed.lastUsedAt)}: ${remedy}`);
  const apiKeys = await countApiKeys(database);
  for (const { id } of former) {
    const count = ring.some((key) => key.id === id) ? 0 : (apiKeys.get(id) ?? 0);
    if (count > 0) {
      throw new RefusedChange(
        `MARINA_SECRET_KEY lacks the key ${id}, which ${count} API keys need: run keys reseal first`,
      );
    }
  }
}

const remedy = 'add it, or delete its row of secret_keys if it is destroyed for good, or a wrong clock wrote that time';

function lackOf(id: string, lastUsedAt: number): string {
  return `MARINA_SECRET_KEY lacks the key ${id}, which was current until ${new Date(lastUsedAt).toISOString()}`;
}
