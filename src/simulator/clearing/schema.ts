/** Clearing's tables, in the words of the schema they are part of. */
export function clearingSchema(table: string): readonly string[] {
  return [
    // One row for each execution: the trade, and the contract note it becomes when it is settled.
    `CREATE TABLE IF NOT EXISTS deals (
    number BIGINT NOT NULL PRIMARY KEY,
    account VARCHAR(64) NOT NULL,
    client_order_id VARCHAR(64) NOT NULL,
    symbol VARCHAR(32) NOT NULL,
    name VARCHAR(200) NOT NULL,
    side TINYINT NOT NULL,
    quantity BIGINT NOT NULL,
    price_kobo BIGINT NOT NULL,
    amount_kobo BIGINT NOT NULL,
    commission_kobo BIGINT NOT NULL,
    statutory_kobo BIGINT NOT NULL,
    other_kobo BIGINT NOT NULL,
    consideration_kobo BIGINT NOT NULL,
    executed_at_ms BIGINT NOT NULL,
    trade_date CHAR(10) NOT NULL,
    settlement_date CHAR(10) NOT NULL,
    KEY by_time (account, executed_at_ms, number),
    KEY by_trade_date (account, trade_date, number),
    KEY by_settlement (account, settlement_date, side, consideration_kobo)
  ) ${table}`,
    `CREATE TABLE IF NOT EXISTS holdings (
    account VARCHAR(64) NOT NULL,
    symbol VARCHAR(32) NOT NULL,
    quantity BIGINT NOT NULL,
    cost_kobo BIGINT NOT NULL,
    PRIMARY KEY (account, symbol)
  ) ${table}`,
  ];
}
