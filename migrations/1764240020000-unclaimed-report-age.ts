import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The index by which old reports about objects that are not stored are found and removed. */
export class UnclaimedReportAge1764240020000 implements MigrationInterface {
  readonly name = 'UnclaimedReportAge1764240020000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE unclaimed_reports ADD KEY unclaimed_reports_seen_at (seen_at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE unclaimed_reports DROP KEY unclaimed_reports_seen_at');
  }
}
