import { dirname, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../../kit/log.ts';

const edgeFolder = dirname(fileURLToPath(import.meta.url)) + sep;
/** Where the protocols' code begins: work on one connection or request. Keys and limits, beside it, serve all of them. */
const protocolCode = [
  ...['http', 'rest', 'connect', 'grpc'].map((room) => edgeFolder + room + sep),
  ...['bounds', 'field-rules', 'operations', 'pipeline', 'request', 'rpc', 'streams'].map(
    (file) => `${edgeFolder}${file}.`,
  ),
  ...['kept-requests', 'shown-parts', 'shown-secrets'].map((file) => `${edgeFolder}${file}.`),
];
/** The folder of all our own code: `src/`, or the same in the build. */
const ownFolder = dirname(dirname(edgeFolder)) + sep;
/** More survived errors than this, in this time, mean a permanent fault. */
const maxSurvived = 20;
const withinMs = 60_000;

/**
 * Handles uncaught errors. An error from a connection, in a library or in our protocol code, costs only the connection:
 * no decision depends on it, and the process continues. After any other error, work in memory may never finish. So the
 * process stops in order and is restarted, and the database settles what had begun.
 */
export class UncaughtErrors {
  readonly #survivedAt: number[] = [];

  constructor(
    private readonly log: Logger,
    private readonly count: (outcome: 'survived' | 'stopped') => void,
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
    return this.#survivedAt.length <= maxSurvived;
  }
}

/** Whether no code of ours but the protocols' was on the error's stack. */
function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error) || error.stack === undefined) return false;
  const frames = error.stack.split('\n').filter((line) => line.trimStart().startsWith('at '));
  return (
    frames.length > 0 &&
    frames.every((frame) => {
      return !frame.includes(ownFolder) || protocolCode.some((place) => frame.includes(place));
    })
  );
}
