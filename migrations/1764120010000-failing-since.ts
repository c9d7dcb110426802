import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Since when an endpoint has delivered nothing, so that an alert can name it. */
export class FailingSince1764120010000 implements MigrationInterface {
  readonly name = 'FailingSince1764120010000';
  readonly olderVersions =
    'They leave it as it is. So an endpoint that they deliver to can seem to fail, until a newer process delivers to it; and one that fails can seem well.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints ADD COLUMN failing_since DATETIME(3) NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints DROP COLUMN failing_since');
  }
}
