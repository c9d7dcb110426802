import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Who called, in entries of the audit. */
export class Audit1764340010000 implements MigrationInterface {
  readonly name = 'Audit1764340010000';
  readonly olderVersions = 'Their entries have none of these columns, which are shown as empty.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE audit_entries
        ADD COLUMN request_id VARCHAR(36) NULL,
        ADD COLUMN client_address VARCHAR(64) NULL,
        ADD COLUMN roles VARCHAR(64) NULL,
        ADD COLUMN key_id VARCHAR(24) NULL`,
    );
    await runner.query('ALTER TABLE audit_entries ADD KEY audit_entries_operator (operator, id)');
    await runner.query('ALTER TABLE audit_entries ADD KEY audit_entries_at (at)');
  }

  async down(): Promise<void> {
    throw new Error('the audit log is never cut');
  }
}
