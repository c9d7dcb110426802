import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Indexes for the operators' filters of deliveries: by event, by state and by time. They are built while the table is read
 * and written, in one pass over it.
 */
export class DeliveryIndexes1764010010000 implements MigrationInterface {
  readonly name = 'DeliveryIndexes1764010010000';
  readonly olderVersions = 'They read by other indexes, which stay.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE webhook_deliveries ADD KEY webhook_deliveries_event (partner_id, event_id),
        ADD KEY webhook_deliveries_state (partner_id, state, version),
        ADD KEY webhook_deliveries_occurred_at (partner_id, occurred_at, version), ALGORITHM = INPLACE, LOCK = NONE`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE webhook_deliveries DROP KEY webhook_deliveries_event, DROP KEY webhook_deliveries_state,
        DROP KEY webhook_deliveries_occurred_at`,
    );
  }
}
