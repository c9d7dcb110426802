import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import type { Row } from './report.ts';

/** Git ignores it. */
export const resultsFolder = '.bench';

/** Writes what a run came to, to a file of its own, and returns its name. */
export function keepResults(
  startedAt: Date,
  facts: Readonly<Record<string, unknown>>,
  sections: Readonly<Record<string, readonly Row[]>>,
): string {
  const commit = git('describe', '--always', '--dirty', '--abbrev=12', '--exclude=*');
  const path = join(resultsFolder, `${startedAt.toISOString().replaceAll(':', '-').slice(0, 19)}-${commit}.json`);
  const machine = { processors: cpus().length, model: cpus()[0]?.model, node: process.version };
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(path, `${JSON.stringify({ startedAt, commit, ...facts, machine, sections }, null, 2)}\n`);
  return path;
}

/** Runs git and returns its output in one line. */
export function git(...args: string[]): string {
  return execFileSync('git', args, { encoding: 'utf8' }).trim();
}
