import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { repeated } from '../statement-shapes.ts';
import { explainUnlisted, isListed } from './several-partners.ts';

/** Every statement that gateways send, by its shape, one a line. `make test-scale` runs each of them. */
const file = join(import.meta.dirname, './statements.txt');

export function knownShapes(): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
}

/**
 * Compares the statements that gateways sent during a test run with the known ones, and says which are new. With
 * MARINA_TEST_RECORD_STATEMENTS=true it adds them instead. A run of all tests then also removes what no gateway sends any more.
 */
export function compareStatements(folder: string, tests: readonly string[]): string | undefined {
  const noted = existsSync(folder) ? readdirSync(folder).map((name) => read(join(folder, name))) : [];
  const sent = byForm(noted.flatMap(({ shapes }) => shapes));
  const known = byForm(knownShapes());
  const added = [...sent].flatMap(([form, shape]) => (known.has(form) ? [] : [shape])).sort();
  if (process.env.MARINA_TEST_RECORD_STATEMENTS === 'true') {
    const isComplete = ['integration', 'e2e'].every((name) => tests.includes(name));
    const kept = byForm([...(isComplete ? [] : known.values()), ...sent.values()]);
    for (const [form, shape] of known) if (kept.has(form)) kept.set(form, longer(shape, kept.get(form)));
    if (sent.size > 0) writeFileSync(file, `${[...kept.values()].sort().join('\n')}\n`);
    added.length = 0;
  }
  const several = [...new Set(noted.flatMap((one) => one.several))].filter((shape) => !isListed(shape)).sort();
  const complaints = [
    ...(added.length === 0 ? [] : [explainUnknown(added)]),
    ...(several.length === 0 ? [] : [explainUnlisted(several)]),
  ];
  return complaints.length === 0 ? undefined : complaints.join('\n\n');
}

function explainUnknown(added: readonly string[]): string {
  return [
    `A gateway sent statements that ${relative(process.cwd(), file)} does not have. Run these tests again with`,
    'MARINA_TEST_RECORD_STATEMENTS=true, and then `make test-scale`, which says how many rows each of them reads:',
    ...added.map((shape) => `  ${shape}`),
  ].join('\n');
}

/** Reads the notes of one process: the shapes that it sent, and those that named several partners. */
function read(path: string): { shapes: string[]; several: string[] } {
  return JSON.parse(readFileSync(path, 'utf8'));
}

/**
 * Shapes by what they have in common, however often their parts stand: chance decides whether a run sends one part or
 * several. Of two the one with repeated parts is kept, which is run with one part, too.
 */
function byForm(shapes: readonly string[]): Map<string, string> {
  const forms = new Map<string, string>();
  for (const shape of shapes) {
    const form = shape.replaceAll(`)${repeated}`, ')');
    forms.set(form, longer(shape, forms.get(form)));
  }
  return forms;
}

function longer(one: string, other = ''): string {
  return one.length > other.length ? one : other;
}
