import { status } from '@grpc/grpc-js';
import {
  WithdrawalDestination,
  WithdrawalRejectReason,
  WithdrawalReportKind,
} from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { type Controls, WithdrawalOutcome } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { UnitOfWork } from '../store/unit-of-work.ts';
import type { SimulatorWriter } from '../store/writer.ts';
import { check, checkCount, checkPartner, maxTimes, whole } from '../validation.ts';
import type { Directives } from '../wire/directives.ts';
import { RpcError, type SimulatorHandlers } from '../wire/rpc.ts';
import { type WithdrawalRecords, withdrawalReportMessage } from './withdrawal-records.ts';
import { decideWithdrawal } from './withdrawals.ts';

const { PAID, REJECTED, RETURNED } = WithdrawalReportKind;

export interface WithdrawalControlsContext {
  readonly writer: SimulatorWriter;
  readonly withdrawals: WithdrawalRecords;
  readonly directives: Directives;
}

type WithdrawalControls = Pick<
  SimulatorHandlers<typeof Controls>,
  'forceWithdrawal' | 'decideWithdrawal' | 'listWithdrawals' | 'setDirectSettlement'
>;

/** The controls of withdrawals. */
export function withdrawalControls(context: WithdrawalControlsContext): WithdrawalControls {
  const { writer, withdrawals, directives } = context;
  return {
    forceWithdrawal: async ({ account, times, outcome, rejectReason, partner }) => {
      checkCount(times, maxTimes, 'times');
      checkPartner({ partner });
      check(outcome in WithdrawalOutcome, 'outcome');
      check(rejectReason in WithdrawalRejectReason, 'reject_reason');
      directives.addWithdrawal({ account, behaviour: { outcome, rejectReason } }, times, partner);
      return {};
    },
    decideWithdrawal: async ({ clientWithdrawalId: id, kind, rejectReason }) => {
      check(kind === PAID || kind === REJECTED || kind === RETURNED, 'kind');
      check(rejectReason in WithdrawalRejectReason, 'reject_reason');
      const decided = await writer.runOn({ withdrawals: [id] }, (unit) =>
        decideWithdrawal(unit, id, kind, rejectReason),
      );
      if (decided.outcome === 'decided') return { report: withdrawalReportMessage(decided.report) };
      throw decided.outcome === 'unknown'
        ? new RpcError(status.NOT_FOUND, 'The broker has no such withdrawal.')
        : new RpcError(status.FAILED_PRECONDITION, 'The state of the withdrawal does not allow it.');
    },
    setDirectSettlement: async ({ isDirect }) => {
      await writer.run([], (unit) => unit.clearing.directSales.setOn(isDirect));
      return {};
    },
    listWithdrawals: ({ afterSequence, clientWithdrawalId }) =>
      withdrawals.withdrawals(whole(afterSequence, 'after_sequence'), clientWithdrawalId),
  };
}

/** Sets the destinations of withdrawals that a request names. */
export function setDestinations(
  unit: UnitOfWork,
  request: { readonly withdrawalsToWallet?: boolean; readonly withdrawalsToBankAccount?: boolean },
): void {
  const { withdrawalsToWallet, withdrawalsToBankAccount } = request;
  const { WALLET, BANK_ACCOUNT } = WithdrawalDestination;
  if (withdrawalsToWallet !== undefined) unit.withdrawals.setTaken(WALLET, withdrawalsToWallet);
  if (withdrawalsToBankAccount !== undefined) unit.withdrawals.setTaken(BANK_ACCOUNT, withdrawalsToBankAccount);
}
