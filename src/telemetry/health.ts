import { pause, type Worker } from '../lib/worker.ts';

/** A part that does not work as it should. */
export interface Finding {
  /** Which part, in a word or two; the same for as long as it lasts. */
  readonly part: string;
  /** What is wrong with it, for people. */
  readonly reason: string;
  /** Whether this process should get no requests because of it. */
  readonly stops: boolean;
}

/** A finding, and since when. */
export interface Trouble extends Finding {
  /** Real time in milliseconds. */
  readonly sinceMs: number;
}

/** How often parts are looked at when nobody asks, so that it is known since when something is wrong. */
const lookEveryMs = 1_000;

/** Knows which parts are in trouble, and since when. */
export class Health {
  readonly worker: Worker;
  #troubles: readonly Trouble[] = [];

  constructor(
    /** Looks at all parts now. Never throws, and ends within seconds. */
    private readonly look: () => Promise<readonly Finding[]>,
    private readonly realNow: () => number,
  ) {
    this.worker = {
      name: 'health',
      run: async (signal) => {
        while (!signal.aborted) {
          await this.troubles();
          await pause(lookEveryMs, signal);
        }
      },
    };
  }

  /** What is wrong now. */
  async troubles(): Promise<readonly Trouble[]> {
    const findings = await this.look();
    const now = this.realNow();
    const since = new Map(this.#troubles.map(({ part, sinceMs }) => [part, sinceMs]));
    this.#troubles = findings.map((finding) => ({ ...finding, sinceMs: since.get(finding.part) ?? now }));
    return this.#troubles;
  }
}
