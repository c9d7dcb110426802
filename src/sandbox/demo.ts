/** `make demo`: a tour of everything a partner does, against the running sandbox, and a check that all of it holds. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Advice, explain } from './advice.ts';
import { adviceOn } from './demo-failure.ts';
import { Screen } from './demo-screen.ts';
import { Tour } from './demo-tour.ts';
import { type FolderLock, lockFolder } from './lock.ts';
import { runningSandbox } from './sandbox-file.ts';
import { dataFolder } from './settings.ts';

/** How long a demo waits for another one, and how often it looks. */
const waitMs = 300_000;
const pauseMs = 250;

// Nobody reads on, as after `make demo | head`.
process.stdout.on('error', () => process.exit(1));

demo().catch((error: unknown) => {
  process.stderr.write(`\nThe demo did not come to its end. ${explain(error)}\n`);
  process.exit(1);
});

async function demo(): Promise<void> {
  const dataDir = dataFolder(process.env);
  const sandbox = runningSandbox(dataDir);
  const screen = new Screen(process.stdout, process.env);
  const turn = await takeTurn(dataDir, screen);
  try {
    const tour = await Tour.open(sandbox, dataDir, screen);
    const failure = await screen.play(tour.chapters());
    if (failure !== undefined) throw failure;
  } catch (failure) {
    throw adviceOn(failure, sandbox, dataDir);
  } finally {
    turn.release();
  }
}

/** Waits until no other demo runs in the sandbox: each moves its clock, and a day would end amid the other's orders. */
async function takeTurn(dataDir: string, screen: Screen): Promise<FolderLock> {
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
