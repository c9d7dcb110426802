import { dirname, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from './log.ts';

/** Where the gateway's own code is: `src/`, or the same in what was built. */
const ownFolder = dirname(dirname(fileURLToPath(import.meta.url))) + sep;
const transportFolder = `${ownFolder}transport${sep}`;
/** So many survived errors within this time mean that something is broken for good. */
const mostSurvived = 20;
const withinMs = 60_000;

/**
 * Handles errors that nobody caught. One that came from a connection, in a library or in our protocol code, leaves what
 * the gateway decides by untouched: the connection is lost, and the process goes on. After any other, work in memory may
 * never be finished, so the process stops in order and is started again: what it had begun is settled from the database.
 */
export class UncaughtErrors {
  readonly #survivedAt: number[] = [];

  constructor(
    private readonly log: Logger,
    /** Counts an error, by whether the process goes on. */
    private readonly count: (outcome: 'survived' | 'stopped') => void,
    /** Stops the process in order. */
    private readonly stop: () => void,
  ) {}

  readonly handle = (error: unknown, origin: string): void => {
    const goesOn = isOfConnection(error) && this.#isRare();
    this.count(goesOn ? 'survived' : 'stopped');
    if (goesOn) {
      this.log.error({ err: error, origin }, 'an error of a connection was not caught');
      return;
    }
    this.log.fatal({ err: error, origin }, 'an error was not caught, and the process stops');
    this.stop();
  };

  #isRare(): boolean {
    const now = performance.now();
    while (this.#survivedAt.length > 0 && now - (this.#survivedAt[0] ?? now) > withinMs) this.#survivedAt.shift();
    this.#survivedAt.push(now);
    return this.#survivedAt.length <= mostSurvived;
  }
}

/** Whether none of our code outside the protocols was under way when the error was made. */
export function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error) || error.stack === undefined) return false;
  const frames = error.stack.split('\n').filter((line) => line.trimStart().startsWith('at '));
  return frames.length > 0 && frames.every((frame) => !frame.includes(ownFolder) || frame.includes(transportFolder));
}
