/** `make demo`: a tour of everything a partner does, against the running sandbox, and a check that all of it holds. */
import { explain } from './advice.ts';
import { adviceOn } from './demo-failure.ts';
import { Screen } from './demo-screen.ts';
import { Tour } from './demo-tour.ts';
import { runningSandbox } from './sandbox-file.ts';
import { dataFolder } from './settings.ts';

demo().catch((error: unknown) => {
  process.stderr.write(`\nThe demo did not come to its end. ${explain(error)}\n`);
  process.exit(1);
});

async function demo(): Promise<void> {
  const dataDir = dataFolder(process.env);
  const sandbox = runningSandbox(dataDir);
  const screen = new Screen(process.stdout, process.env);
  const failure = await Tour.open(sandbox, dataDir, screen).then(
    (tour) => screen.play(tour.chapters()),
    (error: unknown) => error,
  );
  if (failure !== undefined) throw adviceOn(failure, sandbox, dataDir);
}
