import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describeExit, lastLines } from './exits.ts';
import type { FromKeeper, ProcessExit, ProcessSpec, ToKeeper } from './keeper-protocol.ts';

export type { ProcessExit, ProcessSpec } from './keeper-protocol.ts';

/** A process that ends with this one, whatever ends this one. */
export interface KeptProcess {
  readonly name: string;
  readonly pid: number;
  readonly logPath: string;
  /** Settles when it has ended; never rejects, and holds nothing open. */
  readonly exited: Promise<ProcessExit>;
  /** Waits for its end, and holds this process open meanwhile. */
  wait(): Promise<ProcessExit>;
  onMessage(listener: (message: unknown) => void): void;
  send(message: unknown): void;
  /** Ends it in bounded time: its stop signal, a wait, then SIGKILL. */
  stop(): Promise<ProcessExit>;
  /** Ends it at once, as a crash would. */
  kill(): Promise<ProcessExit>;
}

/**
 * Starts processes through a small process of their own (`keeper-process.mjs`), which stops them when this one is gone.
 * Neither the keeper nor what it keeps holds this process open.
 */
export class Keeper {
  readonly #process: ChildProcess;
  readonly #entries = new Map<number, Entry>();
  readonly #gone: Promise<void>;
  #nextId = 1;
  #waits = 0;

  constructor(options: { output?: 'inherit' } = {}) {
    const output = options.output ?? 'ignore';
    this.#process = fork(fileURLToPath(new URL('./keeper-process.mjs', import.meta.url)), [], {
      // A session of its own: Ctrl-C in the terminal is for the process that asks, which then stops all in order.
      detached: true,
      stdio: ['ignore', output, output, 'ipc'],
      // Nothing else that this process was started with: what runs TypeScript takes most of a start.
      execArgv: [],
    });
    this.#gone = new Promise((resolve) => this.#process.once('exit', () => resolve()));
    this.#process.on('message', (message: FromKeeper) => this.#receive(message));
    this.#process.on('exit', () => this.#lose());
    this.#process.on('error', () => this.#lose());
    this.#process.unref();
    this.#process.channel?.unref();
  }

  start(spec: ProcessSpec): Promise<KeptProcess> {
    const id = this.#nextId++;
    const { promise: exited, resolve: exit } = withResolvers<ProcessExit>();
    const { promise: started, resolve, reject } = withResolvers<number>();
    const entry: Entry = { pid: undefined, listeners: [], early: [], started: resolve, failed: reject, exit };
    this.#entries.set(id, entry);
    this.#tell({ type: 'start', id, spec: { ...spec, env: spec.env ?? process.env } });
    return this.#waitFor(
      started.then((pid) => ({
        name: spec.name,
        pid,
        logPath: spec.logPath,
        exited,
        wait: () => this.#waitFor(exited),
        onMessage: (listener) => {
          entry.listeners.push(listener);
          for (const message of entry.early.splice(0)) listener(message);
        },
        send: (message) => this.#tell({ type: 'send', id, message }),
        stop: () => this.#stop(id, exited),
        kill: () => this.#stop(id, exited, 'SIGKILL'),
      })),
    );
  }

  /** Runs a command to its end. Fails, with the end of its output, when it does not end with 0. */
  async run(spec: ProcessSpec): Promise<void> {
    const kept = await this.start(spec);
    const { code, signal } = await kept.wait();
    if (code !== 0) throw new Error(`${spec.name} ${describeExit({ code, signal })}:\n${lastLines(spec.logPath)}`);
  }

  /** Removes a folder when everything has stopped, however that comes about. */
  removeAtEnd(path: string): void {
    this.#tell({ type: 'removeAtEnd', path });
  }

  /** Stops all that runs, newest first, and settles when it is gone. */
  async close(): Promise<void> {
    if (this.#process.connected) this.#process.send({ type: 'end' } satisfies ToKeeper, ignore);
    this.#process.ref();
    await this.#gone;
  }

  #stop(id: number, exited: Promise<ProcessExit>, signal?: 'SIGKILL'): Promise<ProcessExit> {
    if (this.#entries.has(id)) this.#tell({ type: 'stop', id, ...(signal === undefined ? {} : { signal }) });
    return this.#waitFor(exited);
  }

  #tell(message: ToKeeper): void {
    if (this.#process.connected) this.#process.send(message, ignore);
    else this.#lose();
  }

  #receive(message: FromKeeper): void {
    const entry = 'id' in message ? this.#entries.get(message.id) : undefined;
    if (entry === undefined || message.type === 'ready') return;
    switch (message.type) {
      case 'started':
        entry.pid = message.pid;
        entry.started(message.pid);
        return;
      case 'failed':
        this.#entries.delete(message.id);
        entry.failed(new Error(message.message));
        return;
      case 'message':
        if (entry.listeners.length === 0) entry.early.push(message.message);
        for (const listener of entry.listeners) listener(message.message);
        return;
      case 'exited':
        this.#entries.delete(message.id);
        entry.exit(message.exit);
        return;
    }
  }

  /** Without its keeper a process has nobody to stop it later, so it is stopped now. */
  #lose(): void {
    for (const [id, entry] of this.#entries) {
      this.#entries.delete(id);
      if (entry.pid !== undefined) killGroup(entry.pid);
      entry.failed(new Error('the process that keeps the others was ended'));
      entry.exit({ code: null, signal: 'SIGKILL' });
    }
  }

  /** Holds this process open while an answer is awaited, and only then. */
  async #waitFor<T>(answer: Promise<T>): Promise<T> {
    if (this.#waits++ === 0) this.#process.channel?.ref();
    try {
      return await answer;
    } finally {
      if (--this.#waits === 0) this.#process.channel?.unref();
    }
  }
}

/** The keeper of this process, made when first asked for; only the first to ask can give it an output. */
export function sharedKeeper(options?: { output?: 'inherit' }): Keeper {
  shared ??= new Keeper(options);
  return shared;
}

/** Stops all that this process started, if it started anything. */
export async function closeSharedKeeper(): Promise<void> {
  await shared?.close();
}

let shared: Keeper | undefined;

interface Entry {
  pid: number | undefined;
  listeners: ((message: unknown) => void)[];
  early: unknown[];
  started: (pid: number) => void;
  failed: (error: Error) => void;
  exit: (exit: ProcessExit) => void;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It ended on its own.
  }
}

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: Error) => void } {
  let resolve: (value: T) => void = ignore;
  let reject: (error: Error) => void = ignore;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

function ignore(): void {}
