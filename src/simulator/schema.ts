import { backOfficeSchema } from './back-office/schema.ts';
import { clearingSchema } from './clearing/schema.ts';

const table = 'ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin';

/**
 * The simulator's tables, made when they are missing. It is a sandbox's broker and not a system with a history, so it
 * has no migrations: a table that must change gets a new name, or a column it lacked.
 */
export const schema: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS settings (
    name VARCHAR(32) NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
  ) ${table}`,
  `CREATE TABLE IF NOT EXISTS accounts (
    account VARCHAR(64) NOT NULL PRIMARY KEY,
    status TINYINT NOT NULL
  ) ${table}`,
  `CREATE TABLE IF NOT EXISTS instruments (
    symbol VARCHAR(32) NOT NULL PRIMARY KEY,
    name VARCHAR(200) NOT NULL,
    kind TINYINT NOT NULL,
    lower_kobo BIGINT NOT NULL,
    upper_kobo BIGINT NOT NULL,
    quote_kobo BIGINT NOT NULL,
    last_kobo BIGINT NOT NULL,
    halted TINYINT NOT NULL,
    position INT NOT NULL,
    pinned TINYINT NOT NULL DEFAULT 0
  ) ${table}`,
  // Every message, whatever became of it: what tests hold against the gateway's own record.
  `CREATE TABLE IF NOT EXISTS received_messages (
    number BIGINT NOT NULL PRIMARY KEY,
    call_kind TINYINT NOT NULL,
    client_order_id VARCHAR(64) NOT NULL,
    account VARCHAR(64) NOT NULL,
    received_at_ms BIGINT NOT NULL,
    taken TINYINT NOT NULL,
    request_id VARCHAR(64) NOT NULL,
    trace_parent VARCHAR(64) NOT NULL,
    KEY by_order (client_order_id, number)
  ) ${table}`,
  `CREATE TABLE IF NOT EXISTS orders (
    sequence BIGINT NOT NULL PRIMARY KEY,
    client_order_id VARCHAR(64) NOT NULL,
    exchange_order_id VARCHAR(32) NOT NULL,
    account VARCHAR(64) NOT NULL,
    symbol VARCHAR(32) NOT NULL,
    side TINYINT NOT NULL,
    type TINYINT NOT NULL,
    time_in_force TINYINT NOT NULL,
    quantity BIGINT NOT NULL,
    price_kobo BIGINT NULL,
    filled BIGINT NOT NULL,
    ended_by TINYINT NOT NULL,
    expires_at_ms BIGINT NULL,
    plan TEXT NULL,
    plan_at_ms BIGINT NULL,
    in_book TINYINT NULL,
    traded_on CHAR(10) NULL,
    traded_kobo BIGINT NOT NULL DEFAULT 0,
    UNIQUE KEY by_client_order_id (client_order_id),
    KEY by_expiry (expires_at_ms),
    KEY by_plan (plan_at_ms),
    KEY by_book (in_book)
  ) ${table}`,
  `CREATE TABLE IF NOT EXISTS reports (
    number BIGINT NOT NULL PRIMARY KEY,
    client_order_id VARCHAR(64) NOT NULL,
    exchange_order_id VARCHAR(32) NOT NULL,
    kind TINYINT NOT NULL,
    at_ms BIGINT NOT NULL,
    quantity BIGINT NOT NULL,
    price_kobo BIGINT NOT NULL,
    reject_reason TINYINT NOT NULL,
    KEY by_order (client_order_id, number)
  ) ${table}`,
  `CREATE TABLE IF NOT EXISTS submissions (
    number BIGINT NOT NULL PRIMARY KEY,
    client_id VARCHAR(64) NOT NULL,
    note VARBINARY(2048) NOT NULL
  ) ${table}`,
  ...backOfficeSchema(table),
  ...clearingSchema(table),
];

/** Columns that came later, with what adds them to a table made before. */
export const laterColumns: readonly { readonly table: string; readonly column: string; readonly change: string }[] = [
  {
    table: 'orders',
    column: 'in_book',
    change:
      'ADD in_book TINYINT NULL, ADD traded_on CHAR(10) NULL, ADD traded_kobo BIGINT NOT NULL DEFAULT 0, ' +
      'ADD KEY by_book (in_book)',
  },
  { table: 'instruments', column: 'pinned', change: 'ADD pinned TINYINT NOT NULL DEFAULT 0' },
];
