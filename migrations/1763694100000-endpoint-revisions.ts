import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which state of an endpoint's row the process that sends to it works by, so that an operator's call can wait for it. */
export class EndpointRevisions1763694100000 implements MigrationInterface {
  readonly name = 'EndpointRevisions1763694100000';

  async up(runner: QueryRunner): Promise<void> {
    // revision grows with every change of what attempts are made by. changed_revision is that of the last change an
    // operator made, seen_revision the last one of which the sending process has said that it works by it.
    await runner.query(
      `ALTER TABLE webhook_endpoints ADD COLUMN revision BIGINT NOT NULL DEFAULT 0,
        ADD COLUMN changed_revision BIGINT NOT NULL DEFAULT 0, ADD COLUMN seen_revision BIGINT NOT NULL DEFAULT 0`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE webhook_endpoints DROP COLUMN revision, DROP COLUMN changed_revision, DROP COLUMN seen_revision',
    );
  }
}
