import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Withdrawals, which move money from accounts to their partner's wallet or to a bank. */
export class Withdrawals1764330010000 implements MigrationInterface {
  readonly name = 'Withdrawals1764330010000';

  readonly olderVersions =
    'An earlier version has no withdrawals: it neither stores one nor enters one into a ledger, so it never changes ' +
    'withdrawn_kobo, and its default is right for wallets without withdrawals.';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('a withdrawal is never removed');
  }
}

const statements = [
  // check_at is real time: when the reconciler must look at the withdrawal; null once nothing about it is unclear.
  `CREATE TABLE withdrawals (
    partner_id VARCHAR(24) NOT NULL,
    id VARCHAR(24) NOT NULL,
    request_id VARCHAR(36) NULL,
    trace_parent VARCHAR(55) NULL,
    key_id VARCHAR(24) NULL,
    state VARCHAR(20) NOT NULL,
    account VARCHAR(64) NOT NULL,
    amount_kobo BIGINT NOT NULL,
    destination VARCHAR(20) NOT NULL,
    client_reference VARBINARY(64) NULL,
    broker_reference VARCHAR(64) NULL,
    counted_day DATE NOT NULL,
    reason VARCHAR(300) NULL,
    reject_reason VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    idempotency_key VARBINARY(255) NULL,
    request_digest BINARY(32) NOT NULL,
    first_answer VARCHAR(16) NULL,
    evidence VARCHAR(300) NOT NULL,
    last_report BIGINT NOT NULL,
    missed_report BIGINT NOT NULL DEFAULT 0,
    steps INT NOT NULL DEFAULT 0,
    not_after DATETIME(3) NOT NULL,
    check_at DATETIME(3) NULL,
    checks INT NOT NULL DEFAULT 0,
    missing_since DATETIME(3) NULL,
    settlement TEXT NULL,
    PRIMARY KEY (partner_id, id),
    UNIQUE KEY withdrawals_id (id),
    UNIQUE KEY withdrawals_idempotency_key (partner_id, idempotency_key),
    KEY withdrawals_state (partner_id, state, id),
    KEY withdrawals_account (partner_id, account, id),
    KEY withdrawals_client_reference (partner_id, client_reference, id),
    KEY withdrawals_updated_at (partner_id, updated_at, id),
    KEY withdrawals_counted_day (partner_id, counted_day, updated_at, id),
    KEY withdrawals_broker_reference (broker_reference, id),
    KEY withdrawals_check_at (check_at)
  ) ${table}`,

  // The sum of the ledger's entries for withdrawals, so that nobody has to add them up.
  'ALTER TABLE wallets ADD COLUMN withdrawn_kobo BIGINT NOT NULL DEFAULT 0',
];
