import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** The first tables of the FIX adapter's own database. */
export class Fix1764100010000 implements MigrationInterface {
  readonly name = 'Fix1764100010000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('what was sent to the exchange cannot be forgotten');
  }
}

const statements = [
  `CREATE TABLE leases (
    name VARCHAR(40) NOT NULL PRIMARY KEY,
    holder VARCHAR(64) NOT NULL,
    fence BIGINT NOT NULL,
    expires_at DATETIME(3) NOT NULL
  ) ${table}`,
  // One row. next_out and next_in are the session's numbers since started_at; the others count for ever. Each write adds one to
  // version, and proves that it knew the row and that no later holder of the lease has written: fence.
  `CREATE TABLE fix_numbers (
    id TINYINT NOT NULL PRIMARY KEY,
    fence BIGINT NOT NULL,
    version BIGINT NOT NULL,
    next_out BIGINT NOT NULL,
    next_in BIGINT NOT NULL,
    started_at DATETIME(3) NOT NULL,
    last_report BIGINT NOT NULL,
    last_submission BIGINT NOT NULL,
    back_office_submission BIGINT NOT NULL
  ) ${table}`,
  `INSERT IGNORE INTO fix_numbers VALUES (1, 0, 0, 1, 1, '1970-01-02', 0, 0, 0)`,
  `CREATE TABLE fix_orders (
    id VARBINARY(64) NOT NULL PRIMARY KEY,
    account VARCHAR(64) NOT NULL,
    symbol VARCHAR(32) NOT NULL,
    side VARCHAR(8) NOT NULL,
    quantity BIGINT NOT NULL,
    type VARCHAR(8) NOT NULL,
    time_in_force VARCHAR(8) NOT NULL,
    price_kobo BIGINT NULL,
    not_after DATETIME(3) NOT NULL,
    received_at DATETIME(3) NOT NULL,
    note VARBINARY(2048) NOT NULL,
    started_at DATETIME(3) NOT NULL,
    number BIGINT NOT NULL,
    state VARCHAR(8) NOT NULL,
    exchange_order_id VARCHAR(64) NOT NULL,
    filled BIGINT NOT NULL,
    KEY fix_orders_state (state, received_at),
    KEY fix_orders_number (started_at, number)
  ) ${table}`,
  `CREATE TABLE fix_reports (
    number BIGINT NOT NULL PRIMARY KEY,
    order_id VARBINARY(64) NOT NULL,
    exchange_order_id VARCHAR(64) NOT NULL,
    kind VARCHAR(12) NOT NULL,
    at DATETIME(3) NOT NULL,
    quantity BIGINT NULL,
    price_kobo BIGINT NULL,
    reject_reason VARCHAR(32) NULL,
    exec_id VARBINARY(64) NULL,
    UNIQUE KEY fix_reports_exec (order_id, exec_id),
    KEY fix_reports_order (order_id, number)
  ) ${table}`,
  `CREATE TABLE fix_cancels (
    id VARBINARY(70) NOT NULL PRIMARY KEY,
    order_id VARBINARY(64) NOT NULL,
    requested_at DATETIME(3) NOT NULL,
    started_at DATETIME(3) NOT NULL,
    number BIGINT NOT NULL,
    state VARCHAR(8) NOT NULL,
    KEY fix_cancels_order (order_id),
    KEY fix_cancels_number (started_at, number)
  ) ${table}`,
  // A note is here only of what is no order.
  `CREATE TABLE fix_submissions (
    number BIGINT NOT NULL PRIMARY KEY,
    client_id VARBINARY(64) NOT NULL,
    note VARBINARY(2048) NULL,
    UNIQUE KEY fix_submissions_client (client_id)
  ) ${table}`,
  // What an operator must look at, because the broker protocol has no report for it.
  `CREATE TABLE fix_findings (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(3) NOT NULL,
    what VARCHAR(20) NOT NULL,
    order_id VARBINARY(64) NOT NULL,
    exec_id VARBINARY(64) NOT NULL,
    detail VARCHAR(500) NOT NULL,
    KEY fix_findings_at (at)
  ) ${table}`,
];
