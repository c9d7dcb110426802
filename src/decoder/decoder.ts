import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { constants, setPriority } from 'node:os';
import { dirname, extname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Checked, type FileToCheck, fromLine, maxLineBytes, readyLine, writeCheck } from './checker-protocol.ts';

/** Why a file was not decoded: its decoder died, took too long, or ended before it could take a file. */
export type Failure = 'died' | 'late' | 'not started';

export class DecoderFailure extends Error {
  override readonly name = 'DecoderFailure';

  constructor(
    readonly failure: Failure,
    message: string,
  ) {
    super(message);
  }
}

export interface DecoderOptions {
  /** The walls that must hold around the decoder; undefined: start it without any. */
  readonly walls: () => ReadonlySet<Wall> | undefined;
  /** How long decoding one file may take. On a busy machine it may take at most `maxTimesLonger` as long. */
  readonly decodeMs: number;
  /** Tests pass another program. */
  readonly program?: DecoderProgram;
}

const maxTimesLonger = 3;

/** A decoder that once held more than this is replaced, because it seldom returns all of it. */
const enoughResidentBytes = 250_000_000;
/** A decoder is replaced after so much processor time, well before the kernel ends it. */
const enoughCpuMs = 240_000;

/** Whether a decoder is replaced that has held so much memory at once and worked so long. */
export function isUsedUp(heldBytes: number, cpuMs: number): boolean {
  return heldBytes > enoughResidentBytes || cpuMs > enoughCpuMs;
}

/** A decoding process. It starts with the first file, and again after it has ended. */
export class Decoder {
  #process: ChildProcess | undefined;
  #isEnded = false;
  #isBusy = false;

  constructor(private readonly options: DecoderOptions) {}

