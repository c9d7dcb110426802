import type { KeyRing } from '../../../kit/key-ring.ts';
import type { Database } from '../../store/database.ts';
import { statement } from '../../store/statement.ts';
import { keyKeptMs } from '../../trading/submission/key-retention.ts';
import { countOpenObjects, type OpenObjects } from './open-objects.ts';
import { sealedSecrets, webhookSeal } from './sealed-endpoints.ts';
import { countKeySeals, type SealCounts } from './sealed-keys.ts';
import { countWalletSeals } from './sealed-wallets.ts';
import { notedEveryMs, readUses } from './table.ts';

/** A secret may have been current for so long after its last note, because the next note can be late. */
const unnotedMs = 2 * notedEveryMs;

/** What one secret is still needed for. */
interface KeyStatus extends OpenObjects {
  readonly id: string;
  readonly place: 'current' | 'not current' | 'not in the ring';
  /** Null if it was never noted as current: it is a next one, or only earlier versions used it. */
  readonly lastUsedAt: number | null;
  readonly webhookSecrets: number;
  readonly apiKeys: number;
  /** Seals of rows: of API keys and wallets. */
  readonly seals: number;
  /** Until then cursors and Idempotency-Keys may need it. */
  readonly digestsUntil: number;
}

interface RingStatus {
  readonly keys: readonly KeyStatus[];
  /** Webhook secrets that open under no key of the ring. */
  readonly closedSecrets: number;
  /** API keys with a MAC of a secret that was not noted: an earlier version made them. */
  readonly apiKeysOfUnknown: number;
  readonly keySeals: SealCounts;
  readonly walletSeals: SealCounts;
}

/** What each secret of the ring, and each one noted, is needed for. `now` is business time. */
export async function ringStatus(database: Database, ring: KeyRing, now: number): Promise<RingStatus> {
  const uses = await readUses(database);
  const sealed = new Map<string, number>();
  for await (const some of sealedSecrets(database, webhookSeal(ring))) {
    for (const { opened } of some) count(sealed, opened?.keyId ?? '', 1);
  }
  const macs = new Map<string, number>();
  const groups = statement(
    `SELECT mac_key, COUNT(*) AS found FROM api_keys WHERE has_mac = 1 AND revoked_at IS NULL GROUP BY mac_key`,
  );
  for (const { mac_key: id, found } of await database.read(groups)) count(macs, String(id ?? ''), Number(found));
  const keySeals = await countKeySeals(database, ring);
  const walletSeals = await countWalletSeals(database, ring);
  const useOf = new Map(uses.map((use) => [use.id, use]));
  // Before uses were noted, any key may have been current.
  const notedSince = uses[0]?.firstUsedAt ?? now;
  const ids = new Set([...ring, ...uses].map(({ id }) => id));
  const keys: KeyStatus[] = [];
  for (const id of ids) {
    const currentUntil = (useOf.get(id)?.lastUsedAt ?? notedSince) + unnotedMs;
    keys.push({
      id,
      place: placeOf(id, ring),
      lastUsedAt: useOf.get(id)?.lastUsedAt ?? null,
      webhookSecrets: sealed.get(id) ?? 0,
      apiKeys: macs.get(id) ?? 0,
      seals: (keySeals.bySecret.get(id) ?? 0) + (walletSeals.bySecret.get(id) ?? 0),
      digestsUntil: currentUntil + keyKeptMs,
      ...(await countOpenObjects(database, currentUntil)),
    });
  }
  return {
    keys,
    closedSecrets: sealed.get('') ?? 0,
    apiKeysOfUnknown: macs.get('') ?? 0,
    keySeals,
    walletSeals,
  };
}

/** The status as lines for people. `now` is business time. */
export function describeStatus(
  { keys, closedSecrets, apiKeysOfUnknown, keySeals, walletSeals }: RingStatus,
  now: number,
): string[] {
  return [
    ...keys.flatMap((key) => describeKey(key, now, apiKeysOfUnknown)),
    ...(closedSecrets > 0
      ? [`${closedSecrets} webhook secrets open under no key of the ring: put back the key they were sealed with`]
      : []),
    ...(apiKeysOfUnknown > 0
      ? [`${apiKeysOfUnknown} API keys were made by an earlier version, under a key not noted`]
      : []),
    ...sealLines('API keys', keySeals),
    ...sealLines('wallets', walletSeals),
    'not counted: notes at the broker, and backups. A restore needs the keys of their time: archive a removed key with them',
  ];
}

function sealLines(what: string, { unsealed, wrong }: SealCounts): string[] {
  return [
    ...(unsealed > 0 ? [`${unsealed} ${what} are not sealed: see keys seal`] : []),
    ...(wrong > 0 ? [`${wrong} ${what} have a wrong seal and are refused: keys seal names them`] : []),
  ];
}

function describeKey(
  { id, place, lastUsedAt, webhookSecrets, apiKeys, seals, digestsUntil: until, objects, applications }: KeyStatus,
  now: number,
  apiKeysOfUnknown: number,
): string[] {
  const used = lastUsedAt === null ? 'never noted as current' : `current until ${timeText(lastUsedAt)}`;
  const head = `key ${id}: ${place === 'current' ? 'current' : `${place}, ${used}`}`;
  const held = [
    ...(webhookSecrets > 0 ? [`${webhookSecrets} webhook secrets`] : []),
    ...(apiKeys > 0 ? [`${apiKeys} API keys`] : []),
    ...(seals > 0 ? [`${seals} seals of rows`] : []),
  ];
  if (place === 'current') return [head, ...held.map((what) => `  has ${what}`)];
  const maybe = apiKeysOfUnknown > 0 ? ['perhaps API keys of an earlier version'] : [];
  const needs = [
    ...[...held, ...maybe].map((what) => `for ${what}, until keys reseal`),
    ...(until > now ? [`for cursors and Idempotency-Keys, until ${timeText(until)}`] : []),
    ...(objects > 0 ? [`for the Idempotency-Keys of ${objects} objects that are not final, until they are`] : []),
    ...(applications > 0 ? [`for the documents of ${applications} applications, until they are decided`] : []),
  ];
  if (place === 'not in the ring') return [head, ...needs.map((need) => `  would be needed ${need}`)];
  return [head, ...(needs.length === 0 ? ['  can be removed'] : needs.map((need) => `  needed ${need}`))];
}

function placeOf(id: string, ring: KeyRing): KeyStatus['place'] {
  if (id === ring[0].id) return 'current';
  return ring.some((key) => key.id === id) ? 'not current' : 'not in the ring';
}

function timeText(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+/, '');
}

function count(counts: Map<string, number>, id: string, more: number): void {
  counts.set(id, (counts.get(id) ?? 0) + more);
}
