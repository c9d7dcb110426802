import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whether a key's id carries our MAC. Keys made before have none, nor have those an earlier version makes meanwhile. */
export class KeyMacs1763692100000 implements MigrationInterface {
  readonly name = 'KeyMacs1763692100000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE api_keys ADD COLUMN has_mac TINYINT(1) NOT NULL DEFAULT 0');
    // The ids of active keys without a MAC are read from the index alone.
    await runner.query('ALTER TABLE api_keys ADD KEY api_keys_without_mac (has_mac, revoked_at, id)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE api_keys DROP KEY api_keys_without_mac');
    await runner.query('ALTER TABLE api_keys DROP COLUMN has_mac');
  }
}
