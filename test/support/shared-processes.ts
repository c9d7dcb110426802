import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { groupBy } from '../../src/kit/group.ts';
import { kindOf, type TestKind } from './test-files.ts';

/** How many files of a kind run in one process, one after the other: to load the gateway takes longer than most tests. */
const filesPerProcess: Partial<Record<TestKind, number>> = { unit: 12, integration: 5, e2e: 3 };

/** A file that has hooks for all of its process, changes the process, or loads a module itself has a process of its own. */
const needsOwn =
  /^(?:before|after)(?:Each)?\(|process\.(?:on|once|exit)\(|process\.env\.\w+ =|\bmock\.|^const .* = await import\(/m;

/** Files that run in one process, by the file that loads them. */
export type SharedProcesses = ReadonlyMap<string, readonly string[]>;

/** Writes a file for each process, which loads its test files. A file that runs alone stands for itself. */
export function shareProcesses(files: readonly string[], folder: string): SharedProcesses {
  const shared = new Map<string, readonly string[]>();
  mkdirSync(folder, { recursive: true });
  for (const [kind, ofKind] of groupBy(files, kindOf)) {
    const most = filesPerProcess[kind] ?? 1;
    const together = ofKind.filter((file) => most > 1 && !needsOwn.test(readFileSync(file, 'utf8')));
    for (const file of ofKind) if (!together.includes(file)) shared.set(file, [file]);
    // Neighbours are much alike, also in how long they take: those of one process are from all over.
    const processes = Math.ceil(together.length / most);
    for (let at = 0; at < processes; at += 1) {
      const own = together.filter((_, number) => number % processes === at);
      const entry = join(folder, `${kind}-${at + 1}.test.mjs`);
      writeFileSync(entry, own.map((file) => `await import('${pathToFileURL(resolve(file)).href}');\n`).join(''));
      shared.set(entry, own);
    }
  }
  return shared;
}
