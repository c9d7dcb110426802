import { createLogger, type Logger } from '../kit/log.ts';
import { standardOutput } from '../kit/log-output.ts';
import { readConfig } from './config.ts';
import { startSimulator } from './simulator.ts';

/** If a stop takes longer, the process exits. */
const stopWithinMs = 3_000;
const lastLinesMs = 500;

try {
  const config = readConfig(process.env);
  const output = standardOutput((dropped) => log.warn({ dropped }, 'log lines were dropped'));
  const log: Logger = createLogger({ name: 'simulator', level: config.logLevel, destination: output });
  const simulator = await startSimulator({ ...config, log });
  let stopping = false;
  const exit = async (code: number) => {
    await output.flush(lastLinesMs);
    process.exit(code);
  };
  const stop = (reason: string) => {
    if (stopping) return;
    stopping = true;
    log.info({ reason }, 'the simulator is stopping');
    setTimeout(() => process.exit(1), stopWithinMs).unref();
    simulator.close().then(
      () => exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'the simulator did not stop in order');
        return exit(1);
      },
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  // Without its parent, nobody would end this process.
  process.on('disconnect', () => stop('the parent is gone'));
  process.send?.({ type: 'ready', port: simulator.port });
} catch (error) {
  process.stderr.write(`The simulator did not start: ${explain(error)}\n`);
  process.exit(1);
}

function explain(error: unknown): string {
  if (!(error instanceof Error)) return 'for a reason that is not known';
  const { code, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code === 'EADDRINUSE') return `the address ${address}:${port} is taken`;
  if (code === 'ECONNREFUSED') return `no database answers at ${address}:${port}`;
  return error.message;
}
