import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Which object an event is about. The columns are at the end and without a value, so no row is rewritten. The index is
 * built while the table is read and written: it reads the feed once. The outbox has no index of it, because it holds next
 * to nothing and is on the way of every change.
 */
export class EventObjects1763810000000 implements MigrationInterface {
  readonly name = 'EventObjects1763810000000';
  readonly olderVersions =
    'They write no type and no object: such an event is found by the instant of its change and by its body.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE outbox ${columns.join(', ')}`);
    await runner.query(`ALTER TABLE feed_events ADD COLUMN type VARCHAR(40) NULL, ${columns.join(', ')}`);
    await runner.query('ALTER TABLE feed_events ADD KEY feed_events_object (partner_id, object_id)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE feed_events DROP KEY feed_events_object, DROP COLUMN type, DROP COLUMN object_kind, DROP COLUMN object_id',
    );
    await runner.query('ALTER TABLE outbox DROP COLUMN object_kind, DROP COLUMN object_id');
  }
}

const columns = ['ADD COLUMN object_kind VARCHAR(20) NULL', 'ADD COLUMN object_id VARCHAR(24) NULL'];
