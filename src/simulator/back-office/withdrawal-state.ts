import type { RowDataPacket } from 'mysql2/promise';
import { WithdrawalDestination, WithdrawalReportKind } from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import type { AccountFunds } from '../clearing/funds.ts';
import type { WriterConnection } from '../store/database.ts';
import { dutyOn } from './withdrawal-rules.ts';
import { withdrawals } from './withdrawal-tables.ts';

export type OfferedDestination = WithdrawalDestination.WALLET | WithdrawalDestination.BANK_ACCOUNT;

/** Each destination with the name of its setting in the database. */
export const destinationSettings: readonly (readonly [OfferedDestination, string])[] = [
  [WithdrawalDestination.WALLET, 'withdrawals_to_wallet'],
  [WithdrawalDestination.BANK_ACCOUNT, 'withdrawals_to_bank_account'],
];

const all = { [WithdrawalDestination.WALLET]: true, [WithdrawalDestination.BANK_ACCOUNT]: true } as const;

/** The state of withdrawals in memory. Only the writer changes it, together with the tables. */
export class WithdrawalState {
  lastSequence = 0;
  lastReport = 0;
  /** Whether the broker takes withdrawals to each destination. */
  readonly taken: Record<OfferedDestination, boolean> = { ...all };

  /** The destinations that the broker states. */
  get destinations(): readonly WithdrawalDestination[] {
    return destinationSettings.filter(([destination]) => this.taken[destination]).map(([destination]) => destination);
  }

  /** Reads the last numbers, and sets aside the duty of each withdrawal that is not paid yet. */
  async load(connection: WriterConnection, funds: AccountFunds): Promise<void> {
    const [last] = await connection.read<RowDataPacket & { sequence: number; report: number }>(
      `SELECT (SELECT COALESCE(MAX(sequence), 0) FROM withdrawals) AS sequence,
              (SELECT COALESCE(MAX(number), 0) FROM withdrawal_reports) AS report`,
    );
    this.lastSequence = last?.sequence ?? 0;
    this.lastReport = last?.report ?? 0;
    const stored = await connection.read<RowDataPacket & { name: string; value: number }>(
      'SELECT name, value FROM settings',
    );
    for (const [destination, name] of destinationSettings) {
      this.taken[destination] = stored.find((setting) => setting.name === name)?.value !== 0;
    }
    const accepted = await connection.read(`SELECT ${withdrawals.columns} FROM withdrawals WHERE state = ?`, [
      WithdrawalReportKind.ACCEPTED,
    ]);
    for (const withdrawal of accepted.map(withdrawals.fromRow)) funds.setAside(withdrawal.account, dutyOn(withdrawal));
  }
}
