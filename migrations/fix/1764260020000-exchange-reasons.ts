import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What an exchange said when it rejected an order or refused to cancel one, for operators. */
export class FixExchangeReasons1764260020000 implements MigrationInterface {
  readonly name = 'FixExchangeReasons1764260020000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('what the exchange said cannot be forgotten');
  }
}

// exchange_reason is the field with the reason, such as OrdRejReason=99; exchange_text is Text (58).
const statements = ['fix_reports', 'fix_cancels'].map(
  (table) => `ALTER TABLE ${table} ADD exchange_reason VARCHAR(64) NULL, ADD exchange_text VARCHAR(500) NULL`,
);
