import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Operators' jobs that cancel open orders, and the orders of each. */
export class BulkCancels1764350020000 implements MigrationInterface {
  readonly name = 'BulkCancels1764350020000';

  readonly olderVersions =
    'An earlier version knows no such jobs: they go on while a process of this version has the role worker. The orders that ' +
    'they cancel look to it as if their partners had cancelled them.';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('a job that runs would be forgotten');
  }
}

const statements = [
  // give_up_at is real time, the other instants are business time; ended_at is null while the job runs.
  `CREATE TABLE IF NOT EXISTS bulk_cancels (
    id VARCHAR(24) NOT NULL,
    partner_id VARCHAR(24) NULL,
    account VARCHAR(64) NULL,
    symbol VARCHAR(20) NULL,
    side VARCHAR(4) NULL,
    key_id VARCHAR(24) NULL,
    reason VARCHAR(200) NOT NULL,
    started_by VARCHAR(64) NOT NULL,
    request_id VARCHAR(36) NOT NULL,
    created_at DATETIME(3) NOT NULL,
    give_up_at DATETIME(3) NOT NULL,
    matched INT NOT NULL,
    cancelled INT NOT NULL,
    not_cancelable INT NOT NULL,
    unconfirmed INT NOT NULL,
    waits_for VARCHAR(200) NULL,
    updated_at DATETIME(3) NOT NULL,
    ended_at DATETIME(3) NULL,
    ended_by VARCHAR(64) NULL,
    end_reason VARCHAR(200) NULL,
    PRIMARY KEY (id),
    KEY bulk_cancels_ended_at (ended_at, id)
  ) ${table}`,

  // sent_at and due_at are real time.
  `CREATE TABLE IF NOT EXISTS bulk_cancel_orders (
    partner_id VARCHAR(24) NOT NULL,
    bulk_cancel_id VARCHAR(24) NOT NULL,
    order_id VARCHAR(24) NOT NULL,
    result VARCHAR(16) NULL,
    detail VARCHAR(200) NULL,
    sent_at DATETIME(3) NULL,
    due_at DATETIME(3) NULL,
    PRIMARY KEY (partner_id, bulk_cancel_id, order_id),
    KEY bulk_cancel_orders_due_at (bulk_cancel_id, due_at, order_id),
    KEY bulk_cancel_orders_result (bulk_cancel_id, result, order_id)
  ) ${table}`,
];
