import type { GenEnum } from '@bufbuild/protobuf/codegenv2';
import { type EnumName, enumWords } from '../lib/enums.ts';

/** Which states an object of one kind can go to from where it is. A state of another version is in no list. */
export type Transitions<State extends string> = Readonly<Record<State, readonly State[]>>;

/** Where an object stands, and the sentence that explains it. */
export interface Standing<State extends string> {
  readonly state: State;
  readonly reason: string | null;
  readonly updatedAt: number;
}

/** The states of one kind of object. */
export interface States<State extends string> {
  readonly transitions: Transitions<State>;
  /** Those of which nothing more is expected. */
  readonly final: readonly State[];
  /** Whether nothing more is expected of an object. Of a state of another version this is not known. */
  isFinal(state: State): boolean;
  /** Moves an object to a state its transitions allow, with the sentence that explains it. */
  move<Row extends Standing<State>>(row: Row, state: State, reason: string | null, now: number): Row;
}

/** The states of a kind, by its transitions. `what` names an object of it in errors: 'an order'. */
export function statesOf<State extends string>(what: string, transitions: Transitions<State>): States<State> {
  const nextOf = (state: State): readonly State[] | undefined => transitions[state];
  const isFinal = (state: State) => nextOf(state)?.length === 0;
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

/** Whether it is unknown if the upstream has an object. */
export function isUnsettled(state: string): boolean {
  return state === 'sending' || state === 'uncertain';
}

/** What one report of the upstream does to an object. */
export interface Applied<Row> {
  readonly row: Row;
  /** Whether the partner must hear of it: the state changed, or more filled. */
  readonly changed: boolean;
  /** The report says what cannot be. The state was kept, and a person should look. */
  readonly inconsistent: boolean;
  /** What was reported, in our own words. */
  readonly detail: string;
}

/** A report that is inconsistent with where an object stands. */
export function inconsistent<Row extends { readonly state: string }>(
  row: Row,
  upstream: string,
  what: string,
): Applied<Row> {
  const detail = `the ${upstream} reported what contradicts the state ${row.state}: ${what}`;
  return { row, changed: false, inconsistent: true, detail };
}

/** A report that says nothing new. */
export function unchanged<Row>(row: Row, detail: string): Applied<Row> {
  return { row, changed: false, inconsistent: false, detail };
}

/** A report that changes an object. */
export function changed<Row>(row: Row, detail: string): Applied<Row> {
  return { row, changed: true, inconsistent: false, detail };
}

/**
 * Our name and sentence for each of the broker's reject reasons, which have the same names as ours. A reason of a later
 * version of the broker is the general one. It does not compile when a reason has no sentence.
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
