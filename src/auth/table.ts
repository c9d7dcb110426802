import { bytes, count, defineTable, flag, instant, longText, optional, type RowOf, text, whole } from '../db/table.ts';

/** Partners. A partner's row is the lock of everything the partner owns. A limit that is null is the default. */
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
    /** Names with commas between them; empty: nothing is enabled. */
    features: text(200),
  },
  primary: ['id'],
});

export type StoredPartner = RowOf<typeof partners>;

/** Partners' keys: of a key's secret there is a hash. */
export const apiKeys = defineTable({
  name: 'api_keys',
  columns: {
    partnerId: text(24),
    id: text(24),
    secretHash: bytes(32),
    /** Names with commas between them. */
    scopes: text(100),
    /** A JSON list. */
    addresses: longText(),
    createdAt: instant(),
    revokedAt: optional(instant()),
    /** Whether the id carries a MAC. Keys of earlier versions have none. */
    hasMac: flag(),
  },
  primary: ['partnerId', 'id'],
  indexes: { api_keys_without_mac: ['hasMac', 'revokedAt', 'id'] },
  unique: { api_keys_id: ['id'] },
});
