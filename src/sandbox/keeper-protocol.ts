/** A process to run, and how it is ended. */
export interface ProcessSpec {
  /** The name of the process in messages. */
  name: string;
  command: string;
  args: readonly string[];
  /** The whole environment; absent: the one of the process that asks. */
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** A file the process reads as its standard input. */
  inputPath?: string;
  /** The file its output goes to, begun afresh; `inherit` where the keeper itself was given an output. */
  logPath: string | 'inherit';
  /** Its output goes behind what the file has: it is started again. */
  appends?: boolean;
  /** Whether it speaks Node's own messages with the process that asks. */
  ipc?: boolean;
  /** The signal that ends it; absent: SIGTERM. SIGKILL suits what nobody needs again. */
  stopSignal?: 'SIGTERM' | 'SIGKILL';
  /** How long it may take to end before it is killed. */
  stopTimeoutMs?: number;
}

/** How a process ended. */
export interface ProcessExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

export type ToKeeper =
  | { type: 'start'; id: number; spec: ProcessSpec }
  | { type: 'stop'; id: number; signal?: 'SIGKILL' }
  | { type: 'send'; id: number; message: unknown }
  | { type: 'removeAtEnd'; path: string }
  | { type: 'end' };

export type FromKeeper =
  | { type: 'ready' }
  | { type: 'started'; id: number; pid: number }
  | { type: 'failed'; id: number; message: string }
  | { type: 'exited'; id: number; exit: ProcessExit }
  | { type: 'message'; id: number; message: unknown };
