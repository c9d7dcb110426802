import { cpSync, readFileSync, statSync } from 'node:fs';

/** A stage of a Dockerfile: what it is based on, and what is done in it, in order. */
export interface Stage {
  readonly name: string;
  readonly from: string;
  readonly steps: readonly Step[];
}

/** An instruction and what follows it: `COPY` and `package.json ./`. */
export interface Step {
  readonly instruction: string;
  readonly text: string;
}

/** Reads a Dockerfile, of which it knows what ours uses. */
export function readDockerfile(path: string): Stage[] {
  const text = readFileSync(path, 'utf8')
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, ' ');
  const stages: { name: string; from: string; steps: Step[] }[] = [];
  for (const line of text.split('\n').filter((each) => each.trim() !== '')) {
    const [, instruction = '', rest = ''] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    const [, from, name = String(stages.length)] = /^(\S+)(?: AS (\S+))?$/.exec(rest) ?? [];
    if (instruction === 'FROM' && from !== undefined) stages.push({ name, from, steps: [] });
    else stages.at(-1)?.steps.push({ instruction, text: rest });
  }
  return stages;
}

/** The text of the only step of a stage with an instruction. */
export function onlyStep({ steps }: Stage, instruction: string): string {
  const found = steps.filter((step) => step.instruction === instruction);
  if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} times ${instruction}`);
  return found[0].text;
}

/** The variables that a stage sets. */
export function variablesOf({ steps }: Stage): Record<string, string> {
  const pairs = steps.filter(({ instruction }) => instruction === 'ENV').flatMap(({ text }) => text.split(/\s+/));
  return Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/).slice(0, 2)));
}

/** A command in the form of a list, as `CMD ["node", "src/main.js"]` has it. */
export function listOf(text: string): string[] {
  return JSON.parse(text.slice(text.indexOf('['))) as string[];
}

/** Which files an engine is given: the last line that names a file, or a folder it is in, decides. */
function contextFilter(ignored: string): (file: string) => boolean {
  const rules = ignored
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const pattern = line.replace(/^!/, '').replace(/[.+]/g, '\\$&').replaceAll('*', '[^/]*');
      return { isGiven: line.startsWith('!'), pattern: new RegExp(`^${pattern}(?:/|$)`) };
    });
  return (file) => rules.findLast(({ pattern }) => pattern.test(file))?.isGiven ?? true;
}

/** Copies what an engine is given of this project. */
export function copyContext(to: string): void {
  const isGiven = contextFilter(readFileSync('docs/deploy/Dockerfile.dockerignore', 'utf8'));
  cpSync('.', to, {
    recursive: true,
    preserveTimestamps: true,
    filter: (path) => (statSync(path).isDirectory() ? !/^(?:node_modules|dist|\.\w+)$/.test(path) : isGiven(path)),
  });
}
