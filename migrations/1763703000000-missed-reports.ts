import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The number of the last report about an object that a version passed over, because it did not know the object's state or
 * type. While it is above `last_report`, a version that knows the object looks up what it missed.
 */
export class MissedReports1763703000000 implements MigrationInterface {
  readonly name = 'MissedReports1763703000000';
  readonly olderVersions =
    'They note no report that they pass over. They end on a state or type that they do not know, and pass nothing over.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE orders ADD COLUMN missed_report BIGINT NOT NULL DEFAULT 0');
    await runner.query('ALTER TABLE applications ADD COLUMN missed_report BIGINT NOT NULL DEFAULT 0');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE orders DROP COLUMN missed_report');
    await runner.query('ALTER TABLE applications DROP COLUMN missed_report');
  }
}
