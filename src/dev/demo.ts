/** `make demo`: a tour of everything a partner does, against the running sandbox, and a check that all of it holds. */
import { explain } from './advice.ts';
import { adviceOn } from './demo-failure.ts';
import { Screen } from './demo-screen.ts';
import { Tour } from './demo-tour.ts';
import { takeTurn } from './demo-turn.ts';
import { runningSandbox } from './sandbox-file.ts';
import { dataFolder } from './settings.ts';

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
