import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A table that no row can enter. A transaction that decided without reading inserts a row into it if what it expected is not
 * so: then the check fails by its name, and the transaction is undone.
 */
export class Guards1763710000000 implements MigrationInterface {
  readonly name = 'Guards1763710000000';
  readonly olderVersions =
    'They do not use it: their guards are statements that overflow, which this version does not need.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE guards (
        ok TINYINT NOT NULL PRIMARY KEY,
        CONSTRAINT marina_guard CHECK (ok = 1 AND ok = 2)
      ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE guards');
  }
}
