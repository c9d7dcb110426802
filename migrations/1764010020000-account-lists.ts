import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * An index in the order in which partners list their accounts. MariaDB before 10.8 builds it ascending and sorts each page.
 */
export class AccountLists1764010020000 implements MigrationInterface {
  readonly name = 'AccountLists1764010020000';
  readonly olderVersions = 'They need no index of it.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE accounts ADD KEY accounts_created_at (partner_id, created_at DESC, account),
        ALGORITHM = INPLACE, LOCK = NONE`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE accounts DROP KEY accounts_created_at');
  }
}
