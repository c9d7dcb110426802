import type { GenEnum } from '@bufbuild/protobuf/codegenv2';
import { nextLagosMidnight } from '../../../kit/clock.ts';
import { type EnumName, enumWords } from '../../../kit/enums.ts';
import { ApiError } from '../../edge/errors.ts';

/** The next states of each state. It has no states of other versions. */
export type Transitions<State extends string> = Readonly<Record<State, readonly State[]>>;

/** The state of an object, and the sentence that explains it. */
export interface Standing<State extends string> {
  readonly state: State;
  readonly reason: string | null;
  readonly updatedAt: number;
}

/** The states of one kind of object. */
export interface States<State extends string> {
  readonly transitions: Transitions<State>;
  /** The states after which nothing more is expected. */
  readonly final: readonly State[];
  /** Whether nothing more is expected in a state. False for a state of another version. */
  isFinal(state: State): boolean;
  /** Moves an object to a state its transitions allow, with the sentence that explains it. */
  move<Row extends Standing<State>>(row: Row, state: State, reason: string | null, now: number): Row;
}

/**
 * The states of a kind, by its transitions. `what` names an object of it in errors: 'an order'. A state that no other follows is
 * final, and so is each of `alsoFinal`, which another may follow all the same.
 */
export function statesOf<State extends string>(
  what: string,
  transitions: Transitions<State>,
  alsoFinal: readonly State[] = [],
): States<State> {
  const nextOf = (state: State): readonly State[] | undefined => transitions[state];
  const isFinal = (state: State) => nextOf(state)?.length === 0 || alsoFinal.includes(state);
  return {
    transitions,
    final: (Object.keys(transitions) as State[]).filter(isFinal),
    isFinal,
    move(row, state, reason, now) {
      if (!transitions[row.state].includes(state)) throw new Error(`${what} cannot go from ${row.state} to ${state}`);
      return { ...row, state, reason, updatedAt: Math.max(now, row.updatedAt) };
    },
  };
}

/** Whether the outcome of a send is unknown in this state. */
export function isUnsettled(state: string): boolean {
  return state === 'sending' || state === 'uncertain';
}

/** The longest time until the next query about an object, in milliseconds. A later one was set by a clock that was ahead. */
export const farAheadMs = 300_000;

/** The earlier objects like a new one that the upstream may have and that are not settled. Instants are real time. */
export interface SimilarObjects {
  /** Whether the outcome of one is unknown. */
  readonly hasUnknown: boolean;
  /** When the first of the senders that still have time runs out of it; null if there is none. */
  readonly firstLeaseEnd: number | null;
  /** The latest `not_after` of those that are being sent; null if there is none. */
  readonly lastNotAfter: number | null;
}

/**
 * Whether an earlier object holds back a new one like it: its outcome is unknown, or the time of its sender is over.
 * The end of a sender's time counts for nothing if it is further ahead than any sender's, because that clock was ahead.
 */
export function isHeldBack({ hasUnknown, firstLeaseEnd, lastNotAfter }: SimilarObjects, realNow: number): boolean {
  const isOverdue = firstLeaseEnd !== null && firstLeaseEnd <= realNow;
  return hasUnknown || isOverdue || (lastNotAfter !== null && lastNotAfter > realNow + farAheadMs);
}

/** How far the clocks of operator, broker and gateway may differ, in milliseconds. */
const statedMarginMs = 600_000;

/**
 * Whether an instant that a settlement states is from before the object was stored. A `createdAt` that is still to come was
 * written by a clock that was ahead, so anything until now can be. All instants are business time.
 */
export function isBeforeStored(at: number, createdAt: number, now: number): boolean {
  return at < Math.min(createdAt, now) - statedMarginMs;
}

/** Whether an instant that a settlement states is still to come. Both are business time. */
export function isToCome(at: number, now: number): boolean {
  return at > now + statedMarginMs;
}

