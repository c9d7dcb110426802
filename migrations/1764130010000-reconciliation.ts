import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The comparison of each day with the broker's statement: its runs, the statement's records meanwhile, and the breaks found. */
export class Reconciliation1764130010000 implements MigrationInterface {
  readonly name = 'Reconciliation1764130010000';
  readonly olderVersions = 'They do not compare days. They neither read nor write these tables.';

  async up(runner: QueryRunner): Promise<void> {
    const options = 'ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
    await runner.query(
      `CREATE TABLE IF NOT EXISTS reconciliation_runs (
        day DATE NOT NULL,
        number INT NOT NULL,
        state VARCHAR(16) NOT NULL,
        started_by VARCHAR(64) NULL,
        started_at DATETIME(3) NOT NULL,
        ended_at DATETIME(3) NULL,
        next_at DATETIME(3) NULL,
        tries INT NOT NULL,
        problem VARCHAR(300) NOT NULL,
        step VARCHAR(24) NOT NULL,
        position VARCHAR(500) NOT NULL,
        period_from DATETIME(3) NULL,
        period_to DATETIME(3) NULL,
        records BIGINT NOT NULL,
        objects BIGINT NOT NULL,
        breaks BIGINT NOT NULL,
        took_ms BIGINT NOT NULL,
        PRIMARY KEY (day, number),
        KEY reconciliation_runs_next_at (next_at, day, number),
        KEY reconciliation_runs_state (state, day, number)
      ) ${options}`,
    );
    // Records are here only while their day is compared.
    await runner.query(
      `CREATE TABLE IF NOT EXISTS reconciliation_items (
        day DATE NOT NULL,
        object_id VARCHAR(64) NOT NULL,
        section VARCHAR(16) NOT NULL,
        item_id VARCHAR(130) NOT NULL,
        account VARCHAR(64) NOT NULL,
        symbol VARCHAR(20) NOT NULL,
        side VARCHAR(4) NOT NULL,
        state VARCHAR(16) NOT NULL,
        quantity BIGINT NOT NULL,
        amount_kobo BIGINT NULL,
        other_kobo BIGINT NULL,
        reference VARCHAR(64) NOT NULL,
        at DATETIME(3) NULL,
        PRIMARY KEY (day, object_id, section, item_id),
        KEY reconciliation_items_account (day, account, symbol, object_id, section, item_id)
      ) ${options}`,
    );
    await runner.query(
      `CREATE TABLE IF NOT EXISTS reconciliation_breaks (
        partner_id VARCHAR(24) NOT NULL,
        id VARCHAR(24) NOT NULL,
        day DATE NOT NULL,
        kind VARCHAR(24) NOT NULL,
        object_id VARCHAR(64) NOT NULL,
        account VARCHAR(64) NOT NULL,
        symbol VARCHAR(20) NOT NULL,
        ours VARCHAR(300) NOT NULL,
        brokers VARCHAR(300) NOT NULL,
        is_unsettled TINYINT NOT NULL,
        is_open TINYINT NOT NULL,
        run INT NOT NULL,
        first_seen_at DATETIME(3) NOT NULL,
        last_seen_at DATETIME(3) NOT NULL,
        gone_at DATETIME(3) NULL,
        acknowledged_by VARCHAR(64) NULL,
        acknowledged_at DATETIME(3) NULL,
        acknowledged_reason VARCHAR(200) NULL,
        PRIMARY KEY (partner_id, day, id),
        UNIQUE KEY reconciliation_breaks_id (id),
        KEY reconciliation_breaks_day (day, id),
        KEY reconciliation_breaks_open (is_open, day, id),
        KEY reconciliation_breaks_partner_open (partner_id, is_open, day, id)
      ) ${options}`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ['reconciliation_breaks', 'reconciliation_items', 'reconciliation_runs']) {
      await runner.query(`DROP TABLE ${table}`);
    }
  }
}
