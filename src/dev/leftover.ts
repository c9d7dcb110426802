import { readFileSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning } from './lock.ts';

/**
 * Ends a server that an earlier start left behind on this folder. Usually it is stopping already and only needs a
 * moment; the caller holds the folder's lock, so it is nobody's.
 */
export async function endLeftover(pidFile: string, dataDir: string): Promise<void> {
  const pid = Number(readQuietly(pidFile));
  if (isRunning(pid) && serves(pid, dataDir)) {
    process.kill(pid, 'SIGTERM');
    if (!(await ends(pid, 5_000))) {
      process.kill(pid, 'SIGKILL');
      await ends(pid, 5_000);
    }
  }
  rmSync(pidFile, { force: true });
}

/** The number may be another process's by now: ours names the folder in its arguments. */
function serves(pid: number, dataDir: string): boolean {
  return readQuietly(`/proc/${pid}/cmdline`).includes(dataDir);
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
