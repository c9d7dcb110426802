import { reportColumns, SimulatorTable } from '../store/table.ts';
import type { Withdrawal, WithdrawalEvent } from './withdrawal-model.ts';

export const withdrawals = new SimulatorTable<Withdrawal>(
  'withdrawals',
  {
    sequence: 'BIGINT NOT NULL PRIMARY KEY',
    clientWithdrawalId: 'VARCHAR(64) NOT NULL',
    account: 'VARCHAR(64) NOT NULL',
    amountKobo: 'BIGINT NOT NULL',
    destination: 'TINYINT NOT NULL',
    brokerReference: 'VARCHAR(32) NOT NULL',
    course: 'TINYINT NOT NULL',
    state: 'TINYINT NOT NULL',
    rejectReason: 'TINYINT NOT NULL',
    dutyKobo: 'BIGINT NOT NULL',
    decideAtMs: 'BIGINT NULL',
    returnAtMs: 'BIGINT NULL',
  },
  {
    keys: [
      'UNIQUE KEY by_client_withdrawal_id (client_withdrawal_id)',
      'KEY by_decision (decide_at_ms)',
      'KEY by_return (return_at_ms)',
      'KEY by_state (state)',
    ],
    changing: ['state', 'rejectReason', 'dutyKobo', 'decideAtMs', 'returnAtMs'],
  },
);

export const withdrawalReports = new SimulatorTable<WithdrawalEvent>(
  'withdrawal_reports',
  {
    ...reportColumns,
    clientWithdrawalId: 'VARCHAR(64) NOT NULL',
    brokerReference: 'VARCHAR(32) NOT NULL',
  },
  { keys: ['KEY by_withdrawal (client_withdrawal_id, number)', 'KEY by_time (at_ms, client_withdrawal_id)'] },
);
