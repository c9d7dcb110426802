import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sharedKeeper } from '../../../src/sandbox/keeper.ts';
import { type Block, blocksOf, commandsIn, shellLanguages } from '../page-blocks.ts';
import { patient } from '../patience.ts';

/** How long a command of a page may say nothing of the next. */
const commandWithinMs = 40_000;

/** A text of a page that the reader replaces by a value of his own: here, of the running sandbox. */
export type Own = readonly (readonly [text: string, value: string])[];

/** A command that is no reader's to paste here, or that goes on until it is interrupted. */
export interface Exception {
  readonly page: string;
  /** A text of the command that no other command of the page that runs has. */
  readonly command: string;
  readonly why: string;
}

export interface Exceptions {
  readonly notRun: readonly Exception[];
  readonly interrupted: readonly Exception[];
}

/** The result of one command of a page. */
interface Pasted {
  readonly line: number;
  readonly output: string;
}

/** A block of commands of a page, and what they said. */
export interface PastedBlock {
  readonly line: number;
  readonly commands: readonly Pasted[];
  /** The output of `afterBlock`. */
  readonly after: string;
}

interface PasteOptions {
  readonly own: Own;
  readonly exceptions: Exceptions;
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly afterBlock?: string;
}

/** Told to the shell that runs a page: it says before each command which line of the page it is from. */
const prelude = `
unset BASH_ENV
exec 3>&1
until_interrupted() { timeout --signal=INT 2 "$@" || [ $? = 124 ]; }
set -euo pipefail
trap 'printf "\\n@@ %s\\n" "$LINENO" >&3' DEBUG
`;

/**
 * Pastes every command of a page into one shell, as a reader would who goes through it from the top, and fails with page,
 * line and what was said when one does not end with 0. Where an answer is shown below a block, the block's last answer has
 * its members. `afterBlock` is a command that runs after each block.
 */
export async function pastePage(
  page: string,
  { own, exceptions, folder, env, afterBlock = '' }: PasteOptions,
): Promise<PastedBlock[]> {
  const text = readFileSync(page, 'utf8');
  const blocks = blocksOf(text, shellLanguages);
  const script = scriptOf(page, text, blocks, exceptions);
  if (blocks.length === 0) return [];
  const lines = own.reduce((all, [placeholder, value]) => all.replaceAll(placeholder, value), script).split('\n');
  // The line that ends a block has room for it. The second command ends its output: a subshell that follows says no line.
  for (const { to } of blocks) lines[to] = afterBlock === '' ? '' : `${afterBlock}; :`;
  const filled = `${lines.join('\n').trimEnd()}\n`;
  const name = page.replaceAll('/', '-');
  writeFileSync(join(folder, 'prelude.sh'), prelude);
  writeFileSync(join(folder, `${name}.sh`), filled);
  const shell = await sharedKeeper().start({
    name: `the commands of ${page}`,
    command: 'bash',
    args: [join(folder, `${name}.sh`)],
    env: { ...env, BASH_ENV: join(folder, 'prelude.sh') },
    logPath: join(folder, `${name}.log`),
  });
  const pasted = () => commandsOf(readFileSync(shell.logPath, 'utf8'));
  let code: number | null | undefined;
  void shell.exited.then((exit) => {
    code = exit.code;
  });
  let lastSeen = -1;
  for (let since = performance.now(); code === undefined; await delay(50)) {
    const seen = pasted().length;
    if (seen !== lastSeen) since = performance.now();
    lastSeen = seen;
    if (performance.now() - since < patient(commandWithinMs)) continue;
    await shell.kill();
    assert.fail(
      `${where(page, blocks, pasted().at(-1))}\ndid not end within ${commandWithinMs / 1000} s of a quiet machine`,
    );
  }
  if (code !== 0) assert.fail(`${where(page, blocks, pasted().at(-1))}\nended with ${code}`);
  const done = blocks.map(({ from, to }) => ({
    line: from,
    commands: pasted().filter(({ line }) => line >= from && line <= to),
    after: pasted().find(({ line }) => line === to + 1)?.output ?? '',
  }));
  for (const shown of blocksOf(text, /^json$/)) checkShown(page, shown, done);
  return done;
}

/** The page with all but its commands left out, so that the lines of both are the same. */
function scriptOf(page: string, text: string, blocks: readonly Block[], exceptions: Exceptions): string {
  const script = text.split('\n').map(() => '');
  const of = (some: readonly Exception[]) => some.filter((exception) => exception.page === page);
  const left = new Set([...of(exceptions.notRun), ...of(exceptions.interrupted)]);
  const excepted = (some: readonly Exception[], command: string) => {
    const found = of(some).find((exception) => command.includes(exception.command));
    if (found !== undefined) left.delete(found);
    return found !== undefined;
  };
  for (const { from, lines } of blocks.flatMap(commandsIn)) {
    const command = lines.join('\n');
    if (excepted(exceptions.notRun, command)) continue;
    const isEndless = excepted(exceptions.interrupted, command);
    script.splice(from - 1, lines.length, ...`${isEndless ? 'until_interrupted ' : ''}${command}`.split('\n'));
  }
  assert.deepEqual([...left], [], `${page} has no longer what is excepted`);
  return script.join('\n');
}

/** Splits the log into the output of each command. */
function commandsOf(log: string): Pasted[] {
  const [, ...parts] = log.split(/^@@ (\d+)\n/m);
  const commands: Pasted[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    commands.push({ line: Number(parts[at]), output: (parts[at + 1] ?? '').trim() });
  }
  return commands;
}

function where(page: string, blocks: readonly Block[], { line, output }: Pasted = { line: 1, output: '' }): string {
  const command = blocks.flatMap(commandsIn).find(({ from, to }) => line >= from && line <= to);
  return `${page}:${command?.from ?? line}: ${command?.lines.join('\n') ?? ''}\nsaid: ${output || 'nothing'}`;
}

/** An answer that is shown has the members of the real one, all the way down, and no other. */
function checkShown(page: string, shown: Block, done: readonly PastedBlock[]): void {
  const answer = done.findLast(({ line }) => line < shown.from)?.commands.at(-1);
  const at = `${page}:${shown.from}`;
  assert.ok(answer !== undefined, `${at}: what answers this?`);
  const said = `${at} shows another answer than line ${answer.line} has: ${answer.output}`;
  let real: unknown;
  try {
    real = JSON.parse(answer.output);
  } catch {
    assert.fail(said);
  }
  assert.ok(isLike(real, JSON.parse(shown.lines.join('\n'))), said);
}

function isLike(real: unknown, shown: unknown): boolean {
  if (Array.isArray(real) && Array.isArray(shown))
    return shown.length === 0 || real.every((one) => isLike(one, shown[0]));
  if (typeof real !== 'object' || typeof shown !== 'object' || real === null || shown === null) {
    return typeof real === typeof shown;
  }
  const names = Object.keys(shown);
  const members = new Map(Object.entries(shown));
  return (
    Object.keys(real).every((name) => names.includes(name)) &&
    Object.entries(real).every(([name, value]) => isLike(value, members.get(name)))
  );
}
