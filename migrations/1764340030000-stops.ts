import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Operators' stops of a partner, an account, a symbol or everything. */
export class Stops1764340030000 implements MigrationInterface {
  readonly name = 'Stops1764340030000';

  readonly olderVersions =
    'An earlier version knows no stops and stores what they forbid: they hold once all replicas run this version. It never ' +
    'changes stops_version, which only the calls that begin and end stops do.';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('stops are kept, as the audit is');
  }
}

const statements = [
  // starts and ends are business time; ended_at is null while the stop is open.
  `CREATE TABLE stops (
    id VARCHAR(24) NOT NULL,
    partner_id VARCHAR(24) NULL,
    target VARCHAR(16) NOT NULL,
    value VARCHAR(64) NOT NULL,
    actions VARCHAR(64) NOT NULL,
    reason VARCHAR(200) NOT NULL,
    started_by VARCHAR(64) NOT NULL,
    started_at DATETIME(3) NOT NULL,
    ends_at DATETIME(3) NULL,
    ended_at DATETIME(3) NULL,
    ended_by VARCHAR(64) NULL,
    end_reason VARCHAR(200) NULL,
    PRIMARY KEY (id),
    KEY stops_ended_at (ended_at, id)
  ) ${table}`,

  'ALTER TABLE environment ADD COLUMN stops_version BIGINT NOT NULL DEFAULT 0',
];
