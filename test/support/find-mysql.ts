/** Finds MySQL, or unpacks its packages; says its version, or why it cannot be had. */
import { explain } from '../../src/dev/advice.ts';
import { closeSharedKeeper } from '../../src/dev/keeper.ts';
import { progressLines } from '../../src/dev/progress.ts';
import { findAsked } from '../../src/dev/servers.ts';

try {
  const { version } = await findAsked('mysql', { progress: progressLines((text) => process.stderr.write(text)) });
  process.stdout.write(`${version}\n`);
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
}
await closeSharedKeeper();
