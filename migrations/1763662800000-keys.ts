import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** What is known of keys beside the keys themselves: when each was last used, and what partners did with theirs. */
export class Keys1763662800000 implements MigrationInterface {
  readonly name = 'Keys1763662800000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE key_changes');
    await runner.query('DROP TABLE key_uses');
  }
}

const statements = [
  // Apart from the keys, so that writing down uses never waits for, or holds, the row of a key.
  `CREATE TABLE key_uses (
    partner_id VARCHAR(24) NOT NULL,
    key_id VARCHAR(24) NOT NULL,
    used_at DATETIME(3) NOT NULL,
    PRIMARY KEY (partner_id, key_id)
  ) ${table}`,

  // What a partner did with its keys, and with which of them; rows are only ever added. A key is made and ended once.
  `CREATE TABLE key_changes (
    partner_id VARCHAR(24) NOT NULL,
    key_id VARCHAR(24) NOT NULL,
    action VARCHAR(8) NOT NULL,
    at DATETIME(3) NOT NULL,
    by_key_id VARCHAR(24) NOT NULL,
    request_id VARCHAR(36) NOT NULL,
    PRIMARY KEY (partner_id, key_id, action)
  ) ${table}`,
];
