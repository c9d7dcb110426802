import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An index for lists of orders of one symbol and state. It is built while the table is read and written. */
export class OrderLists1764050010000 implements MigrationInterface {
  readonly name = 'OrderLists1764050010000';
  readonly olderVersions = 'They read by the index of the symbol or of the state, which stay.';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE orders ADD KEY orders_symbol_state (partner_id, symbol, state, id), ALGORITHM = INPLACE, LOCK = NONE`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE orders DROP KEY orders_symbol_state');
  }
}
