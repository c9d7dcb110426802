import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The credit that an entry of a wallet's ledger reverses. */
export class CreditReversals1764350010000 implements MigrationInterface {
  readonly name = 'CreditReversals1764350010000';

  readonly olderVersions =
    'An earlier version makes neither debits nor reversals, so NULL is right for each entry it adds. It shows those that others ' +
    'make as entries of a type that it does not know, with their sums, and finds their hashes right.';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('a reversal would forget its credit, which could then be reversed again');
  }
}

const statements = [
  // The sequence of the credit, in the same ledger. Only reversals have one.
  'ALTER TABLE wallet_transfers ADD COLUMN reverses BIGINT NULL',
  'ALTER TABLE wallet_transfers ADD KEY wallet_transfers_reverses (partner_id, reverses)',
];
