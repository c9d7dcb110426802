import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Operators who know of an object with an unknown outcome, so that nobody is called for it. */
export class Acknowledgements1764340060000 implements MigrationInterface {
  readonly name = 'Acknowledgements1764340060000';

  readonly olderVersions = 'An earlier version knows no acknowledgements: its own figures call people for each object.';

  async up(runner: QueryRunner): Promise<void> {
    // ends_at is real time.
    await runner.query(`CREATE TABLE acknowledgements (
      partner_id VARCHAR(24) NOT NULL,
      object_id VARCHAR(24) NOT NULL,
      acknowledged_by VARCHAR(64) NOT NULL,
      reason VARCHAR(200) NOT NULL,
      ends_at DATETIME(3) NOT NULL,
      PRIMARY KEY (partner_id, object_id),
      KEY acknowledgements_ends_at (ends_at)
    ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE acknowledgements');
  }
}
