import { WithdrawalRejectReason, WithdrawalReportKind } from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { settings } from '../store/tables.ts';
import type { World } from '../world.ts';
import type { Withdrawal, WithdrawalEvent } from './withdrawal-model.ts';
import { destinationSettings, type OfferedDestination } from './withdrawal-state.ts';
import { withdrawalReports, withdrawals } from './withdrawal-tables.ts';

/** The withdrawals loaded for a change. */
export interface HeldWithdrawals {
  readonly withdrawals: Map<string, Withdrawal>;
}

/** The part of a unit of work that is about withdrawals. Their money is the back office's. */
export class WithdrawalsUnit {
  readonly reports: WithdrawalEvent[] = [];
  readonly changed = new Set<Withdrawal>();

  readonly #settings = new Map<string, number>();

  constructor(
    private readonly world: World,
    private readonly held: HeldWithdrawals,
  ) {}

  /** One of the withdrawals loaded for the change, if it exists. */
  withdrawal(clientWithdrawalId: string): Withdrawal | undefined {
    return this.held.withdrawals.get(clientWithdrawalId);
  }

  /** Adds a withdrawal, with the broker's reference if it is accepted. */
  add(fields: Omit<Withdrawal, 'sequence' | 'brokerReference'>, accepted: boolean): Withdrawal {
    const state = this.world.withdrawals;
    state.lastSequence += 1;
    const sequence = state.lastSequence;
    const brokerReference = accepted ? `WDL${String(sequence).padStart(12, '0')}` : '';
    const withdrawal: Withdrawal = { ...fields, sequence, brokerReference };
    this.held.withdrawals.set(withdrawal.clientWithdrawalId, withdrawal);
    this.changed.add(withdrawal);
    return withdrawal;
  }

  /** Reports a withdrawal's new state, with the next number. */
  report(withdrawal: Withdrawal, kind: WithdrawalReportKind): WithdrawalEvent {
    withdrawal.state = kind;
    this.changed.add(withdrawal);
    this.world.withdrawals.lastReport += 1;
    const report: WithdrawalEvent = {
      number: this.world.withdrawals.lastReport,
      clientWithdrawalId: withdrawal.clientWithdrawalId,
      kind,
      atMs: this.world.clock.shownNow(),
      brokerReference: withdrawal.brokerReference,
      rejectReason:
        kind === WithdrawalReportKind.REJECTED ? withdrawal.rejectReason : WithdrawalRejectReason.UNSPECIFIED,
    };
    this.reports.push(report);
    return report;
  }

  /** Sets whether the broker takes withdrawals to a destination. */
  setTaken(destination: OfferedDestination, isTaken: boolean): void {
    this.world.withdrawals.taken[destination] = isTaken;
    const name = destinationSettings.find(([each]) => each === destination)?.[1];
    if (name !== undefined) this.#settings.set(name, isTaken ? 1 : 0);
  }

  statements(): string[] {
    return [
      ...withdrawals.save(this.changed),
      ...withdrawalReports.save(this.reports),
      ...settings.save([...this.#settings].map(([name, value]) => ({ name, value }))),
    ];
  }
}
