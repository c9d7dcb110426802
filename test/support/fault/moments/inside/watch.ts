/** Which boundary of the process a moment is at. */
export type MomentKind = 'commit' | 'call' | 'publish' | 'ack' | 'post' | 'send' | 'file';

/** A moment: the process is about to make something durable, or to call somebody. */
export interface Moment {
  readonly kind: MomentKind;
  /** The tables that are written, the call or the file: the same work has the same label in each run. */
  readonly label: string;
  /** Which one of this label it is, from 1. */
  readonly occurrence: number;
}

/**
 * How a moment ends. `before` and `after`: the process is killed right before or after it. `frozen`: the process is frozen
 * right after it. `refused`: it is not done. `deadlock`: the server undoes it, and it may be tried again at once.
 * `unknown`: it is done, and its answer is lost.
 */
export type Fate = 'before' | 'after' | 'frozen' | 'refused' | 'deadlock' | 'unknown';

/** A moment and its fate, which the next ones of its label may share. */
export interface Armed extends Moment {
  readonly fate: Fate;
  /** How many of this label in a row. */
  readonly times: number;
}

/** The moments of this process since it was last told to begin, and what is to happen to one of them. */
export class Watch {
  readonly #counts = new Map<string, number>();
  #moments: Moment[] = [];
  #met = 0;

  /** The process can have a fate from its start on, and says each moment as it comes, so that a killed one has said it too. */
  constructor(
    private armed?: Armed,
    private readonly onMoment: (moment: Moment) => void = () => {},
  ) {}

  begin(armed: Armed | undefined): void {
    this.#counts.clear();
    this.#moments = [];
    this.armed = armed;
    this.#met = 0;
  }

  get seen(): { readonly moments: readonly Moment[]; readonly met: number } {
    return { moments: this.#moments, met: this.#met };
  }

  /**
   * Notes a moment and returns its fate; undefined: it happens as always. Does not return if the process is to be killed
   * before it. Whoever makes the moment calls `endAfter` behind it.
   */
  meet(kind: MomentKind, label: string): Fate | undefined {
    const key = `${kind} ${label}`;
    const occurrence = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, occurrence);
    const moment = { kind, label, occurrence };
    this.#moments.push(moment);
    this.onMoment(moment);
    const { armed } = this;
    if (armed === undefined || !isMet(armed, moment)) return undefined;
    this.#met += 1;
    if (armed.fate === 'before') die();
    return armed.fate;
  }
}

/** Whether a moment is one that shares a fate. */
export function isMet(armed: Armed, { kind, label, occurrence }: Moment): boolean {
  if (armed.kind !== kind || armed.label !== label) return false;
  return occurrence >= armed.occurrence && occurrence < armed.occurrence + armed.times;
}

/** Ends or freezes the process right after a moment, if that is its fate. A frozen one returns when it is thawed. */
export function endAfter(fate: Fate | undefined): void {
  if (fate === 'after') die();
  if (fate === 'frozen') signalOneself('SIGSTOP', 1_000);
}

/** Ends the process as a power cut would. */
function die(): never {
  signalOneself('SIGKILL', 10_000);
  throw new Error('the process was killed and goes on');
}

/** A signal to oneself comes soon, but not at once. Nothing may happen in between. */
function signalOneself(signal: NodeJS.Signals, withinMs: number): void {
  process.kill(process.pid, signal);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, withinMs);
}
