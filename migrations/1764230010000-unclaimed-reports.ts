import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Reports of the broker about objects that are not stored, for operators. */
export class UnclaimedReports1764230010000 implements MigrationInterface {
  readonly name = 'UnclaimedReports1764230010000';
  readonly olderVersions =
    'They log such a report and keep nothing of it. A report that one of them passed over has no row here.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE IF NOT EXISTS unclaimed_reports (
        kind VARCHAR(20) NOT NULL,
        number BIGINT NOT NULL,
        object_id VARCHAR(64) NOT NULL,
        reference VARCHAR(64) NOT NULL,
        report VARCHAR(40) NOT NULL,
        quantity BIGINT NULL,
        price_kobo BIGINT NULL,
        upstream_at DATETIME(3) NULL,
        seen_at DATETIME(3) NOT NULL,
        PRIMARY KEY (kind, number)
      ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE unclaimed_reports');
  }
}
