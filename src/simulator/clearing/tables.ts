import { bigWhole, SimulatorTable, tableDefinition } from '../store/table.ts';
import type { Deal } from './deals.ts';

/** One row for each execution: the trade, and the contract note after settlement. */
export const deals = new SimulatorTable<Deal>(
  'deals',
  {
    number: 'BIGINT NOT NULL PRIMARY KEY',
    account: 'VARCHAR(64) NOT NULL',
    clientOrderId: 'VARCHAR(64) NOT NULL',
    symbol: 'VARCHAR(32) NOT NULL',
    name: 'VARCHAR(200) NOT NULL',
    side: 'TINYINT NOT NULL',
    quantity: 'BIGINT NOT NULL',
    priceKobo: 'BIGINT NOT NULL',
    amountKobo: bigWhole,
    commissionKobo: bigWhole,
    statutoryKobo: bigWhole,
    otherKobo: bigWhole,
    considerationKobo: bigWhole,
    executedAtMs: 'BIGINT NOT NULL',
    tradeDate: 'CHAR(10) NOT NULL',
    settlementDate: 'CHAR(10) NOT NULL',
  },
  {
    keys: [
      'KEY by_time (account, executed_at_ms, number)',
      'KEY by_trade_date (account, trade_date, number)',
      'KEY by_day (trade_date, account, number)',
      'KEY by_settlement (account, settlement_date, side, consideration_kobo)',
    ],
  },
);

/** Creates clearing's tables if they are missing. */
export const clearingTables = [
  deals.definition,
  tableDefinition('holdings', [
    'account VARCHAR(64) NOT NULL',
    'symbol VARCHAR(32) NOT NULL',
    'quantity BIGINT NOT NULL',
    'cost_kobo BIGINT NOT NULL',
    'PRIMARY KEY (account, symbol)',
  ]),
  // The sales that are to be settled directly and are not yet.
  tableDefinition('direct_sales', ['deal BIGINT NOT NULL PRIMARY KEY']),
  tableDefinition('shares_elsewhere', ['account VARCHAR(64) NOT NULL PRIMARY KEY', 'shares BIGINT NOT NULL']),
];
