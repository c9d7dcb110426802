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
const refused: readonly Ending[] = [
  { says: 'refused', fate: 'refused', times: 1 },
  { says: 'refused twice in a row', fate: 'refused', times: 2 },
];
const unknown: readonly Ending[] = [
  { says: 'done without an answer', fate: 'unknown', times: 1 },
  { says: 'done without an answer twice in a row', fate: 'unknown', times: 2 },
];

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

export function casesOf(moments: readonly Moment[]): MomentCase[] {
  return moments.flatMap((moment) => endings[moment.kind].map((ending) => ({ moment, ending })));
}

export function nameOf({ kind, label, occurrence }: Moment): string {
  return `${kind} ${label}${occurrence === 1 ? '' : ` (${occurrence})`}`;
}
