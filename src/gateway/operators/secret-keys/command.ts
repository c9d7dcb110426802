import type { Reached } from '../../store/data-source.ts';
import { openForReading } from '../../store/database.ts';
import { reseal } from './reseal.ts';
import { type FirstSealOptions, sealKeys } from './sealed-keys.ts';
import { sealWallets } from './sealed-wallets.ts';
import { describeRing } from './status.ts';

const usage = `usage: node src/main.js keys status
       node src/main.js keys reseal
       node src/main.js keys seal [KEY_ID …]

status  says what each key of MARINA_SECRET_KEY is needed for, and which one can be removed.
reseal  seals webhook secrets and rows again with the current key, and makes API keys independent of the others. It may run
        while gateways do, and again after it was stopped. Then it prints the status.
seal    seals what versions before seals wrote, while MARINA_UNSEALED_ROWS accepts it: API keys, and ledgers after a walk that
        finds no fault. It prints each key with who made it and what it may do. A key without an entry of its creation is sealed
        only if it is named, and so is every key while rows without a seal are refused. It may run while gateways of any version
        do, and again after it was stopped. It ends with 1 if something is not sealed. Then it prints the status.`;

const verbs = ['status', 'reseal', 'seal'];

/** Runs `keys …`. Answers the exit code: 0, 1 if it failed or something is not sealed, 2 if it was called wrongly. */
export async function keysCommand(
  [verb, ...more]: string[],
  reach: () => Promise<Reached & Pick<FirstSealOptions, 'ring' | 'acceptsUnsealed'>>,
): Promise<number> {
  const isRight = verb === 'seal' ? more.every((id) => /^key_[a-z2-7]{20}$/.test(id)) : more.length === 0;
  if (!isRight || !verbs.includes(verb ?? '')) {
    console.error(usage);
    return 2;
  }
  const { ring, acceptsUnsealed, ...reached } = await reach();
  const database = await openForReading(reached);
  try {
    const options = { database, ring, acceptsUnsealed, print: console.log };
    if (verb === 'reseal') await reseal(options);
    const isSealed = verb !== 'seal' || (await sealAll(options, more));
    for (const line of await describeRing(database, ring, Date.now())) console.log(line);
    return isSealed ? 0 : 1;
  } catch (error) {
    console.error(error);
    return 1;
  } finally {
    await database.close();
  }
}

/** Seals keys and ledgers, also if one of them has something that cannot be sealed. */
async function sealAll(options: FirstSealOptions, named: readonly string[]): Promise<boolean> {
  const areKeysSealed = await sealKeys(options, named);
  return (await sealWallets(options)) && areKeysSealed;
}
