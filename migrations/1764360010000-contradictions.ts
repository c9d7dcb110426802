import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Statements of the broker against the state of an object, until operators have dealt with them. */
export class Contradictions1764360010000 implements MigrationInterface {
  readonly name = 'Contradictions1764360010000';

  readonly olderVersions =
    'An earlier version records a contradiction in the history and counts it, and adds no row: its alert rings for an hour. A ' +
    'settlement that it approves ends no row, so an operator acknowledges that one.';

  async up(runner: QueryRunner): Promise<void> {
    // The instants are business time; ended_at is null while it is open.
    await runner.query(`CREATE TABLE contradictions (
      number BIGINT NOT NULL AUTO_INCREMENT,
      partner_id VARCHAR(24) NOT NULL,
      object_id VARCHAR(24) NOT NULL,
      step INT NOT NULL,
      at DATETIME(3) NOT NULL,
      state VARCHAR(20) NOT NULL,
      detail VARCHAR(300) NOT NULL,
      report_number BIGINT NULL,
      upstream_at DATETIME(3) NULL,
      quantity BIGINT NULL,
      price_kobo BIGINT NULL,
      is_counted TINYINT NOT NULL,
      ended_at DATETIME(3) NULL,
      ended_by VARCHAR(64) NULL,
      end_reason VARCHAR(200) NULL,
      proposal_id VARCHAR(24) NULL,
      PRIMARY KEY (number),
      KEY contradictions_object (partner_id, object_id, number),
      KEY contradictions_ended_at (ended_at, number),
      KEY contradictions_partner (partner_id, number),
      KEY contradictions_partner_ended_at (partner_id, ended_at, number)
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`);
  }

  async down(): Promise<void> {
    throw new Error('what is open would be forgotten');
  }
}
