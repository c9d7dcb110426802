import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Rows that gateways write only to find out whether the database takes writes. */
export class WriteChecks1763701000000 implements MigrationInterface {
  readonly name = 'WriteChecks1763701000000';
  readonly olderVersions = 'They check nothing. What is in this table says nothing about them.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE write_checks (
        id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        holder VARCHAR(64) NOT NULL,
        filler VARCHAR(7000) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        checked_at DATETIME(3) NOT NULL,
        KEY write_checks_holder (holder)
      )`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE write_checks');
  }
}
