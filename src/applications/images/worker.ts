import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Check, Checked } from './checker-protocol.ts';

const entry = fileURLToPath(new URL('./checker-process.ts', import.meta.url));

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
  isBusy = false;

  constructor(
    private readonly decodeMs: number,
    private readonly mostResidentBytes: number,
  ) {}

  /** Whether a file can be decoded whole. One at a time. */
  async check(check: Check): Promise<boolean> {
    if (this.isBusy || this.#isEnded) throw new Error('a decoder takes one file at a time, until its end');
    this.isBusy = true;
    try {
      const { isWhole, residentBytes } = await this.#ask(check);
      if (residentBytes > this.mostResidentBytes) this.#kill();
      return isWhole;
    } catch (error) {
      this.#kill();
      throw error;
    } finally {
      this.isBusy = false;
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
      child.send(check, (error) => {
        if (error !== null) onEnd();
      });
    });
  }

  #running(): ChildProcess {
    if (this.#process !== undefined) return this.#process;
    const child = fork(entry, [], {
      execArgv: ['--import', import.meta.resolve('tsx'), '--max-old-space-size=64'],
      serialization: 'advanced',
      // No setting and no secret of ours; and the decoder must not put a large picture into a file.
      env: { VIPS_DISC_THRESHOLD: '100g' },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    child.on('exit', () => this.#forget(child)).on('error', () => this.#forget(child));
    // It ends with us; it must not keep us from ending.
    child.unref();
    child.channel?.unref();
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
