import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Which order a trade of the drop copy is of, if only its OrderID says so. */
export class FixDropCopyTerms1764280010000 implements MigrationInterface {
  readonly name = 'FixDropCopyTerms1764280010000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('what a drop copy brought cannot be forgotten');
  }
}

// symbol and side are the exchange's, empty if they were not stated; traded_at is when the trade happened, null if that was not stated.
const statements = [
  `ALTER TABLE fix_drop_copy ADD symbol VARCHAR(64) NOT NULL DEFAULT '', ADD side VARCHAR(8) NOT NULL DEFAULT '',
    ADD traded_at DATETIME(3) NULL`,
];
