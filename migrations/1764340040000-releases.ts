import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Withdrawals that wait until two operators release them, above an amount that is agreed with the partner. */
export class Releases1764340040000 implements MigrationInterface {
  readonly name = 'Releases1764340040000';

  readonly olderVersions =
    'An earlier version has no withdrawals. Its partners have no agreed amount, and the default says that none waits.';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('a withdrawal that waits would be forgotten');
  }
}

const statements = [
  // Business time: until when a withdrawal waits for its release, null if it does not; and when it was released.
  'ALTER TABLE withdrawals ADD COLUMN held_until DATETIME(3) NULL',
  'ALTER TABLE withdrawals ADD COLUMN released_at DATETIME(3) NULL',
  'ALTER TABLE withdrawals ADD KEY withdrawals_held_until (held_until, id)',
  'ALTER TABLE partners ADD COLUMN withdrawal_release_above_kobo BIGINT NULL',
];
