/**
 * Which part of the long tables of tests is run: `MARINA_TEST_PART=2/4` runs every fourth one, from the second on. All are
 * run without it.
 */
const [part, parts] = readPart(process.env.MARINA_TEST_PART ?? '1/1');

/** The cases of a table that are run now. */
export function inPart<T>(cases: readonly T[]): T[] {
  return cases.filter((_, at) => isInPart(at));
}

/** Whether the case at a place of a table, from 0, is run now. */
export function isInPart(at: number): boolean {
  return at % parts === part - 1;
}

function readPart(text: string): [number, number] {
  const [part = 0, parts = 0] = text.split('/').map(Number);
  if (!(Number.isInteger(part) && Number.isInteger(parts) && part >= 1 && part <= parts)) {
    throw new Error(`MARINA_TEST_PART is ${text}, and not 1/4 or the like`);
  }
  return [part, parts];
}
