import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** What is known of applications' documents: never the files. */
export class Documents1763661500000 implements MigrationInterface {
  readonly name = 'Documents1763661500000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE documents');
  }
}

const statements = [
  // The digest is keyed, so that it tells nothing of the file. `lease_until` is real time: a send that is still `sending`
  // after it was cut off, and counts as unconfirmed. `attempt` counts the sends, so that each records only its own end.
  `CREATE TABLE documents (
    partner_id VARCHAR(24) NOT NULL,
    application_id VARCHAR(24) NOT NULL,
    type VARCHAR(16) NOT NULL,
    digest BINARY(32) NOT NULL,
    state VARCHAR(16) NOT NULL,
    attempt INT NOT NULL,
    lease_until DATETIME(3) NULL,
    created_at DATETIME(3) NOT NULL,
    updated_at DATETIME(3) NOT NULL,
    PRIMARY KEY (partner_id, application_id, type),
    KEY documents_under_way (partner_id, state, lease_until)
  ) ${table}`,
];
