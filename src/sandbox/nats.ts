import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Advice } from './advice.ts';
import { lastLines } from './exits.ts';
import { readGreeting } from './ports.ts';
import { type Run, type Server, type ServerOptions, startServer } from './private-server.ts';
import { findProgram, type Program } from './programs.ts';

/** Starts a private NATS with JetStream on 127.0.0.1, its streams in files. */
export function startNats(options: ServerOptions): Promise<Server> {
  const prepare = () => findProgram(['nats-server'], options);
  return startServer({ name: 'NATS', pidFile: 'nats.pid', prepare, launch }, options);
}

async function launch(_: Program, port: number, options: ServerOptions, run: Run): Promise<string> {
  const { dataDir, disposable, further = [] } = options;
  const store = join(dataDir, 'store');
  mkdirSync(store, { recursive: true, mode: 0o700 });
  const config = join(dataDir, 'nats.conf');
  writeFileSync(config, [settings(port, dataDir, store, disposable === true), ...further, ''].join('\n'), {
    mode: 0o600,
  });
  const nats = await run(['--config', config]);
  let ended = false;
  void nats.exited.then(() => {
    ended = true;
  });
  const deadline = performance.now() + 30_000;
  while (!(await readGreeting(port, 1_000))?.toString().startsWith('INFO ')) {
    if (ended || performance.now() > deadline) {
      throw new Advice(`NATS did not start:\n${lastLines(nats.logPath)}`, `Its log: ${nats.logPath}`);
    }
    await sleep(10);
  }
  return `nats://127.0.0.1:${port}`;
}

/**
 * The limits bound what a sandbox can take; the gateway's own stream stays far below. What a stream may take
 * counts as taken from the start, and tests make one for each gateway.
 */
function settings(port: number, dataDir: string, store: string, isDisposable: boolean): string {
  return [
    `listen: "127.0.0.1:${port}"`,
    `pid_file: ${JSON.stringify(join(dataDir, 'nats.pid'))}`,
    'max_payload: 1MB',
    'jetstream {',
    `  store_dir: ${JSON.stringify(store)}`,
    `  max_memory_store: ${isDisposable ? '1TB' : '256MB'}`,
    `  max_file_store: ${isDisposable ? '1TB' : '1GB'}`,
    '}',
    '',
  ].join('\n');
}
