import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** What an operator finds out by: the steps of every object, look-ups of what is unclear, and cancels that are. */
export class Diagnostics1763684000000 implements MigrationInterface {
  readonly name = 'Diagnostics1763684000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('the history of objects is never cut');
  }
}

const statements = [
  // When the upstream says that it happened, of a step that is one of its reports.
  'ALTER TABLE order_steps ADD COLUMN upstream_at DATETIME(3) NULL',

  // What order_steps is to orders, to applications and allocations. Rows are only ever added. Nothing of a customer is in
  // them. `at` is business time, `upstream_at` the upstream's own.
  `CREATE TABLE object_steps (
    partner_id VARCHAR(24) NOT NULL,
    object_id VARCHAR(24) NOT NULL,
    sequence INT NOT NULL,
    kind VARCHAR(20) NOT NULL,
    at DATETIME(3) NOT NULL,
    state VARCHAR(20) NOT NULL,
    detail VARCHAR(300) NOT NULL,
    report_number BIGINT NULL,
    upstream_at DATETIME(3) NULL,
    PRIMARY KEY (partner_id, object_id, sequence)
  ) ${table}`,
  'ALTER TABLE applications ADD COLUMN steps INT NOT NULL DEFAULT 0',
  'ALTER TABLE allocations ADD COLUMN steps INT NOT NULL DEFAULT 0',

  // How often the upstream's record was asked about an object that was unclear, and what it said last. Real time.
  `CREATE TABLE look_ups (
    partner_id VARCHAR(24) NOT NULL,
    object_id VARCHAR(24) NOT NULL,
    asked INT NOT NULL,
    first_at DATETIME(3) NOT NULL,
    last_at DATETIME(3) NOT NULL,
    outcome VARCHAR(16) NOT NULL,
    error_class VARCHAR(40) NULL,
    PRIMARY KEY (partner_id, object_id)
  ) ${table}`,

  // Cancels that are under way, and those of which nobody knows whether the exchange took them: orders whose cancel_until
  // is set. A row is gone once that is known.
  `CREATE TABLE open_cancels (
    partner_id VARCHAR(24) NOT NULL,
    order_id VARCHAR(24) NOT NULL,
    sent_at DATETIME(3) NOT NULL,
    PRIMARY KEY (partner_id, order_id)
  ) ${table}`,
];
