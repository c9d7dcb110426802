import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What the audit log says of a change: whom it concerns, and how it was before and after. */
export class Operators1763683000000 implements MigrationInterface {
  readonly name = 'Operators1763683000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('the audit log is never cut');
  }
}

const statements = [
  // was and became: the state before and after as JSON objects; null where nothing was, or nothing is.
  `ALTER TABLE audit_entries
    ADD COLUMN partner_id VARCHAR(24) NULL,
    ADD COLUMN was TEXT NULL,
    ADD COLUMN became TEXT NULL,
    ADD KEY audit_entries_partner_id (partner_id, id),
    ADD KEY audit_entries_subject (subject, id)`,
];
