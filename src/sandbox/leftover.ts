import { readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning } from './lock.ts';

/**
 * Ends a server that an earlier start left behind on this folder. Usually it is stopping already and only needs a
 * moment; the caller holds the folder's lock, so it is nobody's.
 */
export async function endLeftoverServer(pidFile: string, dataDir: string): Promise<void> {
  await endLeftover(Number(readQuietly(pidFile)), dataDir);
  rmSync(pidFile, { force: true });
}

/** Ends a process of an earlier start, if it still runs and is the one meant: its command line names the path. */
export async function endLeftover(pid: number, path: string): Promise<void> {
  if (isRunning(pid) && readQuietly(`/proc/${pid}/cmdline`).includes(path)) {
    process.kill(pid, 'SIGTERM');
    if (!(await ends(pid, 5_000))) {
      process.kill(pid, 'SIGKILL');
      await ends(pid, 5_000);
    }
  }
}

async function ends(pid: number, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  while (performance.now() < deadline) {
    if (!isRunning(pid)) return true;
    await sleep(50);
  }
  return !isRunning(pid);
}

function readQuietly(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
