import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  AllocationOutcome,
  type LookUpAllocationResponseSchema,
  type SubmitAllocationResponseSchema,
} from '../../gen/marina/broker/v1/allocations_pb.ts';
import {
  ApplicationReportKind,
  DocumentOutcome,
  DocumentPresence,
  type LookUpApplicationResponseSchema,
  type LookUpDocumentResponseSchema,
  type SendDocumentResponseSchema,
  type SubmitApplicationResponseSchema,
} from '../../gen/marina/broker/v1/applications_pb.ts';
import type { ListLgasResponseSchema, ListStatesResponseSchema } from '../../gen/marina/broker/v1/reference_pb.ts';
import { byTurns } from '../nonsense.ts';

/** Answers of the back office that are well formed and make no sense: what a caller must not believe. */
export type BackOfficeNonsense = ReturnType<typeof createBackOfficeNonsense>;

/** One simulator's nonsense. */
export function createBackOfficeNonsense() {
  return {
    /** A state without a code, and one twice. */
    listStates: (): MessageInitShape<typeof ListStatesResponseSchema> => ({ states: nonsenseAreas }),
    /** The same of local government areas. */
    listLgas: (): MessageInitShape<typeof ListLgasResponseSchema> => ({ lgas: nonsenseAreas }),
    /** By turns a report about an application nobody sent, and no report at all. */
    submitApplication: byTurns<MessageInitShape<typeof SubmitApplicationResponseSchema>>({ report: foreignReport }, {}),
    /** A report about another application. */
    lookUpApplication: (): MessageInitShape<typeof LookUpApplicationResponseSchema> => ({
      found: true,
      reports: [foreignReport],
    }),
    /** An outcome there is not. */
    sendDocument: (): MessageInitShape<typeof SendDocumentResponseSchema> => ({ outcome: DocumentOutcome.UNSPECIFIED }),
    /** Neither that it is there nor that it is not. */
    lookUpDocument: (): MessageInitShape<typeof LookUpDocumentResponseSchema> => ({
      presence: DocumentPresence.UNSPECIFIED,
    }),
    /** By turns a record of an allocation nobody sent, and no record at all. */
    submitAllocation: byTurns<MessageInitShape<typeof SubmitAllocationResponseSchema>>({ record: foreignRecord }, {}),
    /** A record of another allocation. */
    lookUpAllocation: (): MessageInitShape<typeof LookUpAllocationResponseSchema> => ({ record: foreignRecord }),
  };
}

const nonsenseAreas = [
  { code: '', name: 'Nowhere' },
  { code: 'TWICE', name: 'Twice' },
  { code: 'TWICE', name: '' },
];

const foreignReport = {
  number: 9_007_199_254_740_991n,
  clientApplicationId: 'nobody-sent-this',
  kind: ApplicationReportKind.ACCEPTED,
  reference: 'BRK-NONSENSE',
};

const foreignRecord = {
  clientAllocationId: 'nobody-sent-this',
  outcome: AllocationOutcome.BOOKED,
  brokerReference: 'BKG-NONSENSE',
};
