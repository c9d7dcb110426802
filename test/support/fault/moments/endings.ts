import type { Fate, Moment, MomentKind } from './inside/watch.ts';

/** A fate, in words for the name of a test. */
export interface Ending {
  readonly says: string;
  readonly fate: Fate;
  readonly times: number;
}

const killed: readonly Ending[] = [
  { says: 'killed right before it', fate: 'before', times: 1 },
  { says: 'killed right after it', fate: 'after', times: 1 },
];
const frozen: Ending = { says: 'frozen right after it', fate: 'frozen', times: 1 };
const refused: readonly Ending[] = [
  { says: 'refused', fate: 'refused', times: 1 },
  { says: 'refused twice in a row', fate: 'refused', times: 2 },
];
const unknown: readonly Ending[] = [
  { says: 'done without an answer', fate: 'unknown', times: 1 },
  { says: 'done without an answer twice in a row', fate: 'unknown', times: 2 },
];

/** With another process beside it, which goes on: also one that is frozen, of whom nobody knows that it does not work. */
const besides: Readonly<Record<MomentKind, readonly Ending[]>> = {
  ...{ commit: [...killed, frozen], call: [...killed, frozen], publish: [...killed, frozen] },
  ...{ ack: killed, post: killed, send: killed, file: killed },
};

/** Neither an acknowledgement nor a file has an answer that could be lost. */
const endings: Readonly<Record<MomentKind, readonly Ending[]>> = {
  commit: [...killed, ...refused, { says: 'undone by a deadlock', fate: 'deadlock', times: 1 }, ...unknown],
  call: [...killed, ...refused, ...unknown],
  publish: [...killed, ...refused, ...unknown],
  ack: [...killed, ...refused],
  post: [...killed, ...refused, ...unknown],
  send: [...killed, ...refused, ...unknown],
  file: [...killed, ...refused],
};

/** A moment, and one of the ways in which it can end. */
export interface MomentCase {
  readonly moment: Moment;
  readonly ending: Ending;
}

/** The cases of some moments. `isBeside`: another process goes on when this one ends. */
export function casesOf(moments: readonly Moment[], isBeside = false): MomentCase[] {
  const ofKinds = isBeside ? besides : endings;
  return moments.flatMap((moment) => ofKinds[moment.kind].map((ending) => ({ moment, ending })));
}

export function nameOf({ kind, label, occurrence }: Moment): string {
  return `${kind} ${label}${occurrence === 1 ? '' : ` (${occurrence})`}`;
}
