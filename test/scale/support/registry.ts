import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Every statement that gateways send, by its shape, one a line. `make test-scale` runs each of them. */
const file = join(import.meta.dirname, '../statements.txt');

export function knownShapes(): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
}

/**
 * Compares the statements that gateways sent during a test run with the known ones, and says which are new. With
 * MARINA_TEST_RECORD_STATEMENTS=true it adds them instead. A run of all tests then also removes what no gateway sends any more.
 */
export function compareStatements(folder: string, tests: readonly string[]): string | undefined {
  const sent = new Set(existsSync(folder) ? readdirSync(folder).flatMap((name) => read(join(folder, name))) : []);
  const known = new Set(knownShapes());
  const added = [...sent].filter((shape) => !known.has(shape)).sort();
  if (process.env.MARINA_TEST_RECORD_STATEMENTS === 'true') {
    const isComplete = ['integration', 'e2e'].every((name) => tests.includes(name));
    const kept = isComplete ? sent : new Set([...known, ...sent]);
    if (sent.size > 0) writeFileSync(file, `${[...kept].sort().join('\n')}\n`);
    return undefined;
  }
  if (added.length === 0) return undefined;
  return [
    `A gateway sent statements that ${relative(process.cwd(), file)} does not have. Run these tests again with`,
    'MARINA_TEST_RECORD_STATEMENTS=true, and then `make test-scale`, which says how many rows each of them reads:',
    ...added.map((shape) => `  ${shape}`),
  ].join('\n');
}

function read(path: string): string[] {
  return JSON.parse(readFileSync(path, 'utf8')) as string[];
}
