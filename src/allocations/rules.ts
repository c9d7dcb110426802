import { AllocationRejectReason } from '../gen/marina/broker/v1/allocations_pb.ts';

export type AllocationStateWord = 'sending' | 'booked' | 'refused' | 'rejected' | 'uncertain';

/** Which states an allocation can go to from where it is. */
export const transitions: Readonly<Record<AllocationStateWord, readonly AllocationStateWord[]>> = {
  sending: ['booked', 'rejected', 'refused', 'uncertain'],
  uncertain: ['booked', 'rejected', 'refused'],
  booked: [],
  rejected: [],
  refused: [],
};

/** Whether this version knows a state. */
export function isKnownState(state: string): state is AllocationStateWord {
  return Object.hasOwn(transitions, state);
}

/** The states of which nothing more is expected. */
export const finalStates = (Object.keys(transitions) as AllocationStateWord[]).filter(isFinal);

/** Whether nothing more is expected of an allocation. Of a state of another version this is not known. */
export function isFinal(state: AllocationStateWord): boolean {
  const next: readonly AllocationStateWord[] | undefined = transitions[state];
  return next?.length === 0;
}

/** Whether it is unknown if the broker has the allocation: its amount is reserved for so long. */
export function isUnsettled(state: AllocationStateWord): boolean {
  return state === 'sending' || state === 'uncertain';
}

/** What an allocation counts against its day's limit, in kobo. In a state of another version it counts whole. */
export function countedKobo({ state, amountKobo }: { state: AllocationStateWord; amountKobo: bigint }): bigint {
  return state === 'refused' || state === 'rejected' ? 0n : amountKobo;
}

/** The entry of the wallet's ledger that comes with a change of state; undefined where no money moves. */
export function settlementOf(before: AllocationStateWord, after: AllocationStateWord): 'post' | 'return' | undefined {
  if (!isUnsettled(before) || isUnsettled(after)) return undefined;
  return after === 'booked' ? 'post' : 'return';
}

/** Moves an allocation to a state its transitions allow, with the sentence that explains it. */
export function moveTo<T extends { state: AllocationStateWord; reason: string | null; updatedAt: number }>(
  allocation: T,
  state: AllocationStateWord,
  reason: string | null,
  now: number,
): T {
  if (!transitions[allocation.state].includes(state)) {
    throw new Error(`an allocation cannot go from ${allocation.state} to ${state}`);
  }
  return { ...allocation, state, reason, updatedAt: Math.max(now, allocation.updatedAt) };
}

/** What its partner reads of an allocation that was refused and is booked all the same. */
export const bookedAfterAll =
  'It was reported as never having reached the broker. That was wrong: the broker has booked it, and its amount was returned.';

const rejectReasons: Partial<Record<AllocationRejectReason, { word: string; sentence: string }>> = {
  [AllocationRejectReason.ACCOUNT_NOT_AT_BROKER]: {
    word: 'account_not_at_broker',
    sentence: 'The broker does not have the account.',
  },
  [AllocationRejectReason.ACCOUNT_RESTRICTED]: {
    word: 'account_restricted',
    sentence: 'The account takes no money now.',
  },
  [AllocationRejectReason.AMOUNT_NOT_ACCEPTED]: {
    word: 'amount_not_accepted',
    sentence: 'The broker does not take this amount.',
  },
};

/** Our word and sentence for a rejection; a reason we do not know is the general one. */
export function rejectReasonOf(reason: AllocationRejectReason): { word: string; sentence: string } {
  return rejectReasons[reason] ?? { word: 'rejected_by_broker', sentence: 'The broker rejected the allocation.' };
}
