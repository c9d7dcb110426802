import type { MigrationInterface, QueryRunner } from 'typeorm';

/** From when on each endpoint may have something to be sent, so that a look for work sees those endpoints only. */
export class WebhookDue1763690000000 implements MigrationInterface {
  readonly name = 'WebhookDue1763690000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE webhook_endpoints DROP KEY webhook_endpoints_due_at, DROP COLUMN due_at');
  }
}

const statements = [
  // Business time; null while nothing waits. It may be earlier than what there is, never later.
  'ALTER TABLE webhook_endpoints ADD COLUMN due_at DATETIME(3) NULL, ADD KEY webhook_endpoints_due_at (due_at)',
  `UPDATE webhook_endpoints SET due_at = registered_at WHERE draining = 1 OR EXISTS
    (SELECT 1 FROM webhook_deliveries d WHERE d.partner_id = webhook_endpoints.partner_id AND d.queue IN (1, 2))`,
];
