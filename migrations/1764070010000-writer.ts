import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Through which node of a Galera cluster gateways write, and a table that no row can enter, which refuses the others. */
export class Writer1764070010000 implements MigrationInterface {
  readonly name = 'Writer1764070010000';
  readonly olderVersions = 'They write through any node that they are connected to.';

  async up(runner: QueryRunner): Promise<void> {
    const options = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
    await runner.query(
      `CREATE TABLE IF NOT EXISTS writer (
        id BIGINT NOT NULL,
        node VARCHAR(200) NOT NULL,
        fence BIGINT NOT NULL,
        since DATETIME(3) NOT NULL,
        PRIMARY KEY (id)
      ) ${options}`,
    );
    await runner.query("INSERT IGNORE INTO writer (id, node, fence, since) VALUES (1, '', 0, NOW(3))");
    await runner.query(
      `CREATE TABLE IF NOT EXISTS writer_beats (id BIGINT NOT NULL, beat BIGINT NOT NULL, PRIMARY KEY (id)) ${options}`,
    );
    await runner.query('INSERT IGNORE INTO writer_beats (id, beat) VALUES (1, 0)');
    await runner.query(
      `CREATE TABLE IF NOT EXISTS writer_guards (
        ok TINYINT NOT NULL PRIMARY KEY,
        CONSTRAINT marina_writer CHECK (ok = 1 AND ok = 2)
      ) ${options}`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ['writer_guards', 'writer_beats', 'writer']) await runner.query(`DROP TABLE ${table}`);
  }
}
