import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What an order has for the fields that a broker asks for. */
export class FixOrderFields1764260010000 implements MigrationInterface {
  readonly name = 'FixOrderFields1764260010000';

  async up(runner: QueryRunner): Promise<void> {
    for (const sql of statements) await runner.query(sql);
  }

  async down(): Promise<void> {
    throw new Error('the name under which the exchange has an order cannot be forgotten');
  }
}

const statements = [
  // partner is the gateway's id of the partner; empty if it was not stated. cl_ord_id is the name under which the order was sent.
  `ALTER TABLE fix_orders
    ADD partner VARCHAR(64) NOT NULL DEFAULT '',
    ADD cl_ord_id VARBINARY(64) NOT NULL DEFAULT ''`,
  "UPDATE fix_orders SET cl_ord_id = id WHERE cl_ord_id = ''",
];
