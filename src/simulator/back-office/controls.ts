import { status } from '@grpc/grpc-js';
import { AllocationOutcome, AllocationRejectReason } from '../../gen/marina/broker/v1/allocations_pb.ts';
import { ApplicationRejectReason, DocumentOutcome, DocumentType } from '../../gen/marina/broker/v1/applications_pb.ts';
import { ApplicationOutcome, type Controls } from '../../gen/marina/simulator/v1/controls_pb.ts';
import type { SimulatorWriter } from '../store/writer.ts';
import { check, checkCount, checkPartner, maxDelayMs, maxTimes, whole } from '../validation.ts';
import type { Directives } from '../wire/directives.ts';
import { RpcError, type SimulatorHandlers } from '../wire/rpc.ts';
import { applicationReportMessage } from './messages.ts';
import { decide } from './operations.ts';
import type { BackOfficeRecords } from './records.ts';

const accountCode = /^[A-Z0-9]{1,64}$/;
const maxParamLength = 64;

export interface BackOfficeControlsContext {
  readonly writer: SimulatorWriter;
  readonly backOffice: BackOfficeRecords;
  readonly directives: Directives;
}

type BackOfficeControls = Pick<
  SimulatorHandlers<typeof Controls>,
  | 'forceApplication'
  | 'forceDocument'
  | 'forceAllocation'
  | 'decideApplication'
  | 'listApplications'
  | 'listAllocations'
  | 'listAccounts'
>;

/** The controls of applications, documents, allocations and accounts. */
export function backOfficeControls({ writer, backOffice, directives }: BackOfficeControlsContext): BackOfficeControls {
  return {
    forceApplication: async ({ times, outcome, rejectReason, param, delayMs }) => {
      checkCount(times, maxTimes, 'times');
      checkCount(delayMs, maxDelayMs, 'delay_ms');
      check(outcome in ApplicationOutcome, 'outcome');
      check(rejectReason in ApplicationRejectReason, 'reject_reason');
      check(param.length <= maxParamLength, 'param');
      directives.addApplication({ outcome, rejectReason, param, delayMs }, times);
      return {};
    },
    forceDocument: async ({ clientApplicationId, type, times, outcome, partner }) => {
      checkCount(times, maxTimes, 'times');
      checkPartner({ partner });
      check(type in DocumentType, 'type');
      check(outcome in DocumentOutcome, 'outcome');
      directives.addDocument({ clientApplicationId, type, outcome }, times, partner);
      return {};
    },
    forceAllocation: async ({ account, times, outcome, rejectReason, partner }) => {
      checkCount(times, maxTimes, 'times');
      checkPartner({ partner });
      check(outcome in AllocationOutcome, 'outcome');
      check(rejectReason in AllocationRejectReason, 'reject_reason');
      directives.addAllocation({ account, behaviour: { outcome, rejectReason } }, times, partner);
      return {};
    },
    decideApplication: async ({ clientApplicationId: id, outcome, account }) => {
      check(outcome === ApplicationOutcome.OPEN || outcome === ApplicationOutcome.DECLINE, 'outcome');
      check(account === '' || accountCode.test(account), 'account');
      const decision = outcome === ApplicationOutcome.OPEN ? 'open' : 'decline';
      const decided = await writer.runOn({ applications: [id] }, (unit) => decide(unit, id, decision, account));
      if (decided.outcome === 'decided') return { report: applicationReportMessage(decided.report) };
      throw decided.outcome === 'unknown'
        ? new RpcError(status.NOT_FOUND, 'The broker has no such application.')
        : new RpcError(status.FAILED_PRECONDITION, 'The application is decided already.');
    },
    listApplications: ({ afterSequence, clientApplicationId }) =>
      backOffice.applications(whole(afterSequence, 'after_sequence'), clientApplicationId),
    listAllocations: ({ afterSequence, clientAllocationId }) =>
      backOffice.allocations(whole(afterSequence, 'after_sequence'), clientAllocationId),
    listAccounts: ({ afterAccount }) => backOffice.accounts(afterAccount),
  };
}
