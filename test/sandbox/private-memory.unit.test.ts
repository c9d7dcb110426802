import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { sharedKeeper } from '../../src/sandbox/keeper.ts';
import { temporaryFolder } from '../support/folders.ts';
import { runCommand } from '../support/secret-files.ts';

/** Loaded first: sends the process SIGUSR1 when it is about to load the gateway's parts. */
const signals = `
import { register } from 'node:module';
const resolve = (specifier, context, next) => {
  if (specifier.endsWith('/app.ts')) process.kill(process.pid, 'SIGUSR1');
  return next(specifier, context);
};
register('data:text/javascript,export const resolve = ' + encodeURIComponent(resolve));
console.log('the trap is set');
`;

it('SIGUSR1 opens no debugger while the modules of a gateway are loaded', async () => {
  const folder = temporaryFolder();
  sharedKeeper().removeAtEnd(folder);
  const trap = join(folder, 'trap.mjs');
  writeFileSync(trap, signals);
  const command = runCommand(['config'], { NODE_OPTIONS: `--import ${pathToFileURL(trap)}` });
  assert.equal(await command.ended, 0, command.printed());
  assert.match(command.printed(), /the trap is set/);
  assert.match(command.printed(), /MARINA_DATABASE_URL/);
  assert.doesNotMatch(command.printed(), /Debugger|inspector/);
});
