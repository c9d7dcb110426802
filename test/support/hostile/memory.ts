import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'undici';

/** Makes Node open an inspector, through which a test can collect the garbage. */
export const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** How much memory a process holds, in MiB. */
export function residentMiB(pid: number): number {
  const [, kib = '0'] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1_024;
}

/** Looks at a process's memory until it is stopped, and returns the most that was seen. */
export function watchMemory(pid: number): () => number {
  let most = 0;
  const look = () => {
    try {
      most = Math.max(most, residentMiB(pid));
    } catch {
      // The process is gone, which another check says.
    }
  };
  const timer = setInterval(look, 50);
  return () => {
    clearInterval(timer);
    look();
    return most;
  };
}

/**
 * Waits until a process holds at most so much, and returns what it holds then or at the end of the time. Garbage that V8
 * would collect when it sees fit is collected now, so that what is measured is what the process holds on to.
 */
export async function settledMiB(pid: number, logPath: string, atMostMiB: number, withinMs: number): Promise<number> {
  const end = performance.now() + withinMs;
  for (;;) {
    await collectGarbage(logPath);
    await delay(200);
    const now = residentMiB(pid);
    if (now <= atMostMiB || performance.now() > end) return now;
  }
}

async function collectGarbage(logPath: string): Promise<void> {
  const [, url] = /Debugger listening on (ws:\S+)/.exec(readFileSync(logPath, 'utf8')) ?? [];
  if (url === undefined) throw new Error(`no inspector is named in ${logPath}`);
  const socket = new WebSocket(url);
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the inspector does not answer')), 10_000);
    socket.addEventListener('error', () => reject(new Error('the inspector cannot be reached')));
    socket.addEventListener('open', () => socket.send('{"id":1,"method":"HeapProfiler.collectGarbage"}'));
    socket.addEventListener('message', () => {
      clearTimeout(timer);
      resolve();
    });
  });
  socket.close();
}
