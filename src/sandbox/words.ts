import type { DescEnum } from '@bufbuild/protobuf';
import * as allocations from '../gen/marina/broker/v1/allocations_pb.ts';
import * as applications from '../gen/marina/broker/v1/applications_pb.ts';
import * as orders from '../gen/marina/broker/v1/orders_pb.ts';
import { AllocationRejectReasonSchema } from '../gen/marina/gateway/v1/allocations_pb.ts';
import { DocumentTypeSchema } from '../gen/marina/gateway/v1/documents_pb.ts';
import { OrderRejectReasonSchema } from '../gen/marina/gateway/v1/orders_pb.ts';
import * as sandbox from '../gen/marina/gateway/v1/sandbox_pb.ts';
import * as simulator from '../gen/marina/simulator/v1/controls_pb.ts';
import { enumNames } from '../lib/enums.ts';

// The partners' enumerations and the simulator's have the same words; their numbers are their own.

export const orderOutcome = sameWords<simulator.Outcome>(sandbox.SandboxOrderOutcomeSchema, simulator.OutcomeSchema);
export const orderRejectReason = sameWords<orders.RejectReason>(OrderRejectReasonSchema, orders.RejectReasonSchema);
export const reportKind = sameWords<sandbox.ExchangeReportKind>(
  orders.ReportKindSchema,
  sandbox.ExchangeReportKindSchema,
);
export const applicationOutcome = sameWords<simulator.ApplicationOutcome>(
  sandbox.SandboxApplicationOutcomeSchema,
  simulator.ApplicationOutcomeSchema,
);
export const documentType = sameWords<applications.DocumentType>(DocumentTypeSchema, applications.DocumentTypeSchema);
export const documentOutcome = sameWords<applications.DocumentOutcome>(
  sandbox.SandboxDocumentOutcomeSchema,
  applications.DocumentOutcomeSchema,
);
export const allocationOutcome = sameWords<allocations.AllocationOutcome>(
  sandbox.SandboxAllocationOutcomeSchema,
  allocations.AllocationOutcomeSchema,
);
export const allocationRejectReason = sameWords<allocations.AllocationRejectReason>(
  AllocationRejectReasonSchema,
  allocations.AllocationRejectReasonSchema,
);
export const call = sameWords<simulator.Call>(sandbox.SandboxCallSchema, simulator.CallSchema);
export const fault = sameWords<simulator.WireFault>(sandbox.SandboxFaultSchema, simulator.WireFaultSchema);

/**
 * Translates the numbers of one enumeration to those of another that has the same words; what stands for none, to what stands
 * for none there. Throws when it is made, if a word is missing there.
 */
function sameWords<To extends number>(from: DescEnum, to: DescEnum): (value: number | undefined) => To {
  const numbers = new Map([...enumNames(to)].map(([number, word]) => [word, number]));
  const translated = new Map<number | undefined, number>();
  for (const [number, word] of enumNames(from)) {
    const known = numbers.get(word);
    if (known === undefined) throw new Error(`${to.typeName} has no word for ${word}`);
    translated.set(number, known);
  }
  return (value) => (translated.get(value) ?? 0) as To;
}
