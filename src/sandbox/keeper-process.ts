/**
 * The parent of every process that dev tools and tests start. It lives as long as the channel to the process that asked
 * for it: however that one ends, SIGKILL included, everything is stopped, newest first, and nothing stays behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, rmSync } from 'node:fs';
import type { FromKeeper, ProcessSpec, ToKeeper } from './keeper-protocol.ts';

interface Child {
  spec: ProcessSpec;
  process: ChildProcess;
  ended: Promise<void>;
}

const children = new Map<number, Child>();
const foldersToRemove = new Set<string>();
const defaultStopTimeoutMs = 10_000;
let ending = false;

process.on('message', (message: ToKeeper) => {
  switch (message.type) {
    case 'start':
      return start(message.id, message.spec);
    case 'stop':
      return void stop(message.id, message.signal);
    case 'send':
      return void children.get(message.id)?.process.send(message.message as never, ignore);
    case 'removeAtEnd':
      return void foldersToRemove.add(message.path);
    case 'end':
      return void end();
  }
});
process.on('disconnect', () => void end());
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => void end());
tell({ type: 'ready' });

function start(id: number, spec: ProcessSpec): void {
  if (ending) {
    tell({ type: 'failed', id, message: 'everything is being stopped' });
    return;
  }
  const opened: number[] = [];
  try {
    const log =
      spec.logPath === 'inherit' ? 'inherit' : openSync(spec.logPath, spec.appends === true ? 'a' : 'w', 0o600);
    if (typeof log === 'number') opened.push(log);
    const input = spec.inputPath === undefined ? 'ignore' : openSync(spec.inputPath, 'r');
    if (typeof input === 'number') opened.push(input);
    const child = spawn(spec.command, spec.args, {
      env: spec.env ?? process.env,
      // A group of its own, so that what it starts ends with it.
      detached: true,
      stdio: spec.ipc === true ? [input, log, log, 'ipc'] : [input, log, log],
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
    });
    child.on('error', (error) => tell({ type: 'failed', id, message: error.message }));
    child.on('message', (message) => tell({ type: 'message', id, message }));
    const ended = new Promise<void>((resolve) => {
      child.on('exit', (code, signal) => {
        children.delete(id);
        signalGroup(child, 'SIGKILL');
        tell({ type: 'exited', id, exit: { code, signal } });
        resolve();
      });
    });
    if (child.pid === undefined) return;
    children.set(id, { spec, process: child, ended });
    tell({ type: 'started', id, pid: child.pid });
  } catch (error) {
    tell({ type: 'failed', id, message: error instanceof Error ? error.message : String(error) });
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

async function stop(id: number, signal?: 'SIGKILL'): Promise<void> {
  const child = children.get(id);
  if (child === undefined) return;
  signalGroup(child.process, signal ?? child.spec.stopSignal ?? 'SIGTERM');
  const timer = setTimeout(
    () => signalGroup(child.process, 'SIGKILL'),
    child.spec.stopTimeoutMs ?? defaultStopTimeoutMs,
  );
  await child.ended;
  clearTimeout(timer);
}

async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  for (const id of [...children.keys()].reverse()) await stop(id);
  for (const folder of foldersToRemove) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  process.exit(0);
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // All of it has ended.
  }
}

function tell(message: FromKeeper): void {
  if (process.connected) process.send?.(message, ignore);
}

/** A message that no longer finds its reader is nobody's loss: the 'disconnect' that follows ends everything. */
function ignore(): void {}
