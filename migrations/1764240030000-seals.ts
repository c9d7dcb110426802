import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The MACs that prove that a gateway wrote an API key and a wallet. */
export class Seals1764240030000 implements MigrationInterface {
  readonly name = 'Seals1764240030000';
  readonly olderVersions =
    'They make API keys without a seal and leave the seal of a wallet as it is. `keys seal` seals what they wrote.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE api_keys ADD COLUMN seal VARBINARY(40) NULL');
    await runner.query('ALTER TABLE wallets ADD COLUMN seal VARBINARY(48) NULL');
    // The ledger check looks for the entry of each credit.
    await runner.query('ALTER TABLE audit_entries ADD KEY audit_entries_action (partner_id, action, at)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE audit_entries DROP KEY audit_entries_action');
    await runner.query('ALTER TABLE wallets DROP COLUMN seal');
    await runner.query('ALTER TABLE api_keys DROP COLUMN seal');
  }
}
