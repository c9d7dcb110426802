import type { KeyRing } from '../../../kit/key-ring.ts';
import type { Database } from '../../store/database.ts';
import { statement } from '../../store/statement.ts';
import { keyKeptMs } from '../../trading/submission/key-retention.ts';
import { secretOfLastSeal } from '../audit/walk.ts';
import { countOpenObjects } from './open-objects.ts';
import { sealedSecrets, webhookSeal } from './sealed-endpoints.ts';
import { countKeySeals, type SealCounts } from './sealed-keys.ts';
import { countWalletSeals } from './sealed-wallets.ts';
import { notedEveryMs, readUses } from './table.ts';

/** A secret may have been current for so long after its last note, because the next note can be late. */
const unnotedMs = 2 * notedEveryMs;

/** The uses of each secret of the ring, and of each one noted, as lines for people. `now` is business time. */
export async function describeRing(database: Database, ring: KeyRing, now: number): Promise<string[]> {
  const uses = await readUses(database);
  const webhookSecrets = await countWebhookSecrets(database, ring);
  const apiKeys = await countApiKeys(database);
  const keySeals = await countKeySeals(database, ring);
  const walletSeals = await countWalletSeals(database, ring);
  const auditSecret = await secretOfLastSeal(database);
  // An earlier version made those with a MAC of a secret that was not noted.
  const apiKeysOfUnknown = apiKeys.get('') ?? 0;
  const maybe = apiKeysOfUnknown > 0 ? ['perhaps API keys of an earlier version'] : [];
  const lines: string[] = [];
  for (const id of new Set([...ring, ...uses].map((secret) => secret.id))) {
    // It is a next one, or only earlier versions used it, if it was never noted as current.
    const lastUsedAt = uses.find((use) => use.id === id)?.lastUsedAt;
    const held = [
      ...some(webhookSecrets.get(id), 'webhook secrets'),
      ...some(apiKeys.get(id), 'API keys'),
      ...some((keySeals.bySecret.get(id) ?? 0) + (walletSeals.bySecret.get(id) ?? 0), 'seals of rows'),
    ];
    if (id === ring[0].id) {
      lines.push(`key ${id}: current`, ...held.map((what) => `  has ${what}`));
      continue;
    }
    // Before uses were noted, any key may have been current.
    const currentUntil = (lastUsedAt ?? uses[0]?.firstUsedAt ?? now) + unnotedMs;
    const needs = [
      ...[...held, ...maybe].map((what) => `for ${what}, until keys reseal`),
      ...(id === auditSecret ? ['for the last seal of the audit, until a gateway renews it within two minutes'] : []),
      ...(await digestNeeds(database, currentUntil, now)),
    ];
    const isInRing = ring.some((key) => key.id === id);
    const used = lastUsedAt === undefined ? 'never noted as current' : `current until ${timeText(lastUsedAt)}`;
    lines.push(`key ${id}: ${isInRing ? 'not current' : 'not in the ring'}, ${used}`);
    if (isInRing && needs.length === 0) lines.push('  can be removed');
    lines.push(...needs.map((need) => `  ${isInRing ? 'needed' : 'would be needed'} ${need}`));
  }
  const closed = 'webhook secrets open under no key of the ring: put back the key they were sealed with';
  return [
    ...lines,
    ...some(webhookSecrets.get(''), closed),
    ...some(apiKeysOfUnknown, 'API keys were made by an earlier version, under a key not noted'),
    ...sealLines('API keys', keySeals),
    ...sealLines('wallets', walletSeals),
    'not counted: notes at the broker, and backups. A restore needs the keys of their time: archive a removed key with them',
  ];
}

/** The uses of a secret that was current until then, because of digests. */
async function digestNeeds(database: Database, currentUntil: number, now: number): Promise<string[]> {
  const until = currentUntil + keyKeptMs;
  const { objects, applications } = await countOpenObjects(database, currentUntil);
  return [
    ...(until > now ? [`for cursors and Idempotency-Keys, until ${timeText(until)}`] : []),
    ...(objects > 0 ? [`for the Idempotency-Keys of ${objects} objects that are not final, until they are`] : []),
    ...(applications > 0 ? [`for the documents of ${applications} applications, until they are decided`] : []),
  ];
}

/** Counts webhook secrets by the id of the secret that they are sealed with; empty: none of the ring. */
async function countWebhookSecrets(database: Database, ring: KeyRing): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for await (const batch of sealedSecrets(database, webhookSeal(ring))) {
    for (const { opened } of batch) counts.set(opened?.keyId ?? '', (counts.get(opened?.keyId ?? '') ?? 0) + 1);
  }
  return counts;
}

/** Counts API keys by the id of the secret that their MAC is made with; empty: none that was noted. */
export async function countApiKeys(database: Database): Promise<ReadonlyMap<string, number>> {
  const groups = await database.read(
    statement(
      `SELECT mac_key, COUNT(*) AS found FROM api_keys WHERE has_mac = 1 AND revoked_at IS NULL GROUP BY mac_key`,
    ),
  );
  return new Map(groups.map(({ mac_key: id, found }) => [String(id ?? ''), Number(found)]));
}

function sealLines(what: string, { unsealed, wrong }: SealCounts): string[] {
  return [
    ...some(unsealed, `${what} are not sealed: see keys seal`),
    ...some(wrong, `${what} have a wrong seal and are refused: keys seal names them`),
  ];
}

/** How many there are of something, if there are any. */
function some(count: number | undefined, what: string): string[] {
  return count !== undefined && count > 0 ? [`${count} ${what}`] : [];
}

function timeText(at: number): string {
  return new Date(at).toISOString().replace(/\.\d+/, '');
}
