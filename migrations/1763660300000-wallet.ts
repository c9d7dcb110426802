import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Wallets with their ledgers, and the allocations that move money out of them. */
export class Wallet1763660300000 implements MigrationInterface {
  readonly name = 'Wallet1763660300000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('a ledger is never removed');
  }
}

const statements = [
  // The sums of a partner's ledger and its last entry, so that nobody has to add up the whole.
  `CREATE TABLE wallets (
    partner_id VARCHAR(24) NOT NULL PRIMARY KEY,
    last_sequence BIGINT NOT NULL,
    last_hash BINARY(32) NOT NULL,
    available_kobo BIGINT NOT NULL,
    reserved_kobo BIGINT NOT NULL,
    posted_kobo BIGINT NOT NULL
  ) ${table}`,

  // The ledger: each entry with the sums after it, its hash, and the hash of the one it was made to follow. Rows are only
  // ever added. An allocation has each type of entry once; a bank reference belongs to one payment of all partners'.
  `CREATE TABLE wallet_transfers (
    partner_id VARCHAR(24) NOT NULL,
    sequence BIGINT NOT NULL,
    id VARCHAR(24) NOT NULL,
    type VARCHAR(8) NOT NULL,
    amount_kobo BIGINT NOT NULL,
    available_after_kobo BIGINT NOT NULL,
    reserved_after_kobo BIGINT NOT NULL,
    posted_after_kobo BIGINT NOT NULL,
    allocation_id VARCHAR(24) NULL,
    account VARCHAR(64) NULL,
    bank_reference VARBINARY(64) NULL,
    created_at DATETIME(3) NOT NULL,
    previous_hash BINARY(32) NOT NULL,
    hash BINARY(32) NOT NULL,
    PRIMARY KEY (partner_id, sequence),
    UNIQUE KEY wallet_transfers_allocation (partner_id, allocation_id, type),
    UNIQUE KEY wallet_transfers_bank_reference (bank_reference),
    KEY wallet_transfers_type (partner_id, type, sequence)
  ) ${table}`,

  // check_at is real time: when the reconciler must look at the allocation; null once nothing about it is unclear.
  `CREATE TABLE allocations (
    partner_id VARCHAR(24) NOT NULL,
    id VARCHAR(24) NOT NULL,
    state VARCHAR(20) NOT NULL,
    account VARCHAR(64) NOT NULL,
    amount_kobo BIGINT NOT NULL,
    client_reference VARBINARY(64) NULL,
    broker_reference VARCHAR(64) NULL,
    reason VARCHAR(300) NULL,
    reject_reason VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    counted_day DATE NOT NULL,
    idempotency_key VARBINARY(255) NULL,
    request_digest BINARY(32) NOT NULL,
    first_answer VARCHAR(16) NULL,
    evidence VARCHAR(300) NOT NULL,
    not_after DATETIME(3) NOT NULL,
    check_at DATETIME(3) NULL,
    checks INT NOT NULL DEFAULT 0,
    missing_since DATETIME(3) NULL,
    PRIMARY KEY (partner_id, id),
    UNIQUE KEY allocations_id (id),
    UNIQUE KEY allocations_idempotency_key (partner_id, idempotency_key),
    KEY allocations_state (partner_id, state, id),
    KEY allocations_account (partner_id, account, id),
    KEY allocations_client_reference (partner_id, client_reference, id),
    KEY allocations_updated_at (partner_id, updated_at, id),
    KEY allocations_check_at (check_at)
  ) ${table}`,
];
