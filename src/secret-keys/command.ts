import type { Reached } from '../db/data-source.ts';
import { openForReading } from '../db/database.ts';
import type { KeyRing } from '../lib/key-ring.ts';
import { reseal } from './reseal.ts';
import { describeStatus, ringStatus } from './status.ts';

const usage = `usage: node src/main.js keys status
       node src/main.js keys reseal

status  says what each key of MARINA_SECRET_KEY is needed for, and which one can be removed.
reseal  seals webhook secrets again with the current key, and makes API keys independent of the others. It may run while
        gateways do, and again after it was stopped. Then it prints the status.`;

/** Runs `keys …`. Answers the exit code: 0, 1 if it failed, 2 if it was called wrongly. */
export async function keysCommand(
  [verb, ...more]: string[],
  reach: () => Promise<Reached & { readonly ring: KeyRing }>,
): Promise<number> {
  if ((verb !== 'status' && verb !== 'reseal') || more.length > 0) {
    console.error(usage);
    return 2;
  }
  const { ring, ...reached } = await reach();
  const database = await openForReading(reached);
  try {
    if (verb === 'reseal') await reseal({ database, ring, print: console.log });
    const now = Date.now();
    for (const line of describeStatus(await ringStatus(database, ring, now), now)) console.log(line);
    return 0;
  } catch (error) {
    console.error(error);
    return 1;
  } finally {
    await database.close();
  }
}
