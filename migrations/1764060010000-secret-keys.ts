import type { MigrationInterface, QueryRunner } from 'typeorm';

/** When each of the gateway's secrets was in use, and which one made an API key's MAC. */
export class SecretKeys1764060010000 implements MigrationInterface {
  readonly name = 'SecretKeys1764060010000';
  readonly olderVersions =
    'They have one secret and note neither its use nor whose MAC a key has: null means a key whose secret is not known.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE IF NOT EXISTS secret_keys (
        id VARCHAR(16) NOT NULL,
        first_used_at DATETIME(3) NOT NULL,
        last_used_at DATETIME(3) NOT NULL,
        PRIMARY KEY (id)
      ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    );
    await runner.query('ALTER TABLE api_keys ADD COLUMN mac_key VARCHAR(16) NULL');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE api_keys DROP COLUMN mac_key');
    await runner.query('DROP TABLE secret_keys');
  }
}
