import { AllocationOutcome, AllocationRejectReason } from '../../gen/marina/broker/v1/allocations_pb.ts';
import { ApplicationRejectReason, DocumentType } from '../../gen/marina/broker/v1/applications_pb.ts';
import { ApplicationOutcome, WireFault } from '../../gen/marina/simulator/v1/controls_pb.ts';
import { type Fault, lateAnswerMs } from '../magic.ts';

/** The behaviour of an application. */
export interface ApplicationBehaviour {
  readonly outcome: ApplicationOutcome;
  readonly rejectReason?: ApplicationRejectReason;
  readonly param?: string;
  /** The delay before the decision; absent: the simulator's usual small delay. */
  readonly delayMs?: number;
}

/** The behaviour of an allocation. */
export interface AllocationBehaviour {
  readonly outcome: AllocationOutcome;
  readonly rejectReason?: AllocationRejectReason;
}

/** The effect of a magic value. */
export interface Magic {
  /** A sentence for the documentation. */
  readonly does: string;
  readonly wire?: WireFault;
}

/** A last name whose applications always behave in one way. */
export interface MagicLastName extends Magic, ApplicationBehaviour {
  readonly lastName: string;
}

/** A first name whose documents always behave in one way. */
export interface MagicFirstName extends Magic {
  readonly firstName: string;
  /** The document that is refused, whatever the file. */
  readonly refuses?: DocumentType;
}

/** The last six digits of an amount in kobo whose allocations always behave in one way. */
export interface MagicAmount extends Magic, AllocationBehaviour {
  readonly endsIn: number;
}

const { OPEN, DECLINE, WAIT, REJECT } = ApplicationOutcome;

/** The magic last names, which decide the outcome of an application. */
export const magicLastNames: readonly MagicLastName[] = [
  {
    lastName: 'SIM-REJECT-INVALID',
    outcome: REJECT,
    rejectReason: ApplicationRejectReason.INVALID_FIELD,
    param: 'bvn',
    does: 'Rejected: the field `bvn` is not valid.',
  },
  {
    lastName: 'SIM-ALREADY',
    outcome: REJECT,
    rejectReason: ApplicationRejectReason.ALREADY_AT_BROKER,
    does: 'Rejected: the customer has an account.',
  },
  {
    lastName: 'SIM-REJECT',
    outcome: REJECT,
    rejectReason: ApplicationRejectReason.REJECTED_BY_BROKER,
    does: 'Rejected by the broker for another reason.',
  },
  { lastName: 'SIM-DECLINE', outcome: DECLINE, does: 'Accepted; declined when the documents are there.' },
  { lastName: 'SIM-WAIT', outcome: WAIT, does: 'Accepted; never decided.' },
  { lastName: 'SIM-HANG', outcome: OPEN, wire: WireFault.HANG, does: 'Never taken and never answered.' },
  { lastName: 'SIM-LOST', outcome: OPEN, wire: WireFault.LOSE_ANSWER, does: 'Taken; the answer is lost.' },
  {
    lastName: 'SIM-LOSTREJECT',
    outcome: REJECT,
    rejectReason: ApplicationRejectReason.REJECTED_BY_BROKER,
    wire: WireFault.LOSE_ANSWER,
    does: 'Rejected by the broker; the answer is lost.',
  },
  {
    lastName: 'SIM-RESET',
    outcome: OPEN,
    wire: WireFault.RESET_BEFORE,
    does: 'The connection is reset before it is taken.',
  },
  {
    lastName: 'SIM-RESETAFTER',
    outcome: OPEN,
    wire: WireFault.RESET_AFTER,
    does: 'Taken; the connection is reset before the answer.',
  },
  { lastName: 'SIM-LATE', outcome: OPEN, wire: WireFault.LATE_ANSWER, does: 'Taken; answered after 30 seconds.' },
];

