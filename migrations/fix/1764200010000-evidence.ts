import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** What the rule of evidence must know of an order, and what an operator must see of a finding. */
export class FixEvidence1764200010000 implements MigrationInterface {
  readonly name = 'FixEvidence1764200010000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('what the exchange said cannot be forgotten');
  }
}

const statements = [
  // An order of the version before has none of these facts, so nothing is concluded from their absence: passed_over is set below.
  `ALTER TABLE fix_orders
    ADD acknowledged TINYINT NOT NULL DEFAULT 0,
    ADD passed_over TINYINT NOT NULL DEFAULT 0,
    ADD must_ask TINYINT NOT NULL DEFAULT 0,
    ADD asked TINYINT NOT NULL DEFAULT 0,
    ADD adjusted BIGINT NOT NULL DEFAULT 0,
    ADD filled_value_kobo BIGINT NOT NULL DEFAULT 0,
    ADD reference_kobo BIGINT NULL,
    ADD ended_as VARCHAR(12) NULL,
    ADD ended_count BIGINT NULL,
    ADD noted VARCHAR(400) NOT NULL DEFAULT '',
    ADD settled TINYINT NOT NULL DEFAULT 0,
    ADD KEY fix_orders_must_ask (must_ask, received_at)`,
  `UPDATE fix_orders SET passed_over = 1, must_ask = 1, asked = 1 WHERE state = 'sending'`,
  `UPDATE fix_orders SET must_ask = 1, asked = 1 WHERE state = 'open'`,
  `UPDATE fix_orders o JOIN (SELECT order_id, SUM(quantity * price_kobo) AS value FROM fix_reports
    WHERE kind = 'trade' GROUP BY order_id) r ON r.order_id = o.id SET o.filled_value_kobo = r.value`,
  // An end or an acceptance that is learnt from a status has no time. counted is the CumQty that came with the report.
  `ALTER TABLE fix_reports MODIFY at DATETIME(3) NULL, ADD counted BIGINT NULL`,
  // A trade that the exchange took back or changed. Later counts of the exchange agree with these.
  `CREATE TABLE fix_trade_changes (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    order_id VARBINARY(64) NOT NULL,
    exec_id VARBINARY(64) NULL,
    exec_ref_id VARBINARY(64) NOT NULL,
    kind VARCHAR(12) NOT NULL,
    quantity BIGINT NULL,
    price_kobo BIGINT NULL,
    counted BIGINT NULL,
    at DATETIME(3) NOT NULL,
    UNIQUE KEY fix_trade_changes_exec (order_id, exec_id)
  ) ${table}`,
  // facts has the message's fields by name, as JSON. bytes has a message that could not be read.
  `ALTER TABLE fix_findings
    ADD facts TEXT NULL,
    ADD bytes MEDIUMBLOB NULL,
    ADD KEY fix_findings_order (order_id, id)`,
  // How many messages of a type that is not supported came in a session day. They have one finding.
  `CREATE TABLE fix_unsupported (
    day DATETIME(3) NOT NULL,
    type VARBINARY(8) NOT NULL,
    finding_id BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    last_at DATETIME(3) NOT NULL,
    PRIMARY KEY (day, type),
    KEY fix_unsupported_finding (finding_id)
  ) ${table}`,
  `CREATE TABLE fix_finding_settlements (
    finding_id BIGINT NOT NULL PRIMARY KEY,
    at DATETIME(3) NOT NULL,
    operator VARCHAR(64) NOT NULL,
    note VARCHAR(500) NOT NULL
  ) ${table}`,
  // Findings of the version before were not settled here, and are no news.
  `INSERT INTO fix_finding_settlements (finding_id, at, operator, note)
    SELECT id, NOW(3), 'fix migrate', 'found by the version before' FROM fix_findings`,
  // restored: the database came back from a backup and may lack what was sent since, so it proves nothing absent.
  `ALTER TABLE fix_numbers ADD restored TINYINT NOT NULL DEFAULT 0`,
  // What was stored and may have been sent is listed from then on, so what is in doubt is listed too.
  `INSERT INTO fix_submissions (number, client_id, note)
    SELECT n.last_submission + ROW_NUMBER() OVER (ORDER BY o.received_at, o.id), o.id, NULL
    FROM fix_orders o JOIN fix_numbers n ON n.id = 1
    WHERE o.state = 'sending' AND NOT EXISTS (SELECT 1 FROM fix_submissions s WHERE s.client_id = o.id)`,
  `UPDATE fix_numbers SET version = version + 1,
    last_submission = GREATEST(last_submission, (SELECT COALESCE(MAX(number), 0) FROM fix_submissions)) WHERE id = 1`,
];
