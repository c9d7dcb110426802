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
import type {
  ListInstrumentsResponseSchema,
  ListLgasResponseSchema,
  ListMarketDaysResponseSchema,
  ListStatesResponseSchema,
} from '../../gen/marina/broker/v1/reference_pb.ts';
import { byTurns } from '../exchange/nonsense.ts';

/** Well-formed answers that make no sense, which a caller must not believe. */
export type BackOfficeNonsense = ReturnType<typeof createBackOfficeNonsense>;

export function createBackOfficeNonsense() {
  return {
    /** A state without a code, and one twice. */
    listStates: (): MessageInitShape<typeof ListStatesResponseSchema> => ({ states: nonsenseAreas }),
    listLgas: (): MessageInitShape<typeof ListLgasResponseSchema> => ({ lgas: nonsenseAreas }),
    /** An instrument without a price. */
    listInstruments: (): MessageInitShape<typeof ListInstrumentsResponseSchema> => ({
      instruments: [{ symbol: 'NONSENSE', name: 'Nonsense' }],
    }),
    /** A day that nobody asked for, and that is none. */
    listMarketDays: (): MessageInitShape<typeof ListMarketDaysResponseSchema> => ({ days: [{ date: '1066-13-14' }] }),
    /** In turn: a report about an unknown application, and no report. */
    submitApplication: byTurns<MessageInitShape<typeof SubmitApplicationResponseSchema>>({ report: foreignReport }, {}),
    lookUpApplication: (): MessageInitShape<typeof LookUpApplicationResponseSchema> => ({
      found: true,
      reports: [foreignReport],
    }),
    /** No valid outcome. */
    sendDocument: (): MessageInitShape<typeof SendDocumentResponseSchema> => ({ outcome: DocumentOutcome.UNSPECIFIED }),
    /** Neither found nor missing. */
    lookUpDocument: (): MessageInitShape<typeof LookUpDocumentResponseSchema> => ({
      presence: DocumentPresence.UNSPECIFIED,
    }),
    /** In turn: a record of an unknown allocation, and no record. */
    submitAllocation: byTurns<MessageInitShape<typeof SubmitAllocationResponseSchema>>({ record: foreignRecord }, {}),
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
