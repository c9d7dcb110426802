import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessExit } from '../../../../src/sandbox/keeper.ts';
import { EndedEarly } from '../../cluster.ts';
import { patient } from '../../patience.ts';
import type { Watching } from './inside/preload.ts';
import type { Armed, Moment } from './inside/watch.ts';
import { compileInside } from './load.ts';

/** The moments of a process since it was told to begin. */
export interface Seen {
  readonly moments: readonly Moment[];
  /** How many moments met the fate that was chosen for them. */
  readonly met: number;
}

/** A process that was started. */
interface Started {
  readonly pid: number;
  readonly exited: Promise<ProcessExit>;
  readonly logPath: string;
  stop(): Promise<unknown>;
}

/** A process that runs, and where it takes orders. */
interface Running<Process> {
  readonly process: Process;
  readonly socket: string;
}

export interface WatchedProcessOptions<Process> {
  /** For the module that watches, and for sockets. */
  readonly folder: string;
  /** Starts a process with these variables too. Throws `EndedEarly` if it ends before it is ready. */
  readonly start: (variables: Record<string, string>) => Promise<Process>;
  /** Frees what a dead process would keep the next one waiting for. */
  readonly bury: () => Promise<void>;
  /** Whether a second one runs beside it, and takes its place if it is killed or frozen. Then nothing is buried. */
  readonly isBeside?: boolean;
}

/** One process at a time, whose moments are watched. One that was killed is followed by the next. */
export class WatchedProcess<Process extends Started> {
  readonly #preload: string;
  #running: Running<Process> | undefined;
  /** The one that takes its place. */
  #second: Running<Process> | undefined;
  #frozen: Running<Process> | undefined;
  #mayFreeze = false;
  #next: Promise<Process> | undefined;
  #mayDie = false;
  #hasDied = false;
  #started = 0;

  constructor(private readonly options: WatchedProcessOptions<Process>) {
    this.#preload = compileInside(join(options.folder, 'inside'));
  }

  /** The process that runs, or the next one if it was killed. Throws if it died of anything else. */
  current(): Promise<Process> {
    // Several callers at once get the same one.
    this.#next ??= this.#current().finally(() => {
      this.#next = undefined;
    });
    return this.#next;
  }

  async #current(): Promise<Process> {
    const before = this.#running;
    if (before === undefined) return this.#start();
    if (this.#isFrozen) {
      this.#frozen = before;
      this.#mayFreeze = false;
    } else {
      if (!(await hasEnded(before.process))) return before.process;
      const { signal } = await before.process.exited;
      assert.ok(this.#mayDie && signal === 'SIGKILL', `a process ended by itself: see ${before.process.logPath}`);
    }
    await this.#bury();
    if (this.#second === undefined) return this.#start();
    this.#running = this.#second;
    this.#second = undefined;
    return this.#running.process;
  }

  /** Whether the process that runs is frozen, as its fate says. */
  get #isFrozen(): boolean {
    return this.#mayFreeze && this.#running !== undefined && stateOf(this.#running.process.pid) === 'T';
  }

  /** Starts a process. One that ends of its fate before it is ready is followed by the next one, as by its supervisor. */
  async #start(armed?: Armed): Promise<Process> {
    try {
      this.#running = await this.#startOne(armed);
    } catch (error) {
      if (!(error instanceof EndedEarly) || armed === undefined) throw error;
      const ended = error.exit?.signal ?? error.exit?.code;
      assert.equal(ended, this.#mayDie ? 'SIGKILL' : 1, error.message);
      await this.#bury();
      return this.#start();
    }
    return this.#running.process;
  }

  async #startOne(armed?: Armed): Promise<Running<Process>> {
    this.#started += 1;
    const socket = join(this.options.folder, `${this.#started}.sock`);
    const watching: Watching = { socket, ...(armed && { armed }) };
    const variables = { NODE_OPTIONS: this.#preload, MARINA_MOMENTS: JSON.stringify(watching) };
    return { process: await this.options.start(variables), socket };
  }

  async #bury(): Promise<void> {
    this.#mayDie = false;
    this.#hasDied = true;
    if (!this.options.isBeside) await this.options.bury();
  }

  /** Counts moments anew, and chooses the fate of one of them. If no process runs, one is started, and has its fate from then on. */
  async begin(armed?: Armed): Promise<void> {
    const isRunning = this.#running !== undefined;
    if (isRunning) await this.current();
    await this.#frozen?.process.stop();
    this.#frozen = undefined;
    // It comes later than the first one, which has the leases.
    if (isRunning && this.options.isBeside) this.#second ??= await this.#startOne();
    this.#mayFreeze = armed?.fate === 'frozen';
    this.#mayDie = armed?.fate === 'before' || armed?.fate === 'after';
    this.#hasDied = false;
    if (isRunning) await this.#control('/begin', { armed });
    else await this.#start(armed);
  }

  /** Whether the process has died of its fate since it was told to begin. */
  get hasDied(): boolean {
    return this.#hasDied;
  }

  /** The process's moments. One that was killed has met its fate. */
  async seen(): Promise<Seen> {
    const { process } = this.#running ?? assert.fail('no process runs');
    const seen = await this.#control('/seen', {}).catch(() => undefined);
    if (seen !== undefined) return seen;
    await process.exited;
    return { moments: [], met: 1 };
  }

  /** Thaws the process that is frozen. Returns whether there was one. */
  thaw(): boolean {
    if (this.#frozen === undefined) return false;
    process.kill(this.#frozen.process.pid, 'SIGCONT');
    return true;
  }

  /** Waits until the process that runs is frozen, or nobody waits any more. */
  async untilFrozen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !this.#isFrozen) await delay(50);
  }

  /** Whether the process that runs has met its end, or does within seconds. */
  async endsSoon(): Promise<boolean> {
    const { process } = this.#running ?? assert.fail('no process runs');
    if (this.#isFrozen) return true;
    return Promise.race([process.exited.then(() => true), delay(patient(5_000), false)]);
  }

  /** All processes that run, which none follows any more. */
  release(): Process[] {
    const all = [this.#running, this.#second, this.#frozen].flatMap((one) => (one ? [one.process] : []));
    this.#running = undefined;
    this.#second = undefined;
    this.#frozen = undefined;
    return all;
  }

  #control(path: string, message: object): Promise<Seen> {
    const { socket } = this.#running ?? assert.fail('no process runs');
    return new Promise((resolve, reject) => {
      const request = httpRequest({ socketPath: socket, path, method: 'POST' }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject);
        response.on('end', () => resolve(JSON.parse(text) as Seen));
      });
      request.on('error', reject);
      request.end(JSON.stringify(message));
    });
  }
}

/** The letter of a process's state, as Linux has it. */
function stateOf(pid: number): string {
  const text = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'latin1') : '';
  return text.slice(text.lastIndexOf(')') + 2)[0] ?? '';
}

async function hasEnded({ exited }: Started): Promise<boolean> {
  return Promise.race([exited.then(() => true), delay(0, false)]);
}