  /** Whether a file can be decoded whole. Call it for one file at a time. */
  async check(check: FileToCheck): Promise<boolean> {
    if (this.#isBusy || this.#isEnded) throw new Error('a decoder takes one file at a time, until its end');
    this.#isBusy = true;
    try {
      const program = this.options.program ?? (await decoderProgram());
      if (this.#isEnded) throw new Error('the decoder was ended');
      const { isWhole, mostResidentBytes, cpuMs } = await this.#ask(program, check);
      const held = mostHeldBytes(this.#process?.pid) ?? mostResidentBytes;
      if (isUsedUp(held, cpuMs)) this.#kill();
      return isWhole;
    } catch (error) {
      this.#kill();
      throw error;
    } finally {
      this.#isBusy = false;
    }
  }

  end(): void {
    this.#isEnded = true;
    this.#kill();
  }

  #ask(program: DecoderProgram, check: FileToCheck): Promise<Checked> {
    let isReady = this.#process !== undefined;
    const child = this.#running(program);
    const output = child.stdout as Socket;
    let received = '';
    return new Promise((resolve, reject) => {
      const { decodeMs } = this.options;
      const leftMs = timeLeft(child.pid, decodeMs);
      const checkTime = () => {
        const left = leftMs();
        if (left > 0) timer = setTimeout(checkTime, left);
        else fail('late', `a file took more than ${decodeMs} ms`);
      };
      let timer = setTimeout(checkTime, decodeMs);
      const onOutput = (bytes: Buffer) => {
        received += bytes.toString('latin1');
        // The decoder writes its walls' line, if it has walls, and then the ready line.
        const ready = isReady ? -1 : received.indexOf(readyLine);
        if (ready !== -1) {
          if (!this.#holds(received.slice(0, ready))) return fail('not started', 'a wall does not hold');
          isReady = true;
          received = received.slice(ready + readyLine.length);
        }
        const end = received.indexOf('\n');
        if (!isReady || end === -1) {
          if (received.length > 2 * maxLineBytes) fail('died', 'the decoder wrote nonsense');
          return;
        }
        const answer = fromLine(received.slice(0, end));
        if (answer === undefined) fail('died', 'the decoder wrote nonsense');
        else settle(() => resolve(answer));
      };
      const onEnd = () => fail(isReady ? 'died' : 'not started', 'the decoder ended');
      const fail = (...why: [Failure, string]) => settle(() => reject(new DecoderFailure(...why)));
      const settle = (then: () => void) => {
        clearTimeout(timer);
        output.off('data', onOutput);
        child.off('exit', onEnd).off('error', onEnd);
        then();
      };
      output.on('data', onOutput);
      child.on('exit', onEnd).on('error', onEnd);
      writeCheck(child.stdin as Writable, check);
    });
  }

  /** Whether the walls that must hold are in a decoder's first line. */
  #holds(line: string): boolean {
    const held = readWalls(line.trim());
    return [...(this.options.walls() ?? [])].every((wall) => held.has(wall));
  }

  #running(program: DecoderProgram): ChildProcess {
    if (this.#process !== undefined) return this.#process;
    const child = startDecoder(program, this.options.walls() !== undefined);
    child.on('exit', () => this.#forget(child)).on('error', () => this.#forget(child));
    // Writing to a process that ended fails, and its `exit` is handled separately.
    const [input, output] = [child.stdin as Socket, child.stdout as Socket];
    input.on('error', () => undefined);
    output.on('error', () => undefined);
    // It ends with this process, and must not keep it from ending.
    child.unref();
    input.unref();
    output.unref();
    this.#process = child;
    return child;
  }

  #forget(child: ChildProcess): void {
    if (this.#process === child) this.#process = undefined;
  }

  #kill(): void {
    const child = this.#process;
    this.#process = undefined;
    child?.kill('SIGKILL');
  }
}

/** Returns how much longer a process may work, given `mostMs` of processor time and a multiple of it in all. */
function timeLeft(pid: number | undefined, mostMs: number): () => number {
  const beganAt = performance.now();
  const used = () => (pid === undefined ? undefined : processorTimeMs(pid));
  const usedBefore = used();
  return () => {
    const tookMs = performance.now() - beganAt;
    const usedNow = used();
    const workedMs = usedBefore === undefined || usedNow === undefined ? tookMs : usedNow - usedBefore;
    return Math.min(mostMs - workedMs, maxTimesLonger * mostMs - tookMs);
  };
}

/** Linux reports processor time in hundredths of a second, on every machine. */
const tickMs = 10;

/** The processor time of a process with all its threads; undefined if the system does not show it. */
function processorTimeMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The program's name may contain anything. The other fields begin after the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isSafeInteger(ticks) ? ticks * tickMs : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The most memory that a process has held since its program began; undefined if the system does not show it. The figure that it
 * has of itself begins with the memory of the process that started it, so in a large gateway every decoder would look large.
 */
function mostHeldBytes(pid: number | undefined): number | undefined {
  if (pid === undefined) return undefined;
  try {
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    return kilobytes === undefined ? undefined : 1_024 * Number(kilobytes);
  } catch {
    return undefined;
  }
}

/** Walls around a decoder, in the order they are built. docs/operations/configure.md says what each prevents. */
export const wallNames = ['limits', 'user-namespace', 'no-privileges', 'files', 'system-calls'] as const;
export type Wall = (typeof wallNames)[number];

/** The walls that suffice to contain a decoder. The user namespace adds to them if the kernel allows one. */
export const neededWalls: readonly Wall[] = ['limits', 'no-privileges', 'files', 'system-calls'];

/** Since version 24, Node maps memory for compiled code that the kernel counts as data, used or not. */
const codeRangeBytes = Number.parseInt(process.versions.node, 10) >= 24 ? 540_000_000 : 0;
/** Memory for the largest image, in addition to Node's own. */
const maxDataBytes = 800_000_000 + codeRangeBytes;
/** The limit of a decoder's processor time. It is replaced earlier, see `enoughCpuMs`. */
const maxCpuSeconds = 300;

const perl = '/usr/bin/perl';
const builder = fileURLToPath(new URL('./walls.pl', import.meta.url));

/** Whether this system can have walls at all. */
export function canBuildWalls(): boolean {
  return existsSync(perl);
}

/** Builds the walls around nothing, and returns those that hold here. */
export async function tryWalls(): Promise<ReadonlySet<Wall>> {
  if (!canBuildWalls()) return new Set();
  const args = [builder, ...wallArguments([])];
  const line = await new Promise<string>((resolve) => {
    execFile(perl, args, { env: {}, timeout: 5_000 }, (error, stdout) => resolve(error === null ? stdout : ''));
  });
  return readWalls(line.trim());
}

/** Reads the line of walls, which comes before a program's own output. */
function readWalls(line: string): ReadonlySet<Wall> {
  const names = new Set(line.split(' '));
  return new Set(wallNames.filter((name) => names.has(name)));
}

/**
 * Starts a decoding program, behind walls unless `walled` is false, with an empty environment. It reads files from its
 * input and writes its walls' line and then answers to its output. Tests pass another `wallBuilder`.
 */
export function startDecoder(program: DecoderProgram, walled: boolean, wallBuilder = builder): ChildProcess {
  const node = [process.execPath, '--max-old-space-size=64', ...program.args];
  const launcher = [perl, wallBuilder, ...wallArguments(program.reads)];
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
    // It has ended already. Its starter notices.
  }
}

/** A walled program can read only its own files, Node, and the system's libraries. */
function wallArguments(own: readonly string[]): string[] {
  const reads = [...systemReads, realpathSync(process.execPath), ...own].filter((path) => existsSync(path));
  return [String(process.pid), String(maxDataBytes), String(maxCpuSeconds), ...reads, '--'];
}

/** A program for Node to run, and the files it must be able to read. */
export interface DecoderProgram {
  readonly args: readonly string[];
  readonly folder: string;
  /** Files and folders. */
  readonly reads: readonly string[];
}

const here = dirname(fileURLToPath(import.meta.url));
/** `.js` in a built gateway. */
const extension = extname(import.meta.url);
const entry = join(here, `checker-process${extension}`);
/** The folder of the gateway's code. */
const sources = dirname(here);

/** The files Node itself reads when it starts. That of Debian has parts of its own code in /usr/share/nodejs. */
const systemReads = [
  ...['/lib', '/lib64', '/usr/lib', '/usr/lib64', '/usr/local/lib', '/usr/share/nodejs', '/etc/ld.so.cache'],
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
  const folder = dirname(packages);
  // These tell Node that code consists of modules. There are two if `node_modules` is a link, and Node 24 ends without either.
  const packageFiles = [dirname(sources), folder].map((each) => join(each, 'package.json'));
  if (extension === '.js') return { args: [entry], folder, reads: [sources, packages, ...packageFiles] };
  // A TypeScript runner starts processes and writes files, which a decoder may not. So the program is translated here.
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
  const args = ['--input-type=module', '--eval', built.outputFiles[0]?.text ?? ''];
  return { args, folder, reads: [packages, ...packageFiles] };
}

function packagesFolder(): string {
  const name = 'node_modules';
  const sharp = createRequire(import.meta.url).resolve('sharp');
  return sharp.slice(0, sharp.lastIndexOf(`/${name}/`) + name.length + 1);
}
