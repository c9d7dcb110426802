import type {
  AccountActivity,
  AccountRestrictionCode,
  AccountState,
  TransactionType,
} from '../../gen/marina/broker/v1/accounts_pb.ts';
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

/** One booking that changed an account's money. */
export interface Transaction {
  readonly number: number;
  readonly account: string;
  readonly type: TransactionType;
  readonly amountKobo: bigint;
  /** After it, without the money that every account begins with. */
  readonly balanceKobo: bigint;
  /** The number of its execution; 0: none. */
  readonly deal: number;
  /** Empty without an allocation. */
  readonly clientAllocationId: string;
  /** Empty without a withdrawal. */
  readonly clientWithdrawalId: string;
  /** The number of the transaction that it takes back; 0: none. */
  readonly reverses: number;
  /** Never earlier than the account's transaction before. */
  readonly bookedAtMs: number;
}

export const transactions = new SimulatorTable<Transaction>(
  'account_transactions',
  {
    number: 'BIGINT NOT NULL PRIMARY KEY',
    account: 'VARCHAR(64) NOT NULL',
    type: 'TINYINT NOT NULL',
    amountKobo: bigWhole,
    balanceKobo: bigWhole,
    deal: 'BIGINT NOT NULL',
    clientAllocationId: 'VARCHAR(64) NOT NULL',
    clientWithdrawalId: 'VARCHAR(64) NOT NULL',
    reverses: 'BIGINT NOT NULL',
    bookedAtMs: 'BIGINT NOT NULL',
  },
  { keys: ['KEY by_account (account, number)', 'KEY by_time (account, booked_at_ms, number)'] },
);

/** The state of an account as a control has set it. */
export interface SetState {
  readonly account: string;
  readonly state: AccountState;
  readonly restrictions: readonly Restriction[];
}

export interface Restriction {
  readonly code: AccountRestrictionCode;
  readonly forbids: readonly AccountActivity[];
  readonly sinceMs: number;
}

export const accountStates = new SimulatorTable<SetState>(
  'account_states',
  {
    account: 'VARCHAR(64) NOT NULL PRIMARY KEY',
    state: 'TINYINT NOT NULL',
    restrictions: {
      type: 'TEXT NOT NULL',
      toColumn: (restrictions) => JSON.stringify(restrictions),
      fromColumn: (stored) => JSON.parse(String(stored)) as Restriction[],
    },
  },
  { changing: ['state', 'restrictions'] },
);

/** Creates clearing's tables if they are missing. */
export const clearingTables = [
  deals.definition,
  transactions.definition,
  accountStates.definition,
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
