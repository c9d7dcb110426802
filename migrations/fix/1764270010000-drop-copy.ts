import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** The trades that a drop copy brings, and the numbers of its session. */
export class FixDropCopy1764270010000 implements MigrationInterface {
  readonly name = 'FixDropCopy1764270010000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('what a drop copy brought cannot be forgotten');
  }
}

const statements = [
  // booked_to is the number of the last report of the order session that was held against the drop copy, changed_to the id of the
  // last trade change, and passed_over_to the number of the last report when messages of the drop copy were passed over.
  `CREATE TABLE fix_drop_copy_numbers (
    id BIGINT NOT NULL PRIMARY KEY,
    fence BIGINT NOT NULL,
    next_out BIGINT NOT NULL,
    next_in BIGINT NOT NULL,
    started_at DATETIME(3) NOT NULL,
    booked_to BIGINT NOT NULL,
    changed_to BIGINT NOT NULL,
    passed_over_to BIGINT NOT NULL
  ) ${table}`,
  `INSERT IGNORE INTO fix_drop_copy_numbers (id, fence, next_out, next_in, started_at, booked_to, changed_to,
      passed_over_to)
    VALUES (1, 0, 1, 1, '1970-01-01 00:00:00.000', 0, 0, 0)`,
  // named is the order by its ClOrdID; a quantity or a price of 0 could not be read. exec_ref_id is the trade that a row of
  // another kind takes back or corrects, and report_id the TradeReportID.
  `CREATE TABLE fix_drop_copy (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    named VARBINARY(64) NOT NULL,
    exchange_order_id VARCHAR(64) NOT NULL,
    kind VARCHAR(12) NOT NULL,
    exec_id VARBINARY(64) NOT NULL,
    exec_ref_id VARBINARY(64) NOT NULL,
    report_id VARBINARY(64) NOT NULL,
    quantity BIGINT NOT NULL,
    price_kobo BIGINT NOT NULL,
    at DATETIME(3) NOT NULL,
    compared TINYINT(1) NOT NULL,
    KEY fix_drop_copy_due (compared, at),
    KEY fix_drop_copy_exec (exec_id),
    KEY fix_drop_copy_ref (exec_ref_id),
    KEY fix_drop_copy_report (report_id)
  ) ${table}`,
  'ALTER TABLE fix_orders ADD KEY fix_orders_exchange (exchange_order_id)',
];
