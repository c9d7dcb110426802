import { flag, reportColumns, SimulatorTable } from '../store/table.ts';
import type { Allocation, Application, ApplicationEvent, CashEntry, DocumentFile } from './model.ts';
import { withdrawalReports, withdrawals } from './withdrawal-tables.ts';

export const applications = new SimulatorTable<Application>(
  'applications',
  {
    sequence: 'BIGINT NOT NULL PRIMARY KEY',
    clientApplicationId: 'VARCHAR(64) NOT NULL',
    reference: 'VARCHAR(32) NOT NULL',
    course: 'TINYINT NOT NULL',
    decideAfterMs: 'INT NOT NULL',
    magicName: 'VARCHAR(64) NOT NULL',
    state: 'TINYINT NOT NULL',
    account: 'VARCHAR(64) NOT NULL',
    rejectReason: 'TINYINT NOT NULL',
    param: 'VARCHAR(64) NOT NULL',
    decideAtMs: 'BIGINT NULL',
  },
  {
    keys: ['UNIQUE KEY by_client_application_id (client_application_id)', 'KEY by_decision (decide_at_ms)'],
    changing: ['state', 'account', 'rejectReason', 'param', 'decideAtMs'],
  },
);

export const applicationReports = new SimulatorTable<ApplicationEvent>(
  'application_reports',
  {
    ...reportColumns,
    clientApplicationId: 'VARCHAR(64) NOT NULL',
    reference: 'VARCHAR(32) NOT NULL',
    account: 'VARCHAR(64) NOT NULL',
    param: 'VARCHAR(64) NOT NULL',
  },
  { keys: ['KEY by_application (client_application_id, number)'] },
);

/** Only the digest of a file is kept, because files are personal. A test can tell how often a file came. */
export const documents = new SimulatorTable<DocumentFile>(
  'documents',
  {
    clientApplicationId: 'VARCHAR(64) NOT NULL',
    type: 'TINYINT NOT NULL',
    sha256: 'CHAR(64) NOT NULL',
    sizeBytes: 'INT NOT NULL',
    timesReceived: 'INT NOT NULL',
    delivered: flag,
    firstReceived: 'BIGINT NOT NULL',
  },
  { keys: ['PRIMARY KEY (client_application_id, type, sha256)'], changing: ['timesReceived', 'delivered'] },
);

export const allocations = new SimulatorTable<Allocation>(
  'allocations',
  {
    sequence: 'BIGINT NOT NULL PRIMARY KEY',
    clientAllocationId: 'VARCHAR(64) NOT NULL',
    account: 'VARCHAR(64) NOT NULL',
    amountKobo: 'BIGINT NOT NULL',
    outcome: 'TINYINT NOT NULL',
    brokerReference: 'VARCHAR(32) NOT NULL',
    rejectReason: 'TINYINT NOT NULL',
    atMs: 'BIGINT NOT NULL',
  },
  { keys: ['UNIQUE KEY by_client_allocation_id (client_allocation_id)', 'KEY by_time (at_ms)'] },
);

export const cash = new SimulatorTable<Pick<CashEntry, 'account' | 'balanceKobo'>>(
  'cash',
  { account: 'VARCHAR(64) NOT NULL PRIMARY KEY', balanceKobo: 'BIGINT NOT NULL' },
  { changing: ['balanceKobo'] },
);

export const cashEntries = new SimulatorTable<CashEntry>(
  'cash_entries',
  {
    number: 'BIGINT NOT NULL PRIMARY KEY',
    account: 'VARCHAR(64) NOT NULL',
    amountKobo: 'BIGINT NOT NULL',
    balanceKobo: 'BIGINT NOT NULL',
    clientAllocationId: 'VARCHAR(64) NOT NULL',
    atMs: 'BIGINT NOT NULL',
  },
  { keys: ['KEY by_account (account, number)'] },
);

/** Creates the back office's tables if they are missing. */
export const backOfficeTables = [
  ...[applications, applicationReports, documents, allocations, cash, cashEntries],
  ...[withdrawals, withdrawalReports],
].map(({ definition }) => definition);
