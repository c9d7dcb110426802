import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { checkSuccessor, type KeyRing } from '../lib/key-ring.ts';
import { openSecret } from '../lib/link.ts';
import type { Logger } from '../lib/log.ts';
import type { Secret } from '../lib/settings.ts';
import type { WatchedFiles } from '../lib/watched-files.ts';
import { periodic, type Worker } from '../lib/worker.ts';
import { notedEveryMs, noteUse } from './table.ts';

/** The gateway's ring of secrets, with the worker that notes which one is current. */
export interface OpenRing {
  readonly ring: WatchedFiles<'secret', KeyRing>;
  readonly worker: Worker;
}

/** Opens the ring. A secret is noted before anything is made with it. */
export async function openRing(
  secret: Secret<KeyRing>,
  { database, clock, log }: { readonly database: Database; readonly clock: Clock; readonly log: Logger },
): Promise<OpenRing> {
  const note = ([current]: KeyRing) => database.write(noteUse(current.id, clock.now()));
  const ring = await openSecret({
    name: 'secret key',
    secret,
    check: checkSuccessor,
    prove: async (changed) => void (await note(changed)),
    log,
  });
  await note(ring.current);
  return { ring, worker: periodic('secret key use', notedEveryMs, () => note(ring.current)) };
}
