import { setTimeout as delay } from 'node:timers/promises';
import { statement } from '../../store/statement.ts';
import { sealAgain, sealedSecrets, webhookSeal } from './sealed-endpoints.ts';
import { resealKeys, restMs, type SealOptions } from './sealed-keys.ts';
import { resealWallets } from './sealed-wallets.ts';
import { readUses } from './table.ts';

const maxTogether = 200;

/**
 * Makes what is stored independent of former secrets: it seals webhook secrets and rows again, and lists API keys whose MAC a
 * former secret made as keys without one. It may run at any time, and again after it was killed: what is done is passed over.
 */
export async function reseal(options: SealOptions): Promise<void> {
  await sealSecretsAnew(options);
  await listKeys(options);
  await resealKeys(options);
  await resealWallets(options);
}

async function sealSecretsAnew({ database, ring, print }: SealOptions): Promise<void> {
  const seal = webhookSeal(ring);
  const counts = { again: 0, current: 0, changed: 0, closed: 0 };
  for await (const some of sealedSecrets(database, seal)) {
    for (const sealed of some) {
      if (sealed.opened === undefined) counts.closed += 1;
      else if (sealed.opened.keyId === ring[0].id) counts.current += 1;
      else if ((await database.write(sealAgain(seal, sealed, sealed.opened.text))) > 0) counts.again += 1;
      else counts.changed += 1;
    }
    print(
      `webhook secrets: ${counts.again} sealed again, ${counts.current} were current, ` +
        `${counts.changed} were changed meanwhile, ${counts.closed} open under no key of the ring`,
    );
    await delay(restMs);
  }
}

/**
 * The MAC is part of an API key, and what it was made from is not stored. So the key is listed as one without a MAC, and
 * processes find it in that list, as they do with keys of earlier versions.
 */
async function listKeys({ database, ring, print }: SealOptions): Promise<void> {
  const [current] = ring;
  // A key of unknown secret has the only secret there ever was.
  const wasOther = (await readUses(database)).some(({ id }) => id !== current.id);
  const isOther = wasOther || ring.length > 1 ? '(mac_key IS NULL OR mac_key <> ?)' : 'mac_key <> ?';
  let listed = 0;
  for (let after = ''; ; ) {
    const rows = await database.read(
      statement(
        `SELECT id FROM api_keys FORCE INDEX (api_keys_without_mac)
         WHERE has_mac = 1 AND revoked_at IS NULL AND id > ? ORDER BY id LIMIT ${maxTogether}`,
        after,
      ),
    );
    const ids = rows.map(({ id }) => String(id));
    const last = ids.at(-1);
    if (last === undefined) break;
    listed += await database.write(
      statement(
        `UPDATE api_keys FORCE INDEX (api_keys_id) SET has_mac = 0 WHERE id IN (?) AND has_mac = 1 AND ${isOther}`,
        ids,
        current.id,
      ),
    );
    print(`API keys: ${listed} listed as keys without a MAC`);
    after = last;
    await delay(restMs);
  }
}
