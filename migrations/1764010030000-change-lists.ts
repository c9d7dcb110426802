import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Indexes for lists of what changed since an instant. They are built while the tables are read and written. */
export class ChangeLists1764010030000 implements MigrationInterface {
  readonly name = 'ChangeLists1764010030000';
  readonly olderVersions = 'They read by the indexes on `updated_at`, which stay until no version needs them.';

  async up(runner: QueryRunner): Promise<void> {
    for (const table of ['orders', 'allocations']) {
      await runner.query(
        `ALTER TABLE ${table} ADD KEY ${table}_counted_day (partner_id, counted_day, updated_at, id),
          ALGORITHM = INPLACE, LOCK = NONE`,
      );
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of ['orders', 'allocations'])
      await runner.query(`ALTER TABLE ${table} DROP KEY ${table}_counted_day`);
  }
}
