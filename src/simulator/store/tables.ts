import { backOfficeTables } from '../back-office/tables.ts';
import { clearingTables } from '../clearing/tables.ts';
import type { InstrumentState, Order, OrderReport, PlannedStep, ReceivedCall } from '../model.ts';
import { bigWhole, flag, reportColumns, SimulatorTable, tableDefinition } from './table.ts';

/** Every message, whatever its outcome. Tests compare it with the gateway's own record. */
export const messages = new SimulatorTable<ReceivedCall>(
  'received_messages',
  {
    number: 'BIGINT NOT NULL PRIMARY KEY',
    call: { name: 'call_kind', type: 'TINYINT NOT NULL', toColumn: Number, fromColumn: Number },
    clientOrderId: 'VARCHAR(64) NOT NULL',
    account: 'VARCHAR(64) NOT NULL',
    receivedAtMs: 'BIGINT NOT NULL',
    taken: flag,
    requestId: 'VARCHAR(64) NOT NULL',
    traceParent: 'VARCHAR(64) NOT NULL',
  },
  { keys: ['KEY by_order (client_order_id, number)'], changing: ['taken'] },
);

export const orders = new SimulatorTable<Omit<Order, 'partner'>>(
  'orders',
  {
    sequence: 'BIGINT NOT NULL PRIMARY KEY',
    clientOrderId: 'VARCHAR(64) NOT NULL',
    exchangeOrderId: 'VARCHAR(32) NOT NULL',
    account: 'VARCHAR(64) NOT NULL',
    symbol: 'VARCHAR(32) NOT NULL',
    side: 'TINYINT NOT NULL',
    type: 'TINYINT NOT NULL',
    timeInForce: 'TINYINT NOT NULL',
    quantity: 'BIGINT NOT NULL',
    priceKobo: 'BIGINT NULL',
    filled: 'BIGINT NOT NULL',
    endedBy: 'TINYINT NOT NULL',
    expiresAtMs: 'BIGINT NULL',
    plan: {
      type: 'TEXT NULL',
      toColumn: (plan) => (plan.length === 0 ? null : JSON.stringify(plan)),
      fromColumn: (stored) => (stored === null ? [] : (JSON.parse(String(stored)) as PlannedStep[])),
    },
    planAtMs: 'BIGINT NULL',
    // Null outside a book, so that the index of orders in books stays small.
    inBook: { ...flag, type: 'TINYINT NULL', toColumn: (inBook) => (inBook ? 1 : null) },
    tradedOn: 'CHAR(10) NULL',
    tradedKobo: { ...bigWhole, type: 'BIGINT NOT NULL DEFAULT 0' },
  },
  {
    keys: [
      'UNIQUE KEY by_client_order_id (client_order_id)',
      'KEY by_expiry (expires_at_ms)',
      'KEY by_plan (plan_at_ms)',
      'KEY by_book (in_book)',
    ],
    changing: ['filled', 'endedBy', 'expiresAtMs', 'plan', 'planAtMs', 'inBook', 'tradedOn', 'tradedKobo'],
  },
);

/** The ids of submissions that were refused for good. A later copy is known by its id. */
export const refusals = new SimulatorTable<{ clientId: string }>('refused_submissions', {
  clientId: 'VARCHAR(64) NOT NULL PRIMARY KEY',
});

export const reports = new SimulatorTable<OrderReport>(
  'reports',
  {
    ...reportColumns,
    clientOrderId: 'VARCHAR(64) NOT NULL',
    exchangeOrderId: 'VARCHAR(32) NOT NULL',
    quantity: 'BIGINT NOT NULL',
    priceKobo: 'BIGINT NOT NULL',
  },
  { keys: ['KEY by_order (client_order_id, number)', 'KEY by_time (at_ms, client_order_id)'] },
);

export const instruments = new SimulatorTable<InstrumentState>(
  'instruments',
  {
    symbol: 'VARCHAR(32) NOT NULL PRIMARY KEY',
    name: 'VARCHAR(200) NOT NULL',
    kind: 'TINYINT NOT NULL',
    lowerKobo: 'BIGINT NOT NULL',
    upperKobo: 'BIGINT NOT NULL',
    quoteKobo: 'BIGINT NOT NULL',
    lastKobo: 'BIGINT NOT NULL',
    halted: flag,
    position: 'INT NOT NULL',
    pinned: { ...flag, type: 'TINYINT NOT NULL DEFAULT 0' },
  },
  {
    changing: ['name', 'kind', 'lowerKobo', 'upperKobo', 'quoteKobo', 'lastKobo', 'halted', 'position', 'pinned'],
  },
);

export const accounts = new SimulatorTable<{ account: string; status: number }>(
  'accounts',
  { account: 'VARCHAR(64) NOT NULL PRIMARY KEY', status: 'TINYINT NOT NULL' },
  { changing: ['status'] },
);

export const settings = new SimulatorTable<{ name: string; value: number }>(
  'settings',
  { name: 'VARCHAR(32) NOT NULL PRIMARY KEY', value: 'BIGINT NOT NULL' },
  { changing: ['value'] },
);

/** Creates missing tables. There are no migrations: a changed table gets a new name, or the column it lacks. */
export const schema: readonly string[] = [
  ...[settings, accounts, instruments, messages, orders, reports, refusals].map(({ definition }) => definition),
  tableDefinition('submissions', [
    'number BIGINT NOT NULL PRIMARY KEY',
    'client_id VARCHAR(64) NOT NULL',
    'note VARBINARY(2048) NOT NULL',
  ]),
  ...backOfficeTables,
  ...clearingTables,
];

/** Later columns, with the statement that adds each to an older table. */
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

/** Later keys, with the statement that adds each to an older table. */
export const laterKeys: readonly { readonly table: string; readonly key: string; readonly change: string }[] = [
  { table: 'reports', key: 'by_time', change: 'ADD KEY by_time (at_ms, client_order_id)' },
  { table: 'allocations', key: 'by_time', change: 'ADD KEY by_time (at_ms)' },
  { table: 'deals', key: 'by_day', change: 'ADD KEY by_day (trade_date, account, number)' },
];
