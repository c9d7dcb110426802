import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Proposals that a second operator decides, and what settlements by evidence leave at objects and in orders' histories. */
export class Proposals1764240010000 implements MigrationInterface {
  readonly name = 'Proposals1764240010000';
  readonly olderVersions =
    'They know no proposals. They show a settled object and its steps as they are stored, and keep its settlement. They do not ' +
    'know whether a later report repeats a trade that was settled, and count it twice. So nothing is settled by evidence until all replicas ' +
    'are upgraded. A step without a change of the filled quantity is judged by its kind and state.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE IF NOT EXISTS proposals (
        partner_id VARCHAR(24) NOT NULL,
        id VARCHAR(24) NOT NULL,
        action VARCHAR(64) NOT NULL,
        object_id VARCHAR(24) NOT NULL,
        state VARCHAR(16) NOT NULL,
        request TEXT NOT NULL,
        seen TEXT NOT NULL,
        evidence TEXT NOT NULL,
        reference VARCHAR(200) NOT NULL,
        proposed_by VARCHAR(64) NOT NULL,
        proposed_at DATETIME(3) NOT NULL,
        expires_at DATETIME(3) NOT NULL,
        decided_by VARCHAR(64) NULL,
        decided_at DATETIME(3) NULL,
        decision_reason VARCHAR(200) NULL,
        PRIMARY KEY (partner_id, id),
        UNIQUE KEY proposals_id (id),
        KEY proposals_state (state, id),
        KEY proposals_object (partner_id, object_id, id)
      ) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    );
    for (const table of ['orders', 'applications', 'allocations']) {
      await runner.query(`ALTER TABLE ${table} ADD COLUMN settlement TEXT NULL`);
    }
    await runner.query(
      `ALTER TABLE order_steps ADD COLUMN trade_sequence INT NULL, ADD COLUMN filled_change BIGINT NULL,
        ADD COLUMN value_change_kobo BIGINT NULL`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE order_steps DROP COLUMN trade_sequence, DROP COLUMN filled_change, DROP COLUMN value_change_kobo',
    );
    for (const table of ['orders', 'applications', 'allocations']) {
      await runner.query(`ALTER TABLE ${table} DROP COLUMN settlement`);
    }
    await runner.query('DROP TABLE proposals');
  }
}
