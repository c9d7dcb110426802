#!/usr/bin/env node
import { MarinaError, NoAnswerError } from '../errors.ts';
import { listen } from './listen.ts';
import { safeLine } from './printer.ts';
import { help, readSettings, UsageError } from './settings.ts';

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stop.abort();
    // Nothing that is under way is waited for: an event that was not answered is sent again next time.
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

try {
  const settings = readSettings(process.argv.slice(2), process.env);
  if (settings === 'help') process.stdout.write(help);
  else await listen(settings, { signal: stop.signal, write: (line) => void process.stdout.write(`${line}\n`) });
} catch (error) {
  // A key given as an argument by mistake is hidden too.
  const safe = safeLine([process.env.MARINA_KEY, process.env.MARINA_WEBHOOK_SECRET]);
  process.stderr.write(`${safe(sentence(error))}\n`);
  if (error instanceof UsageError && error.showsHelp) process.stderr.write(`\n${help}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

function sentence(error: unknown): string {
  if (error instanceof NoAnswerError && error.cause instanceof Error) return `${error.message}: ${error.cause.message}`;
  return error instanceof MarinaError || error instanceof UsageError ? error.message : String(error);
}
