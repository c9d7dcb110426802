import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Which new passwords were sent with a Logon, so that none is sent twice. */
export class FixPasswordChanges1764260030000 implements MigrationInterface {
  readonly name = 'FixPasswordChanges1764260030000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('a new password that was sent must not be sent again');
  }
}

const statements = [
  // A password is known again by its salted digest alone. outcome is sent, changed, refused or unknown.
  `CREATE TABLE fix_password_changes (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    salt BINARY(16) NOT NULL,
    digest BINARY(32) NOT NULL,
    sent_at DATETIME(3) NOT NULL,
    outcome VARCHAR(8) NOT NULL
  ) ${table}`,
];
