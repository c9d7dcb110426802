import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Applications for customers' accounts, and what is enabled for a partner by agreement. */
export class Applications1763660400000 implements MigrationInterface {
  readonly name = 'Applications1763660400000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('going back would lose what was applied for');
  }
}

const statements = [
  // Words with commas between them; empty: nothing is enabled.
  `ALTER TABLE partners ADD COLUMN features VARCHAR(200) NOT NULL DEFAULT ''`,

  // Nothing of the customer is here: request_digest is keyed, and param is a field's name. The instants from not_after on
  // are real time; check_at is when the reconciler must look at the application, null once nothing about it is unclear.
  // evidence says by what the state is known, for operators.
  `CREATE TABLE applications (
    partner_id VARCHAR(24) NOT NULL,
    id VARCHAR(24) NOT NULL,
    state VARCHAR(20) NOT NULL,
    reference VARCHAR(64) NULL,
    account VARCHAR(64) NULL,
    reason VARCHAR(300) NULL,
    reject_reason VARCHAR(40) NULL,
    param VARCHAR(40) NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    idempotency_key VARBINARY(255) NULL,
    request_digest BINARY(32) NOT NULL,
    first_answer VARCHAR(16) NULL,
    last_report BIGINT NOT NULL DEFAULT 0,
    evidence VARCHAR(300) NOT NULL,
    not_after DATETIME(3) NOT NULL,
    check_at DATETIME(3) NULL,
    checks INT NOT NULL DEFAULT 0,
    missing_since DATETIME(3) NULL,
    PRIMARY KEY (partner_id, id),
    UNIQUE KEY applications_id (id),
    UNIQUE KEY applications_idempotency_key (partner_id, idempotency_key),
    KEY applications_check_at (check_at)
  ) ${table}`,
];
