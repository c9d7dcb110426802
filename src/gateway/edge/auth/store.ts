import { type Feature, FeatureSchema, Scope, ScopeSchema } from '../../../gen/marina/options/v1/options_pb.ts';
import { enumWords } from '../../../kit/enums.ts';
import { rowSealLength } from '../../../kit/key-ring.ts';
import { type SqlRow, type Statement, statement } from '../../store/statement.ts';
import {
  bytes,
  bytesUpTo,
  count,
  defineTable,
  flag,
  instant,
  longText,
  optional,
  type RowOf,
  text,
  whole,
} from '../../store/table.ts';
import type { PartnerLimits } from './caller.ts';
import { addressesFrom } from './key-addresses.ts';
import type { KeySeals } from './key-seals.ts';

/** Partners. A partner's row is the lock for everything the partner owns. A null limit means the default. */
export const partners = defineTable({
  name: 'partners',
  columns: {
    id: text(24),
    name: text(200),
    state: text(16),
    /** Counts the partner's events. */
    version: whole(),
    requestsPerSecond: optional(count()),
    requestsBurst: optional(count()),
    requestsUnderWay: optional(count()),
    ordersKoboPerDay: optional(whole()),
    allocationsKoboPerDay: optional(whole()),
    createdAt: instant(),
    /** Names separated by commas; empty if no feature is enabled. */
    features: text(200),
    /** A withdrawal of more kobo waits until operators release it; null: none waits. */
    withdrawalReleaseAboveKobo: optional(whole()),
  },
  primary: ['id'],
});

export type StoredPartner = RowOf<typeof partners>;

/** Partners' keys. Only a hash of the secret is stored. */
export const apiKeys = defineTable({
  name: 'api_keys',
  columns: {
    partnerId: text(24),
    id: text(24),
    secretHash: bytes(32),
    /** Names separated by commas. */
    scopes: text(100),
    /** A JSON list. */
    addresses: longText(),
    createdAt: instant(),
    revokedAt: optional(instant()),
    /** False for keys of earlier versions, and for those whose MAC was made with a former secret. */
    hasMac: flag(),
    /** The id of the gateway's secret that its MAC was made with; null for keys of earlier versions. */
    macKey: optional(text(16)),
    /** Proves the row (`KeySeals`); null for keys that versions before seals made. */
    seal: optional(bytesUpTo(rowSealLength)),
  },
  primary: ['partnerId', 'id'],
  indexes: { api_keys_without_mac: ['hasMac', 'revokedAt', 'id'] },
  unique: { api_keys_id: ['id'] },
});

const scopeWords = enumWords<typeof Scope>(ScopeSchema);
const featureWords = enumWords<typeof Feature>(FeatureSchema);

const scopesFrom = (names: unknown) => scopeNames(names).map((name) => scopeWords.value(name));

/** The names of a key's scopes, as its row has them. */
export function scopeNames(names: unknown): string[] {
  return String(names) === '' ? [] : String(names).split(',');
}

/** Limits of a partner without agreed values. Amounts in kobo. */
export const defaultLimits: PartnerLimits = {
  requestsPerSecond: 20,
  requestsBurst: 40,
  requestsUnderWay: 5,
  ordersKoboPerDay: 1_000_000_000n,
  allocationsKoboPerDay: 5_000_000_000n,
};

/** A key as stored, with its partner's limits and features. */
export interface StoredKey {
  readonly id: string;
  readonly partnerId: string;
  readonly partnerActive: boolean;
  readonly secretHash: Buffer;
  readonly scopes: ReadonlySet<Scope>;
  readonly features: ReadonlySet<Feature>;
  readonly addresses: readonly string[];
  readonly revoked: boolean;
  /** Whether its row is proven, or need not be. */
  readonly isProven: boolean;
  readonly limits: PartnerLimits;
}

/**
 * Finds a key with its partner. It is revoked if its row says so, or one of the entries that are written with a revocation: the
 * gateway's database account can set a column back, but can change no entry.
 */
export function findKey(id: string): Statement {
  return statement(
    `SELECT k.id, k.partner_id, k.secret_hash, k.scopes, k.addresses, k.seal,
      k.revoked_at IS NOT NULL
      OR EXISTS (SELECT 1 FROM key_changes c
        WHERE c.partner_id = k.partner_id AND c.key_id = k.id AND c.action = 'revoked')
      OR EXISTS (SELECT 1 FROM audit_entries a FORCE INDEX (audit_entries_subject)
        WHERE a.subject = k.id AND a.action = 'Keys.RevokeKey') AS is_revoked, p.state, p.features,
      p.requests_per_second, p.requests_burst, p.requests_under_way, p.orders_kobo_per_day, p.allocations_kobo_per_day
     FROM api_keys k JOIN partners p ON p.id = k.partner_id WHERE k.id = ?`,
    id,
  );
}

export function toStoredKey(row: SqlRow, seals: KeySeals): StoredKey {
  return {
    id: String(row.id),
    partnerId: String(row.partner_id),
    partnerActive: row.state === 'active',
    secretHash: row.secret_hash as Buffer,
    // A scope of another version is `UNSPECIFIED`, and grants nothing.
    scopes: new Set(scopesFrom(row.scopes).filter((scope) => scope !== Scope.UNSPECIFIED)),
    features: toFeatures(row),
    addresses: addressesFrom(row.addresses),
    revoked: Number(row.is_revoked) !== 0,
    isProven: seals.accepts(row),
    limits: toLimits(row),
  };
}

