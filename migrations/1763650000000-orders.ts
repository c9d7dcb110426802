import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Partners, keys, orders, their events and the bookkeeping of background work. */
export class Orders1763650000000 implements MigrationInterface {
  readonly name = 'Orders1763650000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('there is nothing before the first migration to go back to');
  }
}

const statements = [
  // One row: which environment this database belongs to, and what holds for all partners.
  `CREATE TABLE environment (
    id TINYINT NOT NULL PRIMARY KEY,
    name VARCHAR(16) NOT NULL,
    clock_offset_ms BIGINT NOT NULL DEFAULT 0,
    trading_paused_at DATETIME(3) NULL
  ) ${table}`,

  // A partner's row is the lock of everything the partner owns; version counts its events.
  `CREATE TABLE partners (
    id VARCHAR(24) NOT NULL PRIMARY KEY,
    name VARCHAR(200) NOT NULL,
    state VARCHAR(16) NOT NULL,
    version BIGINT NOT NULL DEFAULT 0,
    requests_per_second INT NULL,
    requests_burst INT NULL,
    requests_under_way INT NULL,
    orders_kobo_per_day BIGINT NULL,
    allocations_kobo_per_day BIGINT NULL,
    created_at DATETIME(3) NOT NULL
  ) ${table}`,

  `CREATE TABLE api_keys (
    partner_id VARCHAR(24) NOT NULL,
    id VARCHAR(24) NOT NULL,
    secret_hash BINARY(32) NOT NULL,
    scopes VARCHAR(100) NOT NULL,
    addresses TEXT NOT NULL,
    created_at DATETIME(3) NOT NULL,
    revoked_at DATETIME(3) NULL,
    PRIMARY KEY (partner_id, id),
    UNIQUE KEY api_keys_id (id)
  ) ${table}`,

  // The accounts a partner can trade for. An account belongs to one partner.
  `CREATE TABLE accounts (
    partner_id VARCHAR(24) NOT NULL,
    account VARCHAR(64) NOT NULL,
    application_id VARCHAR(24) NULL,
    created_at DATETIME(3) NOT NULL,
    PRIMARY KEY (partner_id, account),
    UNIQUE KEY accounts_account (account)
  ) ${table}`,

  // check_at is real time: when the reconciler must look at the order; null once nothing about it is unclear.
  // idempotency_key and client_reference are binary because a text comparison would ignore trailing spaces.
  `CREATE TABLE orders (
    partner_id VARCHAR(24) NOT NULL,
    id VARCHAR(24) NOT NULL,
    state VARCHAR(20) NOT NULL,
    account VARCHAR(64) NOT NULL,
    symbol VARCHAR(20) NOT NULL,
    side VARCHAR(4) NOT NULL,
    type VARCHAR(8) NOT NULL,
    time_in_force VARCHAR(4) NOT NULL,
    quantity BIGINT NOT NULL,
    price_kobo BIGINT NULL,
    filled_quantity BIGINT NOT NULL DEFAULT 0,
    filled_value_kobo BIGINT NOT NULL DEFAULT 0,
    exchange_order_id VARCHAR(64) NULL,
    reason VARCHAR(300) NULL,
    reject_reason VARCHAR(40) NULL,
    client_reference VARBINARY(64) NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    filled_at DATETIME(3) NULL,
    counted_day DATE NOT NULL,
    counted_price_kobo BIGINT NOT NULL,
    idempotency_key VARBINARY(255) NULL,
    request_digest BINARY(32) NOT NULL,
    first_answer VARCHAR(16) NULL,
    last_report BIGINT NOT NULL DEFAULT 0,
    steps INT NOT NULL DEFAULT 0,
    not_after DATETIME(3) NOT NULL,
    check_at DATETIME(3) NULL,
    checks INT NOT NULL DEFAULT 0,
    missing_since DATETIME(3) NULL,
    cancel_until DATETIME(3) NULL,
    PRIMARY KEY (partner_id, id),
    UNIQUE KEY orders_id (id),
    UNIQUE KEY orders_idempotency_key (partner_id, idempotency_key),
    KEY orders_state (partner_id, state, id),
    KEY orders_account (partner_id, account, id),
    KEY orders_symbol (partner_id, symbol, id),
    KEY orders_client_reference (partner_id, client_reference, id),
    KEY orders_updated_at (partner_id, updated_at, id),
    KEY orders_check_at (check_at)
  ) ${table}`,

  `CREATE TABLE order_steps (
    partner_id VARCHAR(24) NOT NULL,
    order_id VARCHAR(24) NOT NULL,
    sequence INT NOT NULL,
    kind VARCHAR(20) NOT NULL,
    at DATETIME(3) NOT NULL,
    state VARCHAR(20) NOT NULL,
    detail VARCHAR(300) NOT NULL,
    report_number BIGINT NULL,
    quantity BIGINT NULL,
    price_kobo BIGINT NULL,
    PRIMARY KEY (partner_id, order_id, sequence)
  ) ${table}`,

  // What counts against a daily limit, by the Lagos day it counts for.
  `CREATE TABLE usage_days (
    partner_id VARCHAR(24) NOT NULL,
    day DATE NOT NULL,
    kind VARCHAR(16) NOT NULL,
    used_kobo BIGINT NOT NULL,
    PRIMARY KEY (partner_id, day, kind)
  ) ${table}`,

  // Events on their way to those who take them. publish_at is real time: from when on the relay publishes it.
  `CREATE TABLE outbox (
    partner_id VARCHAR(24) NOT NULL,
    version BIGINT NOT NULL,
    id VARCHAR(28) NOT NULL,
    type VARCHAR(40) NOT NULL,
    body MEDIUMBLOB NOT NULL,
    occurred_at DATETIME(3) NOT NULL,
    publish_at DATETIME(3) NOT NULL,
    PRIMARY KEY (partner_id, version),
    KEY outbox_publish_at (publish_at)
  ) ${table}`,

  `CREATE TABLE feed_events (
    partner_id VARCHAR(24) NOT NULL,
    version BIGINT NOT NULL,
    id VARCHAR(28) NOT NULL,
    body MEDIUMBLOB NOT NULL,
    occurred_at DATETIME(3) NOT NULL,
    PRIMARY KEY (partner_id, version),
    KEY feed_events_occurred_at (occurred_at)
  ) ${table}`,

  // Up to which version a partner's events were removed from the feed.
  `CREATE TABLE feed_purges (
    partner_id VARCHAR(24) NOT NULL PRIMARY KEY,
    purged_version BIGINT NOT NULL
  ) ${table}`,

  // Who does the work that only one process may do. Times are the database's own, the one use of them.
  `CREATE TABLE leases (
    name VARCHAR(40) NOT NULL PRIMARY KEY,
    holder VARCHAR(64) NOT NULL,
    fence BIGINT NOT NULL,
    expires_at DATETIME(3) NOT NULL
  ) ${table}`,

  // How far work that goes on for ever has come: the last report applied, the last key looked at for removal.
  `CREATE TABLE positions (
    name VARCHAR(40) NOT NULL PRIMARY KEY,
    position VARCHAR(64) NOT NULL
  ) ${table}`,

  `CREATE TABLE audit_entries (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(3) NOT NULL,
    operator VARCHAR(64) NOT NULL,
    action VARCHAR(64) NOT NULL,
    subject VARCHAR(64) NULL,
    detail TEXT NOT NULL
  ) ${table}`,
];
