import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { groupBy } from '../../src/kit/group.ts';
import { kindOf, type TestKind } from './test-files.ts';

/** How many files of a kind run in one process, one after the other: to load the gateway takes longer than most tests. */
const filesPerProcess: Partial<Record<TestKind, number>> = { unit: 60, integration: 22, e2e: 9 };
/** The same for files whose hooks are those of their process: all that they start is there from the first test to the last. */
const filesWithHooksPerProcess = 6;

/** A file that changes the process, or what surrounds each test in it, or loads a module itself has a process of its own. */
const needsOwn =
  /^(?:before|after)Each\(|process\.(?:on|once|exit)\(|process\.env\.\w+ =(?!=)|^import \{.*\bmock\b.*'node:test'|^const .* = await import\(/m;
const hasHooks = /^(?:before|after)\(/m;

/** Files that run in one process, by the file that loads them. */
export type SharedProcesses = ReadonlyMap<string, readonly string[]>;

/** Writes a file for each process, which loads its test files. A file that runs alone stands for itself. */
export function shareProcesses(files: readonly string[], folder: string): SharedProcesses {
  const shared = new Map<string, readonly string[]>();
  mkdirSync(folder, { recursive: true });
  for (const [kind, ofKind] of groupBy(files, kindOf)) {
    const most = filesPerProcess[kind] ?? 1;
    const texts = new Map(ofKind.map((file) => [file, readFileSync(file, 'utf8')]));
    const matching = (pattern: RegExp) => ofKind.filter((file) => pattern.test(texts.get(file) ?? ''));
    const alone = new Set(most > 1 ? matching(needsOwn) : ofKind);
    const hooked = new Set(matching(hasHooks).filter((file) => !alone.has(file)));
    for (const file of alone) shared.set(file, [file]);
    const others = ofKind.filter((file) => !alone.has(file) && !hooked.has(file));
    for (const [name, together, atMost] of [
      [kind, others, most],
      [`${kind}-hooks`, [...hooked], filesWithHooksPerProcess],
    ] as const) {
      // Neighbours are much alike, also in how long they take: those of one process are from all over.
      const processes = Math.ceil(together.length / atMost);
      for (let at = 0; at < processes; at += 1) {
        const own = together.filter((_, number) => number % processes === at);
        const entry = join(folder, `${name}-${at + 1}.test.mjs`);
        writeFileSync(entry, own.map((file) => `await import('${pathToFileURL(resolve(file)).href}');\n`).join(''));
        shared.set(entry, own);
      }
    }
  }
  return shared;
}
