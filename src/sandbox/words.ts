import * as allocations from '../gen/marina/broker/v1/allocations_pb.ts';
import * as applications from '../gen/marina/broker/v1/applications_pb.ts';
import * as orders from '../gen/marina/broker/v1/orders_pb.ts';
import { AllocationRejectReason } from '../gen/marina/gateway/v1/allocations_pb.ts';
import { DocumentType } from '../gen/marina/gateway/v1/documents_pb.ts';
import { OrderRejectReason } from '../gen/marina/gateway/v1/orders_pb.ts';
import * as sandbox from '../gen/marina/gateway/v1/sandbox_pb.ts';
import * as simulator from '../gen/marina/simulator/v1/controls_pb.ts';
import { translateEnum } from '../lib/enums.ts';

// The partners' enumerations and the simulator's have the same names; their numbers are their own.

export const orderOutcome = translateEnum(sandbox.SandboxOrderOutcome, simulator.Outcome);
export const orderRejectReason = translateEnum(OrderRejectReason, orders.RejectReason);
export const reportKind = translateEnum(orders.ReportKind, sandbox.ExchangeReportKind);
export const applicationOutcome = translateEnum(sandbox.SandboxApplicationOutcome, simulator.ApplicationOutcome);
export const documentType = translateEnum(DocumentType, applications.DocumentType);
export const documentOutcome = translateEnum(sandbox.SandboxDocumentOutcome, applications.DocumentOutcome);
export const allocationOutcome = translateEnum(sandbox.SandboxAllocationOutcome, allocations.AllocationOutcome);
export const allocationRejectReason = translateEnum(AllocationRejectReason, allocations.AllocationRejectReason);
export const call = translateEnum(sandbox.SandboxCall, simulator.Call);
export const fault = translateEnum(sandbox.SandboxFault, simulator.WireFault);
