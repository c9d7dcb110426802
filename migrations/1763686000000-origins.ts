import type { MigrationInterface, QueryRunner } from 'typeorm';

/** On whose behalf an object was created: the id of its request, and the request's place in a trace. */
export class Origins1763686000000 implements MigrationInterface {
  readonly name = 'Origins1763686000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const table of tables) await runner.query(`ALTER TABLE ${table} ${added.join(', ')}`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of tables) {
      await runner.query(`ALTER TABLE ${table} DROP COLUMN request_id, DROP COLUMN trace_parent`);
    }
  }
}

const tables = ['orders', 'applications', 'allocations', 'outbox', 'feed_events'];
// At the end and without a value, so that no row is rewritten and the version before goes on writing without them.
const added = ['ADD COLUMN request_id VARCHAR(36) NULL', 'ADD COLUMN trace_parent VARCHAR(55) NULL'];
