import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Advice } from './advice.ts';
import { lastLines } from './exits.ts';
import { sharedKeeper } from './keeper.ts';
import { endLeftoverServer } from './leftover.ts';
import { lockFolder } from './lock.ts';
import type { Server } from './mariadb.ts';
import { freePort, readGreeting } from './ports.ts';
import { findProgram, type Program, type ProgramOptions } from './programs.ts';

export interface NatsOptions extends ProgramOptions {
  /** The folder for everything it writes; kept streams are used again. */
  dataDir: string;
  /** Absent: a free one. */
  port?: number;
  /** The data are thrown away afterwards, so stopping is killing. */
  disposable?: boolean;
}

/** Starts a private NATS with JetStream on 127.0.0.1, its streams in files. */
export async function startNats(asked: NatsOptions): Promise<Server> {
  const options = { ...asked, dataDir: resolve(asked.dataDir) };
  const lock = lockFolder(options.dataDir, 'NATS');
  try {
    await endLeftoverServer(join(options.dataDir, 'nats.pid'), options.dataDir);
    const program = await findProgram(['nats-server'], options);
    for (let attempt = 1; ; attempt++) {
      const port = options.port ?? (await freePort());
      try {
        return await launch(program, port, options, () => lock.release());
      } catch (error) {
        // Between finding a free port and using it another process can take it.
        if (options.port !== undefined || attempt === 3 || !String(error).includes('ddress already in use'))
          throw error;
      }
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function launch(program: Program, port: number, options: NatsOptions, release: () => void): Promise<Server> {
  const { dataDir } = options;
  const store = join(dataDir, 'store');
  mkdirSync(store, { recursive: true, mode: 0o700 });
  const config = join(dataDir, 'nats.conf');
  writeFileSync(config, settings(port, dataDir, store, options.disposable === true), { mode: 0o600 });
  const nats = await sharedKeeper().start({
    name: 'NATS',
    command: program.path,
    args: ['--config', config],
    env: program.env,
    logPath: join(dataDir, 'nats.log'),
    stopSignal: options.disposable === true ? 'SIGKILL' : 'SIGTERM',
  });
  let ended = false;
  void nats.exited.then(() => {
    ended = true;
  });
  const deadline = performance.now() + 30_000;
  while (!(await readGreeting(port, 1_000))?.toString().startsWith('INFO ')) {
    if (ended || performance.now() > deadline) {
      await nats.kill();
      throw new Advice(`NATS did not start:\n${lastLines(nats.logPath)}`, `Its log: ${nats.logPath}`);
    }
    await sleep(10);
  }
  return {
    url: `nats://127.0.0.1:${port}`,
    port,
    pid: nats.pid,
    version: program.version,
    process: nats,
    stop: async () => {
      await nats.stop();
      release();
    },
    kill: async () => {
      await nats.kill();
      release();
    },
  };
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
