import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants, setPriority } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Walls around a decoder, in the order in which they are built. docs/operations/configure.md says what each prevents. */
export const wallNames = ['limits', 'user-namespace', 'no-privileges', 'files', 'system-calls'] as const;
export type Wall = (typeof wallNames)[number];

/** The walls that together keep a decoder in. The user namespace adds to them where the kernel lets us have one. */
export const neededWalls: readonly Wall[] = ['limits', 'no-privileges', 'files', 'system-calls'];

/** Node since version 24 maps memory for compiled code that the kernel counts as data, used or not. */
const codeRangeBytes = Number.parseInt(process.versions.node, 10) >= 24 ? 540_000_000 : 0;
/** Memory for what the largest image takes, in addition to what Node takes itself. */
const mostDataBytes = 800_000_000 + codeRangeBytes;
/** How much processor time a decoder may use. It is replaced before, see `worker.ts`. */
const mostCpuSeconds = 300;

const perl = '/usr/bin/perl';
const builder = fileURLToPath(new URL('./walls.pl', import.meta.url));

/** Whether walls can be built here at all. */
export function canBuildWalls(): boolean {
  return existsSync(perl);
}

/** Builds the walls around nothing, and tells which of them hold here. */
export async function tryWalls(): Promise<ReadonlySet<Wall>> {
  if (!canBuildWalls()) return new Set();
  const args = [builder, ...wallArguments(readsOf({ args: [], folder: '/', reads: [] }))];
  const line = await new Promise<string>((resolve) => {
    execFile(perl, args, { env: {}, timeout: 5_000 }, (error, stdout) => resolve(error === null ? stdout : ''));
  });
  return readWalls(line.trim());
}

/** Reads the line that comes before a program's own output. */
export function readWalls(line: string): ReadonlySet<Wall> {
  const names = new Set(line.split(' '));
  return new Set(wallNames.filter((name) => names.has(name)));
}

/**
 * Starts a program that decodes, behind walls unless `walled` is false. It gets an empty environment, files by its input,
 * and answers by its output, which begins with the line of its walls. Tests give another builder of walls.
 */
export function startDecoder(program: DecoderProgram, walled: boolean, wallBuilder = builder): ChildProcess {
  const node = [process.execPath, '--max-old-space-size=64', ...program.args];
  const launcher = [perl, wallBuilder, ...wallArguments(readsOf(program))];
  const [command = '', ...args] = walled ? [...launcher, ...node] : node;
  const child = spawn(command, args, { cwd: program.folder, env: {}, stdio: ['pipe', 'pipe', 'ignore'] });
  lowerPriority(child);
  return child;
}

/** Orders come before documents. */
function lowerPriority({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It has ended already, which its starter notices.
  }
}

function wallArguments(reads: readonly string[]): string[] {
  return [String(process.pid), String(mostDataBytes), String(mostCpuSeconds), ...reads, '--'];
}

/** A program for Node to run, and what it must be able to read. */
export interface DecoderProgram {
  /** Arguments of Node. */
  readonly args: readonly string[];
  readonly folder: string;
  /** Files and folders. */
  readonly reads: readonly string[];
}

const here = dirname(fileURLToPath(import.meta.url));
/** `.js` in a gateway that was built. */
const extension = extname(import.meta.url);
const entry = join(here, `checker-process${extension}`);
/** The folder of the gateway's code, and the file that tells Node that it is made of modules. */
const sources = join(here, '../..');
const packageFile = join(sources, '../package.json');

/** What Node itself reads when it starts, on the systems that have it. */
const systemReads = [
  ...['/lib', '/lib64', '/usr/lib', '/usr/lib64', '/usr/local/lib', '/etc/ld.so.cache'],
  ...['/etc/ssl/openssl.cnf', '/etc/pki/tls/openssl.cnf', '/sys/devices/system/cpu/online'],
];

let program: Promise<DecoderProgram> | undefined;

/** The program that decodes images, made once. */
export function decoderProgram(): Promise<DecoderProgram> {
  program ??= makeProgram();
  return program;
}

async function makeProgram(): Promise<DecoderProgram> {
  const packages = packagesFolder();
  const root = dirname(packages);
  if (extension === '.js') {
    return { args: [entry], folder: root, reads: [sources, packages, packageFile] };
  }
  // What runs TypeScript starts processes of its own and writes files, which a decoder may not. So it is translated here.
  const { build } = await import('esbuild');
  const built = await build({
    entryPoints: [entry],
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    write: false,
    logLevel: 'silent',
  });
  return {
    args: ['--input-type=module', '--eval', built.outputFiles[0]?.text ?? ''],
    folder: root,
    reads: [packages, packageFile],
  };
}

/** What a program must be able to read to run in Node: its own files, Node, and the system's libraries. */
function readsOf({ reads }: DecoderProgram): string[] {
  return [...systemReads, realpathSync(process.execPath), ...reads].filter((path) => existsSync(path));
}

function packagesFolder(): string {
  const name = 'node_modules';
  const sharp = createRequire(import.meta.url).resolve('sharp');
  return sharp.slice(0, sharp.lastIndexOf(`/${name}/`) + name.length + 1);
}
