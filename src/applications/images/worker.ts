import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type Check, type Checked, writeCheck } from './checker-protocol.ts';

/** `.js` where the gateway was built. */
const extension = extname(import.meta.url);
const entry = fileURLToPath(new URL(`./checker-process${extension}`, import.meta.url));
const loader = extension === '.ts' ? ['--import', import.meta.resolve('tsx')] : [];

/** The process that decodes ended over a file. */
export class DecoderDied extends Error {
  override readonly name = 'DecoderDied';
}

/** A file was not decoded in its time. */
export class DecoderLate extends Error {
  override readonly name = 'DecoderLate';
}

/** One process that decodes, started when it is first needed and again when it has ended. */
export class CheckerWorker {
  #process: ChildProcess | undefined;
  #isEnded = false;
  #isBusy = false;

  constructor(
    private readonly decodeMs: number,
    private readonly mostResidentBytes: number,
  ) {}

  /** Whether a file can be decoded whole. One at a time. */
  async check(check: Check): Promise<boolean> {
    if (this.#isBusy || this.#isEnded) throw new Error('a decoder takes one file at a time, until its end');
    this.#isBusy = true;
    try {
      const { isWhole, residentBytes } = await this.#ask(check);
      if (residentBytes > this.mostResidentBytes) this.#kill();
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

  #ask(check: Check): Promise<Checked> {
    const child = this.#running();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(() => reject(new DecoderLate('the decoder took too long'))), this.decodeMs);
      const onMessage = (answer: unknown) => settle(() => resolve(answer as Checked));
      const onEnd = () => settle(() => reject(new DecoderDied('the decoder ended')));
      const settle = (then: () => void) => {
        clearTimeout(timer);
        child.off('message', onMessage).off('exit', onEnd).off('error', onEnd);
        then();
      };
      child.on('message', onMessage).on('exit', onEnd).on('error', onEnd);
      writeCheck(child.stdin as Writable, check);
    });
  }

  #running(): ChildProcess {
    if (this.#process !== undefined) return this.#process;
    const child = fork(entry, [], {
      execArgv: [...loader, '--max-old-space-size=64'],
      // No setting and no secret of ours; and the decoder must not put a large picture into a file.
      env: { VIPS_DISC_THRESHOLD: '100g' },
      stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
    });
    child.on('exit', () => this.#forget(child)).on('error', () => this.#forget(child));
    // A process that no longer reads is one that ended, which is heard of.
    const input = child.stdin as Socket;
    input.on('error', () => undefined);
    // It ends with us; it must not keep us from ending.
    child.unref();
    child.channel?.unref();
    input.unref();
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
