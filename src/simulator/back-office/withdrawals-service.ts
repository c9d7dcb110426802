import type { MessageInitShape } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  type LookUpWithdrawalRequest,
  type LookUpWithdrawalResponseSchema,
  type SubmitWithdrawalRequest,
  WithdrawalDestination,
  WithdrawalReportKind,
  type Withdrawals,
} from '../../gen/marina/broker/v1/withdrawals_pb.ts';
import { Call } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { byTurns } from '../exchange/nonsense.ts';
import { check, checkNote, instantMs, isWhole, positive, text, whole } from '../validation.ts';
import { carrySubmission, completeUntil, receipt } from '../wire/legs.ts';
import { RpcError, type SimulatorHandlers, type WireCall } from '../wire/rpc.ts';
import type { World } from '../world.ts';
import type { BackOfficeContext } from './applications-service.ts';
import { faultOf } from './magic.ts';
import { withdrawalMagic } from './withdrawal-magic.ts';
import type { WithdrawalSubmission } from './withdrawal-model.ts';
import { type WithdrawalRecords, withdrawalReportMessage } from './withdrawal-records.ts';
import { submitWithdrawal } from './withdrawals.ts';

export type WithdrawalsContext = Pick<BackOfficeContext, 'world' | 'writer' | 'wire' | 'settings'> & {
  readonly withdrawals: WithdrawalRecords;
};

const maxAmountKobo = 10_000_000_000n;

/** The broker's service for withdrawals without its stream. Each call passes the faults first. */
export function withdrawalsService(context: WithdrawalsContext): SimulatorHandlers<typeof Withdrawals> {
  const nonsense = byTurns<{ report?: typeof foreignReport }>({ report: foreignReport }, {});
  return {
    submitWithdrawal: async (request, call) => {
      checkOffered(context.world);
      return submit(context, request, call, nonsense);
    },
    lookUpWithdrawal: async (request, call) => {
      checkOffered(context.world);
      return lookUp(context, request, call);
    },
  };
}

/** Throws UNIMPLEMENTED if the broker takes no withdrawals at all. */
export function checkOffered(world: World): void {
  if (world.withdrawals.destinations.length > 0) return;
  throw new RpcError(status.UNIMPLEMENTED, 'This broker takes no withdrawals.');
}

function submit(
  context: WithdrawalsContext,
  request: SubmitWithdrawalRequest,
  call: WireCall,
  nonsense: () => { report?: typeof foreignReport },
) {
  const { clientWithdrawalId: id, account } = request;
  return carrySubmission(context, call, {
    ...{ call: Call.SUBMIT_WITHDRAWAL, kind: 'withdrawal', id, account, request, needs: { withdrawals: [id] } },
    check: submissionFrom,
    submit: (unit, submission) => submitWithdrawal(unit, submission, instantMs(request.notAfter), context.settings),
    answer: (report) => ({ report: withdrawalReportMessage(report) }),
    magicFault: faultOf(withdrawalMagic(request.amountKobo)),
    nonsense,
  });
}

function lookUp(context: WithdrawalsContext, request: LookUpWithdrawalRequest, call: WireCall) {
  const { writer, wire, withdrawals, world } = context;
  const { clientWithdrawalId: id } = request;
  const received = receipt(world, Call.LOOK_UP_WITHDRAWAL, id, call);
  // Through the writer first, so that earlier submissions are in the table.
  const record = (taken: boolean, number?: number) =>
    writer.runOn({ withdrawals: [id] }, (unit) =>
      received(unit, unit.withdrawals.withdrawal(id)?.account ?? '', taken, number),
    );
  return wire.carry<MessageInitShape<typeof LookUpWithdrawalResponseSchema>>(call, {
    call: Call.LOOK_UP_WITHDRAWAL,
    clientId: id,
    account: () => withdrawals.accountOf(id),
    record: () => record(false),
    take: async (recorded) => {
      await record(isWhole(request.afterNumber), recorded);
      const { found, reports } = await withdrawals.reportsOf(id, whole(request.afterNumber, 'after_number'));
      return { found, reports: reports.map(withdrawalReportMessage), completeUntil: completeUntil(world) };
    },
    nonsense: () => ({ found: true, reports: [foreignReport] }),
  });
}

/** Reads a withdrawal from its request. A request that makes no sense is an invalid argument, not a rejection. */
function submissionFrom(request: SubmitWithdrawalRequest): WithdrawalSubmission {
  checkNote(request);
  check(request.amountKobo <= maxAmountKobo, 'amount_kobo');
  const { destination } = request;
  check(destination !== WithdrawalDestination.UNSPECIFIED && destination in WithdrawalDestination, 'destination');
  return {
    clientWithdrawalId: text(request.clientWithdrawalId, 'client_withdrawal_id', 64),
    account: text(request.account, 'account', 64),
    amountKobo: positive(request.amountKobo, 'amount_kobo'),
    destination,
  };
}

const foreignReport = {
  number: 9_007_199_254_740_991n,
  clientWithdrawalId: 'nobody-sent-this',
  kind: WithdrawalReportKind.PAID,
  brokerReference: 'WDL-NONSENSE',
};
