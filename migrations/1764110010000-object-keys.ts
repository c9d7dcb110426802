import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The key that an object was created with. */
export class ObjectKeys1764110010000 implements MigrationInterface {
  readonly name = 'ObjectKeys1764110010000';
  readonly olderVersions = 'They leave the column empty.';

  async up(runner: QueryRunner): Promise<void> {
    // At the end and without a value, so that no row is rewritten.
    for (const table of tables) await runner.query(`ALTER TABLE ${table} ADD COLUMN key_id VARCHAR(24) NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) await runner.query(`ALTER TABLE ${table} DROP COLUMN key_id`);
  }
}

const tables = ['orders', 'applications', 'allocations'];
