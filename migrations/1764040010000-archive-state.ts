import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What `archive write` keeps in the database: the database's own name, and the months whose steps may have left it. */
export class ArchiveState1764040010000 implements MigrationInterface {
  readonly name = 'ArchiveState1764040010000';
  readonly olderVersions = 'They have no archive.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE IF NOT EXISTS archive_state (
        name VARCHAR(40) NOT NULL,
        value VARCHAR(64) NOT NULL,
        PRIMARY KEY (name)
      ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE archive_state');
  }
}
