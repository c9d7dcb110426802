import { join, resolve } from 'node:path';
import { type KeptProcess, sharedKeeper } from './keeper.ts';
import { endLeftoverServer } from './leftover.ts';
import { lockFolder } from './lock.ts';
import { freePort } from './ports.ts';
import type { Program, ProgramOptions } from './programs.ts';

/** A server of its own, which ends with the process that started it. */
export interface Server {
  /** How clients reach it; MariaDB's carries the administrator's password. */
  url: string;
  port: number;
  pid: number;
  /** The program's own words for its version. */
  version: string;
  process: KeptProcess;
  /** Stops it in bounded time and lets the folder go. */
  stop(): Promise<void>;
  /** Ends it as a crash would; the data stay. */
  kill(): Promise<void>;
}

export interface ServerOptions extends ProgramOptions {
  /** The folder for everything it writes; kept data are used again. */
  dataDir: string;
  /** Absent: a free one. */
  port?: number;
  /**
   * The data are thrown away afterwards: commits survive a crash of the server but not of the machine, and stopping is
   * killing.
   */
  disposable?: boolean;
  /** Its log goes on behind the one there is: it is started again. */
  appends?: boolean;
  /** Further arguments of MariaDB, or lines of NATS's configuration: certificates and logins, for tests. */
  further?: readonly string[];
}

/** The differences between servers. */
export interface ServerProgram {
  readonly name: string;
  /** The file in its folder that holds its process id. */
  readonly pidFile: string;
  /** Finds its program, and makes what must be there before it starts. */
  readonly prepare: (options: ServerOptions) => Promise<Program>;
  /** Starts it on a port, with `run`, and waits until it answers. Returns its address. */
  readonly launch: (program: Program, port: number, options: ServerOptions, run: Run) => Promise<string>;
}

/** Runs a server's program with its arguments. */
export type Run = (args: readonly string[]) => Promise<KeptProcess>;

/** Starts a server on 127.0.0.1, on a folder that no other process uses meanwhile. */
export async function startServer(kind: ServerProgram, asked: ServerOptions): Promise<Server> {
  const options = { ...asked, dataDir: resolve(asked.dataDir) };
  const lock = lockFolder(options.dataDir, kind.name);
  try {
    await endLeftoverServer(join(options.dataDir, kind.pidFile), options.dataDir);
    const program = await kind.prepare(options);
    for (let attempt = 1; ; attempt++) {
      const port = options.port ?? (await freePort());
      try {
        return await launch(kind, program, port, options, () => lock.release());
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

async function launch(
  { name, launch }: ServerProgram,
  program: Program,
  port: number,
  options: ServerOptions,
  release: () => void,
): Promise<Server> {
  let kept: KeptProcess | undefined;
  try {
    const url = await launch(program, port, options, async (args) => {
      kept = await sharedKeeper().start({
        name,
        command: program.path,
        args: [...args],
        env: program.env,
        logPath: join(options.dataDir, `${name.toLowerCase()}.log`),
        appends: options.appends === true,
        stopSignal: options.disposable === true ? 'SIGKILL' : 'SIGTERM',
      });
      return kept;
    });
    if (kept === undefined) throw new Error(`${name} was not started`);
    const started = kept;
    const end = async (how: 'stop' | 'kill') => {
      await started[how]();
      release();
    };
    return {
      url,
      port,
      pid: started.pid,
      version: program.version,
      process: started,
      stop: () => end('stop'),
      kill: () => end('kill'),
    };
  } catch (error) {
    await kept?.kill();
    throw error;
  }
}
