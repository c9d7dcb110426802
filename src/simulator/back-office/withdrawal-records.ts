import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type WithdrawalReport, WithdrawalReportSchema } from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { Call, type ListWithdrawalsResponseSchema } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { SimulatorDatabase } from '../store/database.ts';
import { listPage } from '../store/pages.ts';
import type { WithdrawalEvent } from './withdrawal-model.ts';
import { withdrawalReports, withdrawals } from './withdrawal-tables.ts';

/** More reports than a withdrawal can have. */
const maxReports = 100;

/** Reads the tables of withdrawals. */
export class WithdrawalRecords {
  constructor(private readonly database: SimulatorDatabase) {}

  /** Whether the broker has a withdrawal, and its reports above a number. */
  async reportsOf(id: string, afterNumber: number) {
    const found = await this.database.read('SELECT 1 FROM withdrawals WHERE client_withdrawal_id = ?', [id]);
    const rows = await this.database.read(
      `SELECT ${withdrawalReports.columns} FROM withdrawal_reports
       WHERE client_withdrawal_id = ? AND number > ? ORDER BY number LIMIT ?`,
      [id, afterNumber, maxReports],
    );
    return { found: found.length > 0, reports: rows.map(withdrawalReports.fromRow) };
  }

  /** Reports above a number, up to the last that readers may see. */
  async reportsAfter(number: number, last: number, limit: number): Promise<WithdrawalEvent[]> {
    const rows = await this.database.read(
      `SELECT ${withdrawalReports.columns} FROM withdrawal_reports
       WHERE number > ? AND number <= ? ORDER BY number LIMIT ?`,
      [number, last, limit],
    );
    return rows.map(withdrawalReports.fromRow);
  }

  /** The account of a withdrawal; empty for an unknown withdrawal. */
  async accountOf(id: string): Promise<string> {
    const [row] = await this.database.read('SELECT account FROM withdrawals WHERE client_withdrawal_id = ?', [id]);
    return (row?.account as string | undefined) ?? '';
  }

  /** The broker's withdrawals, in the order in which they came. */
  async withdrawals(after: number, id: string): Promise<MessageInitShape<typeof ListWithdrawalsResponseSchema>> {
    const key = 'client_withdrawal_id';
    const page = await listPage(this.database, withdrawals, { key, call: Call.SUBMIT_WITHDRAWAL, after, id });
    const shown = page.found.map(([withdrawal, timesReceived]) => {
      const { clientWithdrawalId, account, destination, state, brokerReference, rejectReason } = withdrawal;
      return {
        ...{ clientWithdrawalId, account, destination, state, brokerReference, rejectReason, timesReceived },
        sequence: BigInt(withdrawal.sequence),
        amountKobo: BigInt(withdrawal.amountKobo),
        dutyKobo: BigInt(withdrawal.dutyKobo),
        returnAt: withdrawal.returnAtMs === null ? undefined : timestampFromMs(withdrawal.returnAtMs),
      };
    });
    return { withdrawals: shown, hasMore: page.hasMore };
  }
}

/** Converts a report to its message. */
export function withdrawalReportMessage(report: WithdrawalEvent): WithdrawalReport {
  return create(WithdrawalReportSchema, {
    number: BigInt(report.number),
    clientWithdrawalId: report.clientWithdrawalId,
    kind: report.kind,
    at: timestampFromMs(report.atMs),
    brokerReference: report.brokerReference,
    rejectReason: report.rejectReason,
  });
}