/** A partner's features. Features of another version are left out. */
export function toFeatures(row: { readonly features?: unknown }): Set<Feature> {
  const words = featureNames(row);
  return new Set(
    FeatureSchema.values
      .map(({ number }) => number as Feature)
      .filter((value) => value !== 0 && words.includes(featureWords.word(value))),
  );
}

function featureNames(row: { readonly features?: unknown }): string[] {
  return String(row.features)
    .split(',')
    .filter((name) => name !== '');
}

/** Features in the form of a partner's row. */
export function featureList(features: readonly Feature[]): string {
  return features.map((feature) => featureWords.word(feature)).join(',');
}

/** The same for a change: features of another version stay as they are. */
export function changedFeatureList(features: readonly Feature[], row: Pick<StoredPartner, 'features'>): string {
  const unknown = featureNames(row).filter((name) => !featureWords.knows(name));
  return [...features.map((feature) => featureWords.word(feature)), ...unknown].join(',');
}

/** A partner's limits: the agreed ones, and defaults for the others. */
function toLimits(row: SqlRow): PartnerLimits {
  const agreed = partnerLimits.read(row);
  return {
    requestsPerSecond: agreed.requestsPerSecond ?? defaultLimits.requestsPerSecond,
    requestsBurst: agreed.requestsBurst ?? defaultLimits.requestsBurst,
    requestsUnderWay: agreed.requestsUnderWay ?? defaultLimits.requestsUnderWay,
    ...toDayLimits(row),
  };
}

const dayLimits = partners.only('ordersKoboPerDay', 'allocationsKoboPerDay');
const partnerLimits = partners.only('requestsPerSecond', 'requestsBurst', 'requestsUnderWay');

/** The limits per day, which a locked partner's row has. */
export function toDayLimits(row: SqlRow): Pick<PartnerLimits, 'ordersKoboPerDay' | 'allocationsKoboPerDay'> {
  const { ordersKoboPerDay, allocationsKoboPerDay } = dayLimits.read(row);
  return {
    ordersKoboPerDay: ordersKoboPerDay ?? defaultLimits.ordersKoboPerDay,
    allocationsKoboPerDay: allocationsKoboPerDay ?? defaultLimits.allocationsKoboPerDay,
  };
}

/** Lists the active keys without a MAC, from the index alone. */
export function listKeysWithoutMac(most: number): Statement {
  return statement(`SELECT id FROM api_keys WHERE has_mac = 0 AND revoked_at IS NULL LIMIT ${most}`);
}

export interface NewPartner {
  readonly id: string;
  readonly name: string;
  /** The agreed limits; the others are defaults. */
  readonly limits: Partial<PartnerLimits>;
  readonly features: readonly Feature[];
  readonly createdAt: number;
}

export function insertPartner({ id, name, limits, features, createdAt }: NewPartner): Statement {
  return partners.insert({
    id,
    name,
    state: 'active',
    version: 0n,
    ...agreed(limits),
    features: featureList(features),
    createdAt,
    withdrawalReleaseAboveKobo: null,
  });
}

/** Saves a partner's agreed limits. Absent ones become the default. */
export function saveLimits(id: string, limits: Partial<PartnerLimits>): Statement {
  return partners.set({ id }, agreed(limits));
}

const limitNames = Object.keys(defaultLimits) as (keyof PartnerLimits)[];

function agreed(limits: Partial<PartnerLimits>) {
  const columns = limitNames.map((name) => [name, limits[name] ?? null]);
  return Object.fromEntries(columns) as Pick<StoredPartner, keyof PartnerLimits>;
}

export interface NewKey {
  readonly id: string;
  readonly partnerId: string;
  readonly secretHash: Buffer;
  readonly macKey: string;
  readonly scopes: readonly Scope[];
  readonly addresses: readonly string[];
  readonly createdAt: number;
}

/** Stores a key of this version, which has a MAC and a seal. */
export function insertKey({ scopes, addresses, ...key }: NewKey, seals: KeySeals): Statement {
  const sealed = {
    ...key,
    scopes: scopes.map((scope) => scopeWords.word(scope)).join(','),
    addresses: JSON.stringify(addresses),
  };
  return apiKeys.insert({ ...sealed, revokedAt: null, hasMac: true, seal: seals.make(sealed) });
}

/** Revokes a key that is not revoked. */
export function revokeKey(partnerId: string, id: string, at: number): Statement {
  return apiKeys.set({ partnerId, id, revokedAt: null }, { revokedAt: at });
}

/** The last uses of keys. A table of its own, so that noting a use never waits for the row of a key. */
export const keyUses = defineTable({
  name: 'key_uses',
  columns: { partnerId: text(24), keyId: text(24), usedAt: instant() },
  primary: ['partnerId', 'keyId'],
});

export type KeyUse = RowOf<typeof keyUses>;

/** Stores uses of keys. A later use that another replica stored stays. */
export function saveKeyUses(uses: readonly KeyUse[]): Statement {
  const { sql, values } = keyUses.insert(...uses);
  return { sql: `${sql} ON DUPLICATE KEY UPDATE used_at = GREATEST(used_at, VALUES(used_at))`, values };
}
