import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** What a database that was restored from a backup must know. */
export class Recovery1763691000000 implements MigrationInterface {
  readonly name = 'Recovery1763691000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('versions that were skipped stay so');
  }
}

const statements = [
  // Versions no event of a partner has: after from_version comes the one after to_version.
  `CREATE TABLE feed_skips (
    partner_id VARCHAR(24) NOT NULL,
    from_version BIGINT NOT NULL,
    to_version BIGINT NOT NULL,
    PRIMARY KEY (partner_id, from_version)
  ) ${table}`,
];
