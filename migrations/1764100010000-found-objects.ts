import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Indexes by which operators find objects. They are built while the tables are read and written. */
export class FoundObjects1764100010000 implements MigrationInterface {
  readonly name = 'FoundObjects1764100010000';
  readonly olderVersions = 'They do not read by these indexes.';

  async up(runner: QueryRunner): Promise<void> {
    const online = 'ALGORITHM = INPLACE, LOCK = NONE';
    await runner.query(`ALTER TABLE orders ADD KEY orders_exchange_order_id (exchange_order_id, id), ${online}`);
    await runner.query(
      `ALTER TABLE applications ADD KEY applications_state (partner_id, state, id),
        ADD KEY applications_account (partner_id, account, id), ADD KEY applications_reference (reference, id), ${online}`,
    );
    await runner.query(
      `ALTER TABLE allocations ADD KEY allocations_broker_reference (broker_reference, id), ${online}`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE allocations DROP KEY allocations_broker_reference');
    await runner.query(
      'ALTER TABLE applications DROP KEY applications_reference, DROP KEY applications_account, DROP KEY applications_state',
    );
    await runner.query('ALTER TABLE orders DROP KEY orders_exchange_order_id');
  }
}