/** The magic first names, which decide the outcome of an application's documents. */
export const magicFirstNames: readonly MagicFirstName[] = [
  { firstName: 'SIM-REFUSE-PHOTO', refuses: DocumentType.PHOTO, does: 'The `photo` is refused, whatever the file.' },
  {
    firstName: 'SIM-REFUSE-GOVERNMENT-ID',
    refuses: DocumentType.GOVERNMENT_ID,
    does: 'The `government_id` is refused, whatever the file.',
  },
  {
    firstName: 'SIM-REFUSE-UTILITY-BILL',
    refuses: DocumentType.UTILITY_BILL,
    does: 'The `utility_bill` is refused, whatever the file.',
  },
  {
    firstName: 'SIM-REFUSE-SIGNATURE',
    refuses: DocumentType.SIGNATURE,
    does: 'The `signature` is refused, whatever the file.',
  },
  {
    firstName: 'SIM-HANG-DOCUMENTS',
    wire: WireFault.HANG,
    does: 'The first send of each document is never taken and never answered.',
  },
  {
    firstName: 'SIM-LOSE-DOCUMENTS',
    wire: WireFault.LOSE_ANSWER,
    does: 'The first send of each document is taken, and its answer is lost.',
  },
];

const { BOOKED, REJECTED } = AllocationOutcome;

/** The magic amounts, which decide the outcome of an allocation. */
export const magicAmounts: readonly MagicAmount[] = [
  {
    endsIn: 999_001,
    outcome: REJECTED,
    rejectReason: AllocationRejectReason.ACCOUNT_NOT_AT_BROKER,
    does: 'Rejected: the broker does not have the account.',
  },
  {
    endsIn: 999_002,
    outcome: REJECTED,
    rejectReason: AllocationRejectReason.ACCOUNT_RESTRICTED,
    does: 'Rejected: the account takes no money now.',
  },
  {
    endsIn: 999_003,
    outcome: REJECTED,
    rejectReason: AllocationRejectReason.AMOUNT_NOT_ACCEPTED,
    does: 'Rejected: the broker does not take the amount.',
  },
  {
    endsIn: 999_004,
    outcome: REJECTED,
    rejectReason: AllocationRejectReason.REJECTED_BY_BROKER,
    does: 'Rejected by the broker for another reason.',
  },
  { endsIn: 999_005, outcome: BOOKED, wire: WireFault.HANG, does: 'Never taken and never answered.' },
  { endsIn: 999_006, outcome: BOOKED, wire: WireFault.LOSE_ANSWER, does: 'Booked; the answer is lost.' },
  {
    endsIn: 999_007,
    outcome: REJECTED,
    rejectReason: AllocationRejectReason.REJECTED_BY_BROKER,
    wire: WireFault.LOSE_ANSWER,
    does: 'Rejected by the broker; the answer is lost.',
  },
  {
    endsIn: 999_008,
    outcome: BOOKED,
    wire: WireFault.RESET_BEFORE,
    does: 'The connection is reset before it is taken.',
  },
  {
    endsIn: 999_009,
    outcome: BOOKED,
    wire: WireFault.RESET_AFTER,
    does: 'Booked; the connection is reset before the answer.',
  },
  { endsIn: 999_010, outcome: BOOKED, wire: WireFault.LATE_ANSWER, does: 'Booked; answered after 30 seconds.' },
];

const byLastName = new Map(magicLastNames.map((magic) => [magic.lastName, magic]));
const byFirstName = new Map(magicFirstNames.map((magic) => [magic.firstName, magic]));
const byEnding = new Map(magicAmounts.map((magic) => [BigInt(magic.endsIn), magic]));

/** The magic of a last name, if it has any. */
export function lastNameMagic(lastName: string): MagicLastName | undefined {
  return byLastName.get(lastName);
}

/** The magic of a first name, if it has any. */
export function firstNameMagic(firstName: string): MagicFirstName | undefined {
  return byFirstName.get(firstName);
}

/** The magic of an amount in kobo, if it has any. */
export function amountMagic(amountKobo: bigint): MagicAmount | undefined {
  return byEnding.get(amountKobo % 1_000_000n);
}

/** The fault of a magic value, if it has one. Only a partner's customer or amount has it, so it meets this call only. */
export function faultOf(magic: Magic | undefined): Fault | undefined {
  if (magic?.wire === undefined) return undefined;
  return { wire: magic.wire, delayMs: lateAnswerMs, partner: '', meetsCallOnly: true };
}
