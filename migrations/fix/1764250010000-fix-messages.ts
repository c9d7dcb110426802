import type { MigrationInterface, QueryRunner } from 'typeorm';

const table = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** The message log, the wish and the state of the session, and what operators did. */
export class FixMessages1764250010000 implements MigrationInterface {
  readonly name = 'FixMessages1764250010000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('what operators did cannot be forgotten');
  }
}

const statements = [
  `CREATE TABLE fix_messages (
    id BIGINT NOT NULL PRIMARY KEY,
    session VARCHAR(9) NOT NULL,
    at DATETIME(3) NOT NULL,
    started_at DATETIME(3) NOT NULL,
    direction VARCHAR(3) NOT NULL,
    number BIGINT NOT NULL,
    type VARCHAR(8) NOT NULL,
    order_id VARBINARY(64) NOT NULL,
    cl_ord_id VARBINARY(70) NOT NULL,
    outcome VARCHAR(12) NOT NULL,
    position BIGINT NOT NULL,
    text TEXT NOT NULL,
    KEY fix_messages_at (at),
    KEY fix_messages_session (session, id),
    KEY fix_messages_order (order_id, id),
    KEY fix_messages_cl_ord_id (cl_ord_id, id),
    KEY fix_messages_number (number, id),
    KEY fix_messages_type (type, direction, id)
  ) ${table}`,
  // One row. `wish` is what operators want, and `request` counts their calls. The rest is what the process with the session
  // says of it: `obeyed` is the last request that it has carried out.
  `CREATE TABLE fix_session (
    id TINYINT NOT NULL PRIMARY KEY,
    wish VARCHAR(3) NOT NULL,
    request BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    obeyed BIGINT NOT NULL,
    state VARCHAR(16) NOT NULL,
    since DATETIME(3) NOT NULL,
    reason VARCHAR(500) NOT NULL
  ) ${table}`,
  `INSERT IGNORE INTO fix_session VALUES (1, 'on', 0, 0, 0, 'none', '1970-01-02', '')`,
  `CREATE TABLE fix_audit (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(3) NOT NULL,
    operator VARCHAR(64) NOT NULL,
    action VARCHAR(64) NOT NULL,
    reason VARCHAR(200) NOT NULL,
    was VARCHAR(500) NOT NULL,
    became VARCHAR(500) NOT NULL
  ) ${table}`,
];
