import { createLogger, type Logger } from './log.ts';
import { type LogOutput, standardOutput } from './log-output.ts';
import { logNodeWarnings } from './node-warnings.ts';

/** How long the end of a process waits for its last log lines. */
const lastLinesMs = 1_000;

/** The parts of a process that serves until it is stopped. */
interface Serving {
  readonly log: Logger;
  readonly output: LogOutput;
  /** Ends the process after its last log lines are written. */
  readonly exit: (code: number) => Promise<never>;
}

/** Makes the log of a process that serves. */
export function serving(name: string, level: string): Serving {
  const output = standardOutput((dropped) => log.warn({ dropped }, 'log lines were dropped'));
  const log: Logger = createLogger({ name, level, destination: output });
  logNodeWarnings(log);
  const exit = async (code: number): Promise<never> => {
    await output.flush(lastLinesMs);
    process.exit(code);
  };
  return { log, output, exit };
}

/** Calls `stop` when the process is asked to end: by a signal, or because the parent that holds its channel is gone. */
export function onStopRequest(stop: (reason: string) => void): void {
  process.once('SIGTERM', () => stop('SIGTERM'));
  process.once('SIGINT', () => stop('SIGINT'));
  if (process.channel !== undefined) process.once('disconnect', () => stop('the parent is gone'));
}
