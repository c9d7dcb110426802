import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Advice } from './advice.ts';
import type { Screen } from './demo-screen.ts';
import { type FolderLock, lockFolder } from './lock.ts';

const waitMs = 300_000;
const pauseMs = 250;

/** Waits until no other demo runs in the sandbox: each moves its clock, and a day would end amid the other's orders. */
export async function takeTurn(dataDir: string, screen: Screen): Promise<FolderLock> {
  const first = take(dataDir);
  if (!(first instanceof Advice)) return first;
  screen.say('Another demo is running in this sandbox. This one begins when it has ended.');
  return screen.waiting('waiting for the other demo', takeLater(dataDir));
}

async function takeLater(dataDir: string): Promise<FolderLock> {
  const endsAt = performance.now() + waitMs;
  for (;;) {
    const taken = take(dataDir);
    if (!(taken instanceof Advice)) return taken;
    if (performance.now() > endsAt) throw taken;
    await sleep(pauseMs);
  }
}

/** The turn, or who has it. */
function take(dataDir: string): FolderLock | Advice {
  try {
    return lockFolder(join(dataDir, 'demo'), 'A demo');
  } catch (error) {
    if (error instanceof Advice) return error;
    throw error;
  }
}
