import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Webhook endpoints, what is to be delivered to them, and every attempt; and who has taken a row of the outbox. */
export class Webhooks1763670000000 implements MigrationInterface {
  readonly name = 'Webhooks1763670000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('events that wait to be delivered would be lost');
  }
}

const statements = [
  // Which takers have signed a row, a bit each. A row all have signed is removed.
  'ALTER TABLE outbox ADD COLUMN signed TINYINT NOT NULL DEFAULT 0',

  // One endpoint a partner. Business time but for the lease. after_version: the partner's version at registration. The
  // secrets are sealed. An endpoint is paused by failures (paused_at, probe_at) or held by an operator (held_at) or
  // both. generation grows with a move: what was sent to the earlier URL says nothing about this one. lease_name and
  // lease_fence name the lease of the process that sends to it, and fence grows with each that does.
  `CREATE TABLE webhook_endpoints (
    partner_id VARCHAR(24) NOT NULL PRIMARY KEY,
    url VARCHAR(1024) NOT NULL,
    secret VARBINARY(255) NOT NULL,
    old_secret VARBINARY(255) NULL,
    old_secret_until DATETIME(3) NULL,
    after_version BIGINT NOT NULL,
    registered_at DATETIME(3) NOT NULL,
    generation INT NOT NULL DEFAULT 0,
    streak INT NOT NULL DEFAULT 0,
    paused_at DATETIME(3) NULL,
    probe_at DATETIME(3) NULL,
    probed_version BIGINT NOT NULL DEFAULT 0,
    held_at DATETIME(3) NULL,
    draining TINYINT NOT NULL DEFAULT 0,
    lease_name VARCHAR(40) NULL,
    lease_fence BIGINT NULL,
    fence BIGINT NOT NULL DEFAULT 0,
    KEY webhook_endpoints_lease (lease_name, lease_fence),
    KEY webhook_endpoints_paused_at (paused_at)
  ) ${table}`,

  // What becomes of an event at its endpoint. queue 1: to be sent at once, in the order of versions, without a due_at;
  // queue 2: to be sent again at due_at; null: over. attempts counts what the schedule counts, tries every attempt.
  // round grows when an operator asks for the event again. taken_at and due_at are business time, committed_at is real.
  `CREATE TABLE webhook_deliveries (
    partner_id VARCHAR(24) NOT NULL,
    version BIGINT NOT NULL,
    event_id VARCHAR(28) NOT NULL,
    type VARCHAR(40) NOT NULL,
    occurred_at DATETIME(3) NOT NULL,
    committed_at DATETIME(3) NOT NULL,
    taken_at DATETIME(3) NOT NULL,
    state VARCHAR(10) NOT NULL,
    queue TINYINT NULL,
    due_at DATETIME(3) NULL,
    attempts INT NOT NULL DEFAULT 0,
    tries INT NOT NULL DEFAULT 0,
    round INT NOT NULL DEFAULT 0,
    ended_at DATETIME(3) NULL,
    PRIMARY KEY (partner_id, version),
    KEY webhook_deliveries_due (partner_id, queue, due_at, version),
    KEY webhook_deliveries_age (queue, occurred_at)
  ) ${table}`,

  // Never what the endpoint answered beyond its status.
  `CREATE TABLE webhook_attempts (
    partner_id VARCHAR(24) NOT NULL,
    version BIGINT NOT NULL,
    number INT NOT NULL,
    at DATETIME(3) NOT NULL,
    is_probe TINYINT NOT NULL,
    outcome VARCHAR(16) NOT NULL,
    status SMALLINT NULL,
    error_class VARCHAR(24) NULL,
    duration_ms INT NOT NULL,
    PRIMARY KEY (partner_id, version, number),
    KEY webhook_attempts_at (at)
  ) ${table}`,
];
