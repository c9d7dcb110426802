/** Finds MySQL, or unpacks its packages; says its version, or why it cannot be had. */
import { explain } from '../../src/sandbox/advice.ts';
import { closeSharedKeeper } from '../../src/sandbox/keeper.ts';
import { progressLines } from '../../src/sandbox/progress.ts';
import { findAsked } from '../../src/sandbox/servers.ts';

try {
  const { version } = await findAsked('mysql', { progress: progressLines((text) => process.stderr.write(text)) });
  process.stdout.write(`${version}\n`);
} catch (error) {
  process.stderr.write(`${explain(error)}\n`);
  process.exitCode = 1;
}
await closeSharedKeeper();
