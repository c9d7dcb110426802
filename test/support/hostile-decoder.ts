import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { DecoderProgram } from '../../src/decoder/decoder.ts';
import { startDecoder } from '../../src/decoder/decoder.ts';
import { temporaryFolder } from './folders.ts';

/** The powers that a hostile decoder found it had: by attempt `done`, or the error's code. */
export type Attempts = Readonly<Record<string, string>>;

/** A program that tries what somebody would who had taken a decoder over. */
function hostileProgram(attempts: Record<string, string>): DecoderProgram {
  const code = `
    const { execFileSync } = require('node:child_process');
    const fs = require('node:fs');
    const net = require('node:net');
    const attempts = { ${Object.entries(attempts)
      .map(([name, body]) => `${JSON.stringify(name)}: async () => { ${body} }`)
      .join(', ')} };
    (async () => {
      const found = {};
      for (const [name, attempt] of Object.entries(attempts)) {
        found[name] = await attempt().then((value) => value ?? 'done', (error) => error.code ?? error.message);
      }
      process.stdout.write(JSON.stringify(found), () => process.exit());
    })();`;
  return { args: ['--eval', code], folder: '/', reads: [] };
}

const builder = fileURLToPath(new URL('../../src/decoder/walls.pl', import.meta.url));

/** A builder of walls for a machine whose kernel does not offer some of them. */
export function builderWithout(...steps: readonly string[]): string {
  const path = join(temporaryFolder(), `${steps.length}-${steps.join().replace(/\W+/g, '-')}.pl`);
  const script = readFileSync(builder, 'utf8');
  writeFileSync(
    path,
    steps.reduce((text, step) => text.replace(`if ${step}`, 'if 0'), script),
  );
  return path;
}

/** Starts a hostile decoder as decoders are started, and tells what it could do and which walls were built. */
export async function runHostileDecoder(attempts: Record<string, string>, walled: boolean, wallBuilder?: string) {
  const child = startDecoder(hostileProgram(attempts), walled, wallBuilder);
  const ended = new Promise<NodeJS.Signals | number | null>((resolve) => {
    child.on('exit', (code, signal) => resolve(signal ?? code));
  });
  const output = child.stdout === null ? '' : await textOf(child.stdout);
  const begin = output.indexOf('{');
  const found = begin === -1 ? {} : (JSON.parse(output.slice(begin)) as Attempts);
  return { found, walls: output.slice(0, Math.max(begin, 0)).trim(), ended: await ended };
}

const readByPerl = ['/lib', '/lib64', '/usr/lib', '/etc/ld.so.cache', '/usr/bin/perl', '/dev/null'];

/** Whether a program behind the walls has a file that was left open for the process that starts it. */
export async function hasLeftOpen(path: string): Promise<string> {
  const left = openSync(path, 'r');
  const program = ['/usr/bin/perl', '-e', `print open(my $left, '<&=', 3) ? 'open' : 'closed';`];
  const child = spawn(
    '/usr/bin/perl',
    [builder, String(process.pid), '800000000', '300', ...readByPerl, '--', ...program],
    { env: {}, stdio: ['ignore', 'pipe', 'inherit', left] },
  );
  closeSync(left);
  const [, found = ''] = child.stdout === null ? [] : (await textOf(child.stdout)).split('\n');
  return found;
}

/** System calls that Node cannot make, on x86-64 and on arm64. */
const callNumbers = { fcntl: [72, 25], ioctl: [16, 29], mmap: [9, 222], prctl: [157, 167], setAffinity: [203, 122] };

/**
 * Has a program behind the walls make system calls, as native code of a decoder could that somebody has taken over. Each
 * is a name of `callNumbers` and its arguments in Perl. Returns the number of the error of each, 0 without an error.
 */
export async function runSystemCalls(
  calls: readonly (readonly [keyof typeof callNumbers, string])[],
  wallBuilder = builder,
): Promise<number[]> {
  const machine = process.arch === 'x64' ? 0 : 1;
  const code = calls.map(
    ([name, args]) => `@args = (${args}); $! = 0; syscall(${callNumbers[name][machine]}, @args); print $! + 0, "\\n";`,
  );
  const program = ['/usr/bin/perl', '-e', `pipe(my $reader, my $writer); ${code.join(' ')}`];
  const child = spawn(
    '/usr/bin/perl',
    [wallBuilder, String(process.pid), '800000000', '300', ...readByPerl, '--', ...program],
    { env: {}, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [, ...errors] = (await textOf(child.stdout)).trimEnd().split('\n');
  return errors.map(Number);
}

/** Connects to a port of this machine. */
export function connectTo(port: number): string {
  return `await new Promise((resolve, reject) =>
    net.connect(${port}, '127.0.0.1').on('connect', resolve).on('error', reject));`;
}
