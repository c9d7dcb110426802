import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The kinds of tests. `unit`: rules, without a server. `integration`: a gateway or another program with the real servers
 * around it. `e2e`: the contract, over every protocol. `fault`: processes that are killed, links and servers that fail.
 * `hostile`: clients that attack. `fix` and `interop`: the FIX adapter against exchanges that were written apart from it.
 * `cluster`: several database or NATS servers. `scale`: a million orders.
 */
export const testKinds = [
  'unit',
  'integration',
  'e2e',
  'fault',
  'hostile',
  'fix',
  'interop',
  'cluster',
  'scale',
] as const;
export type TestKind = (typeof testKinds)[number];

/** The kind of test in a file: the word before `.test.ts`. */
export function kindOf(file: string): TestKind {
  const word = /\.([a-z0-9]+)\.test\.ts$/.exec(file)?.[1];
  const kind = testKinds.find((each) => each === word);
  if (kind === undefined) throw new Error(`${file} says no kind of test, such as orders.unit.test.ts does`);
  return kind;
}

/** The test files of the kinds, and in the folders or of the names, that are asked for. */
export function chosenFiles(names: readonly string[]): string[] {
  const kinds = names.filter((name) => (testKinds as readonly string[]).includes(name));
  const places = names.filter((name) => !kinds.includes(name));
  const files = (places.length === 0 && kinds.length > 0 ? ['test'] : places).flatMap(testFiles);
  return [...new Set(files)].filter((file) => kinds.length === 0 || kinds.includes(kindOf(file))).sort();
}

/** The test files a name stands for: a folder of `test/`, or a file. */
function testFiles(name: string): string[] {
  const path = [join('test', name), name].find((each) => statSync(each, { throwIfNoEntry: false }) !== undefined);
  if (path === undefined) throw new Error(`There is no ${name} in test/`);
  if (statSync(path).isFile()) return [path];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names.filter((each) => each.endsWith('.test.ts')).map((each) => join(path, each));
}
