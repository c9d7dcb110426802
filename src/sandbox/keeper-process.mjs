// @ts-check
/**
 * The parent of every process that dev tools and tests start. It lives as long as the channel to the process that asked
 * for it: however that one ends, SIGKILL included, everything is stopped, newest first, and nothing stays behind.
 * It is JavaScript, because it starts in a fifth of the time: each program of tests has one.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, rmSync } from 'node:fs';

/** @import { ChildProcess } from 'node:child_process' */
/** @import { FromKeeper, ProcessSpec, ToKeeper } from './keeper-protocol.ts' */
/** @typedef {{ spec: ProcessSpec, process: ChildProcess, ended: Promise<void> }} Child */

/** @type {Map<number, Child>} */
const children = new Map();
/** @type {Set<string>} */
const foldersToRemove = new Set();
const defaultStopTimeoutMs = 10_000;
let ending = false;

process.on('message', (/** @type {ToKeeper} */ message) => {
  switch (message.type) {
    case 'start':
      return start(message.id, message.spec);
    case 'stop':
      return void stop(message.id, message.signal);
    case 'send':
      return void children.get(message.id)?.process.send(/** @type {never} */ (message.message), ignore);
    case 'removeAtEnd':
      return void foldersToRemove.add(message.path);
    case 'end':
      return void end();
  }
});
process.on('disconnect', () => void end());
for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT', 'SIGHUP'])) process.on(signal, () => void end());
tell({ type: 'ready' });

/**
 * @param {number} id
 * @param {ProcessSpec} spec
 */
function start(id, spec) {
  if (ending) {
    tell({ type: 'failed', id, message: 'everything is being stopped' });
    return;
  }
  /** @type {number[]} */
  const opened = [];
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
    /** @type {Promise<void>} */
    const ended = new Promise((resolve) => {
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

/**
 * @param {number} id
 * @param {'SIGKILL'} [signal]
 */
async function stop(id, signal) {
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

async function end() {
  if (ending) return;
  ending = true;
  for (const id of [...children.keys()].reverse()) await stop(id);
  for (const folder of foldersToRemove) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  process.exit(0);
}

/**
 * @param {ChildProcess} child
 * @param {NodeJS.Signals} signal
 */
function signalGroup(child, signal) {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // All of it has ended.
  }
}

/** @param {FromKeeper} message */
function tell(message) {
  if (process.connected) process.send?.(message, ignore);
}

/** A message that no longer finds its reader is nobody's loss: the 'disconnect' that follows ends everything. */
function ignore() {}
