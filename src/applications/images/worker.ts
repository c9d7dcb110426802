import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { type Check, type Checked, fromLine, mostLineBytes, readyLine, writeCheck } from './checker-protocol.ts';
import { type DecoderProgram, decoderProgram, readWalls, startDecoder, type Wall } from './decoder-start.ts';

/** Why a file was not decoded: it ended its decoder, or took too long, or the decoder ended before it could take a file. */
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
  /** The walls that must hold around the decoder; undefined to start it without any. */
  readonly walls: () => ReadonlySet<Wall> | undefined;
  /**
   * How long a decoder may work on one file. On a busy machine that may take longer than this, at most
   * `mostTimesLonger` as long.
   */
  readonly decodeMs: number;
}

const mostTimesLonger = 3;

/** A decoder that once held more than this is replaced by a new one: it seldom gives all of it back. */
const enoughResidentBytes = 250_000_000;
/** A decoder is replaced after so much processor time, well before the kernel would end it. */
const enoughCpuMs = 240_000;

/** One process that decodes. It is started for the first file, and again after it has ended. */
export class CheckerWorker {
  readonly #options: DecoderOptions;
  #process: ChildProcess | undefined;
  #isEnded = false;
  #isBusy = false;

  constructor(options: DecoderOptions) {
    this.#options = options;
  }

  /** Whether a file can be decoded whole. One at a time. */
  async check(check: Check): Promise<boolean> {
    if (this.#isBusy || this.#isEnded) throw new Error('a decoder takes one file at a time, until its end');
    this.#isBusy = true;
    try {
      const program = await decoderProgram();
      if (this.#isEnded) throw new Error('the decoder was ended');
      const { isWhole, mostResidentBytes, cpuMs } = await this.#ask(program, check);
      if (mostResidentBytes > enoughResidentBytes || cpuMs > enoughCpuMs) this.#kill();
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

  #ask(program: DecoderProgram, check: Check): Promise<Checked> {
    let isReady = this.#process !== undefined;
    const child = this.#running(program);
    const output = child.stdout as Socket;
    let received = '';
    return new Promise((resolve, reject) => {
      const { decodeMs } = this.#options;
      const leftMs = timeLeft(child.pid, decodeMs);
      const checkTime = () => {
        const left = leftMs();
        if (left > 0) timer = setTimeout(checkTime, left);
        else fail('late', `a file took more than ${decodeMs} ms`);
      };
      let timer = setTimeout(checkTime, decodeMs);
      const onOutput = (bytes: Buffer) => {
        received += bytes.toString('latin1');
        // The line of its walls, or none, and the one that says that it is ready.
        const ready = isReady ? -1 : received.indexOf(readyLine);
        if (ready !== -1) {
          if (!this.#holds(received.slice(0, ready))) return fail('not started', 'a wall does not hold');
          isReady = true;
          received = received.slice(ready + readyLine.length);
        }
        const end = received.indexOf('\n');
        if (!isReady || end === -1) {
          if (received.length > 2 * mostLineBytes) fail('died', 'the decoder wrote nonsense');
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

  /** Whether the walls that must hold are among those a decoder was started behind. */
  #holds(line: string): boolean {
    const held = readWalls(line.trim());
    return [...(this.#options.walls() ?? [])].every((wall) => held.has(wall));
  }

  #running(program: DecoderProgram): ChildProcess {
    if (this.#process !== undefined) return this.#process;
    const child = startDecoder(program, this.#options.walls() !== undefined);
    child.on('exit', () => this.#forget(child)).on('error', () => this.#forget(child));
    // Writing to a process that ended fails, and its end is noticed by itself.
    const [input, output] = [child.stdin as Socket, child.stdout as Socket];
    input.on('error', () => undefined);
    output.on('error', () => undefined);
    // It ends with us, and must not keep us from ending.
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

/** Tells how much longer a process may work from now on, which has `mostMs` of processor time and a multiple in all. */
function timeLeft(pid: number | undefined, mostMs: number): () => number {
  const beganAt = performance.now();
  const used = () => (pid === undefined ? undefined : processorTimeMs(pid));
  const usedBefore = used();
  return () => {
    const tookMs = performance.now() - beganAt;
    const usedNow = used();
    const workedMs = usedBefore === undefined || usedNow === undefined ? tookMs : usedNow - usedBefore;
    return Math.min(mostMs - workedMs, mostTimesLonger * mostMs - tookMs);
  };
}

/** Linux counts processor time for its users in hundredths of a second, on every machine. */
const tickMs = 10;

/** The processor time that a process has used, with all its threads; undefined where the system does not say. */
function processorTimeMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The fields after the program's name, which may contain anything, begin behind the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    return Number.isSafeInteger(ticks) ? ticks * tickMs : undefined;
  } catch {
    return undefined;
  }
}
