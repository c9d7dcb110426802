/**
 * Which part of the tests is run: `MARINA_TEST_PART=2/4` runs every fourth case of the long tables, from the second on, and
 * `MARINA_TEST_FILES=2/2` every second file. All are run without them.
 */

/** Whether the case at a place of a table, from 0, is run now. */
export const isInPart = readPart('MARINA_TEST_PART');
const isFileInPart = readPart('MARINA_TEST_FILES');

/** The cases of a table that are run now. */
export function inPart<T>(cases: readonly T[]): T[] {
  return cases.filter((_, at) => isInPart(at));
}

/** The test files that are run now. */
export function filesInPart(files: readonly string[]): string[] {
  return files.filter((_, at) => isFileInPart(at));
}

function readPart(name: string): (at: number) => boolean {
  const text = process.env[name] ?? '1/1';
  const [part = 0, parts = 0] = text.split('/').map(Number);
  if (!(Number.isInteger(part) && Number.isInteger(parts) && part >= 1 && part <= parts)) {
    throw new Error(`${name} is ${text}, and not 1/4 or the like`);
  }
  return (at) => at % parts === part - 1;
}
