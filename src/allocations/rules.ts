import {
  type AllocationRejectReason as BrokersReason,
  AllocationRejectReasonSchema as BrokersReasonSchema,
} from '../gen/marina/broker/v1/allocations_pb.ts';
import type { AllocationRejectReason, AllocationState } from '../gen/marina/gateway/v1/allocations_pb.ts';
import { type EnumName, enumWords } from '../lib/enums.ts';

export type AllocationStateWord = EnumName<typeof AllocationState>;

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

/** Whether an allocation counts against its day's limit in each state. */
const isCounted: Readonly<Record<AllocationStateWord, boolean>> = {
  sending: true,
  uncertain: true,
  booked: true,
  rejected: false,
  refused: false,
};

/** What an allocation counts against its day's limit, in kobo. In a state of another version it counts whole. */
export function countedKobo({ state, amountKobo }: { state: AllocationStateWord; amountKobo: bigint }): bigint {
  return (isCounted[state] ?? true) ? amountKobo : 0n;
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

/** The sentence of each reject reason, ours and the broker's, which have the same names. */
const rejectSentences: Readonly<Record<EnumName<typeof AllocationRejectReason>, string>> = {
  account_not_at_broker: 'The broker does not have the account.',
  account_restricted: 'The account takes no money now.',
  amount_not_accepted: 'The broker does not take this amount.',
  rejected_by_broker: 'The broker rejected the allocation.',
};

const brokersReasons = enumWords<typeof BrokersReason>(BrokersReasonSchema);

/** Our word and sentence for a rejection. A reason of a later version of the broker is the general one. */
export function rejectReasonOf(reason: BrokersReason): { word: keyof typeof rejectSentences; sentence: string } {
  const word = brokersReasons.find(reason) ?? 'rejected_by_broker';
  return { word, sentence: rejectSentences[word] };
}
