import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Proposals of calls that move money or rights: several may be open for one object if they are about different things. */
export class FourEyes1764340050000 implements MigrationInterface {
  readonly name = 'FourEyes1764340050000';

  readonly olderVersions =
    'They make proposals about whole objects only, and the default says that. They neither apply the proposals of other calls nor ' +
    'ask for a second operator: they make such a change at once, until all replicas are upgraded.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE proposals ADD COLUMN about VARBINARY(100) NULL');
    await runner.query('ALTER TABLE proposals ADD KEY proposals_about (partner_id, about, id)');
  }

  async down(): Promise<void> {
    throw new Error('it would be forgotten what open proposals are about');
  }
}