/** The effect of one report of the upstream on an object. */
export interface Applied<Row> {
  readonly row: Row;
  /** Whether it makes an event: the state changed, or more filled. */
  readonly changed: boolean;
  /** Whether the report contradicts the state. The state was kept, and a person should look. */
  readonly inconsistent: boolean;
  /** The content of the report, in our own words. */
  readonly detail: string;
  /** The step of the history with the trade that the report repeats; undefined: it repeats none. */
  readonly tradeSequence?: number | undefined;
}

/** The fields of a step that come from a report of the upstream. */
export interface ReportedStep {
  readonly reportNumber?: bigint | undefined;
  readonly upstreamAt?: number | undefined;
  readonly quantity?: bigint | undefined;
  readonly priceKobo?: bigint | undefined;
  /** The step of the trade that this step changes or repeats. */
  readonly tradeSequence?: number | undefined;
  /** How far a step with a trade changed the filled quantity, and the sum of quantity times price. */
  readonly filledChange?: bigint | undefined;
  readonly valueChangeKobo?: bigint | undefined;
}

/** One change of an object that an operator settled by evidence. It makes an event and a step of the history. */
export interface Settled<Row> {
  readonly fields: Partial<Row>;
  /** The change, in our own words. */
  readonly detail: string;
  /** The upstream's time of it, and the trade if it is one. */
  readonly step?: ReportedStep;
}

/** The changes that a settlement makes, or why the object cannot have that outcome, as a sentence for operators. */
export type Settling<Row> = { readonly changes: readonly Settled<Row>[] } | { readonly problem: string };

/** A report that is inconsistent with where an object stands. */
export function inconsistent<Row extends { readonly state: string }>(
  row: Row,
  upstream: string,
  what: string,
): Applied<Row> {
  const detail = `the ${upstream} reported what contradicts the state ${row.state}: ${what}`;
  return { row, changed: false, inconsistent: true, detail };
}

/** A report without news. */
export function unchanged<Row>(row: Row, detail: string): Applied<Row> {
  return { row, changed: false, inconsistent: false, detail };
}

/** A report that changes an object. */
export function changed<Row>(row: Row, detail: string): Applied<Row> {
  return { row, changed: true, inconsistent: false, detail };
}

/**
 * Our name and sentence for each of the broker's reject reasons, which have the same names as ours. A reason of a newer
 * broker becomes the general one. It does not compile if a reason has no sentence.
 */
export function rejectReasons<Broker extends object, Name extends string>(
  desc: GenEnum<Broker[keyof Broker & string] & number>,
  sentences: Readonly<Record<Name | EnumName<Broker>, string>>,
  general: Name,
): (reason: number) => { readonly word: Name | EnumName<Broker>; readonly sentence: string } {
  const names = enumWords<Broker>(desc);
  return (reason) => {
    const word = names.find(reason) ?? general;
    return { word, sentence: sentences[word] };
  };
}

const limitNames = {
  'order value per day': 'order_value_per_day',
  'allocations per day': 'allocations_per_day',
} as const;

/** A daily limit, as sentences for partners name it. */
export type CountedName = keyof typeof limitNames;

/**
 * Refuses what would go above a daily limit. Exactly at the limit passes. Amounts in kobo. `createdAt` is in the Lagos day
 * that it counts for.
 */
export function checkDayLimit(name: CountedName, limit: bigint, used: bigint, wanted: bigint, createdAt: number): void {
  if (used + wanted <= limit) return;
  const resetsAt = new Date(nextLagosMidnight(createdAt)).toISOString().replace('.000Z', 'Z');
  throw new ApiError('limit_exceeded', {
    limit: limitNames[name],
    message:
      `The limit on ${name} of ${limit} kobo would be exceeded: ${used} kobo are used, ${remaining(limit, used)} remain, ` +
      `and this request needs ${wanted}. It resets at ${resetsAt}.`,
  });
}

/** What is left of a limit, of which more may be used than there is since it was lowered. */
export function remaining(limit: bigint, used: bigint): bigint {
  return used < limit ? limit - used : 0n;
}
