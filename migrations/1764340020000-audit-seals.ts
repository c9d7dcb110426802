import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The seals that show whether an entry of the audit was changed or removed. */
export class AuditSeals1764340020000 implements MigrationInterface {
  readonly name = 'AuditSeals1764340020000';
  readonly olderVersions = 'They seal nothing. Their entries are sealed with the others once a newer version runs.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE IF NOT EXISTS audit_seals (
        number BIGINT NOT NULL,
        first_id BIGINT NOT NULL,
        last_id BIGINT NOT NULL,
        entries INT NOT NULL,
        hash VARBINARY(32) NOT NULL,
        seal VARBINARY(40) NOT NULL,
        sealed_at DATETIME(3) NOT NULL,
        PRIMARY KEY (number),
        KEY audit_seals_last_id (last_id)
      ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE audit_seals');
  }
}
