import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Advice } from './advice.ts';

/** One process's hold on a folder. */
export interface FolderLock {
  release(): void;
}

/**
 * Takes a folder for this process alone, making it when it is missing. A lock whose process has ended, however it
 * ended, holds nothing: the file names the process and when it began, so a number used again is not mistaken for it.
 */
export function lockFolder(folder: string, use: string): FolderLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, 'lock');
  const own = `${process.pid} ${processStart(process.pid) ?? 0}\n`;
  for (let attempt = 0; attempt < 5; attempt++) {
    if (create(path, own)) return { release: () => release(path, own) };
    const holder = read(path);
    if (holder === undefined) continue;
    const [pid = 0, start = 0] = holder.split(' ').map(Number);
    if (isRunning(pid, start)) {
      throw new Advice(
        `${use} in ${folder} is already running (process ${pid}).`,
        'Stop it first, or give this one a folder of its own: MARINA_DATA_DIR=.local-2, with ports of its own.',
      );
    }
    discardLock(path, holder);
  }
  throw new Advice(`${use} in ${folder} is being started by another process.`, 'Try again.');
}

/** Whether a process runs, and is the one that began then (0: whichever has that number). */
export function isRunning(pid: number, start = 0): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const began = processStart(pid);
  return began !== 'ended' && (start === 0 || began === undefined || began === start);
}

/** The file appears with its content or not at all. */
function create(path: string, content: string): boolean {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Takes a dead lock away; one that another process put in its place meanwhile is put back. */
export function discardLock(path: string, dead: string): void {
  const aside = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    renameSync(path, aside);
    if (readFileSync(aside, 'utf8') !== dead) linkSync(aside, path);
  } catch {
    // Another process was faster.
  } finally {
    rmSync(aside, { force: true });
  }
}

function release(path: string, own: string): void {
  if (read(path) === own) rmSync(path, { force: true });
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** When a process began, in the kernel's ticks; undefined where the system does not say; a zombie has ended. */
function processStart(pid: number): number | 'ended' | undefined {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  if (fields[0] === 'Z' || fields[0] === 'X') return 'ended';
  const start = Number(fields[19]);
  return Number.isSafeInteger(start) ? start : undefined;
}
