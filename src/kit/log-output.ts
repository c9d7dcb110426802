import { write } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { atMost } from './at-most.ts';

/** The most characters that may wait: seconds of a busy gateway's lines. Further lines are dropped. */
const maxWaiting = 4 * 1024 * 1024;
const maxAtOnce = 256 * 1024;
/** The wait after a failed write. It doubles with each failure, up to the longest. */
const firstRetryMs = 5;
const longestRetryMs = 250;
/** A write without progress for this long means trouble. */
const stuckAfterMs = 2_000;

/**
 * Writes lines to a file descriptor and never blocks or ends the process. Lines wait in memory, in order and bounded. A
 * failed write is retried for ever. Lines that do not fit are dropped and counted.
 */
export class LogOutput {
  /** The waiting lines, without those being written. */
  #lines: string[] = [];
  #waiting = 0;
  #dropped = 0;
  /** Dropped lines that were reported. */
  #reported = 0;
  /** The start of the write that makes no progress. */
  #startedAt: number | undefined;
  #writing: Promise<void> | undefined;

  constructor(
    private readonly fd: number,
    /** Called when lines can be written again, with the number dropped since the last call. */
    private readonly report: (dropped: number) => void,
  ) {}

  /** How many lines were dropped since the process started. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Whether lines cannot be written now. */
  get isStuck(): boolean {
    return this.#startedAt !== undefined && performance.now() - this.#startedAt > stuckAfterMs;
  }

  /** Queues a line with its line end. Returns at once and never throws. */
  write(line: string): void {
    if (this.#waiting + line.length > maxWaiting) {
      this.#dropped += 1;
      return;
    }
    this.#waiting += line.length;
    this.#lines.push(line);
    this.#writing ??= this.#writeAll();
  }

  /** Waits until everything is written, at most the given time. */
  async flush(withinMs: number): Promise<void> {
    if (this.#writing !== undefined) await atMost(withinMs, this.#writing);
  }

  async #writeAll(): Promise<void> {
    // Lines of one turn of the event loop are written together.
    await new Promise(setImmediate);
    while (this.#lines.length > 0) {
      const lines = this.#takeLines();
      await this.#writeWhole(Buffer.from(lines));
      this.#waiting -= lines.length;
      const unreported = this.#dropped - this.#reported;
      this.#reported = this.#dropped;
      if (unreported > 0) this.report(unreported);
    }
    this.#writing = undefined;
  }

  #takeLines(): string {
    let length = 0;
    let count = 0;
    while (count < this.#lines.length && length < maxAtOnce) {
      length += this.#lines[count]?.length ?? 0;
      count += 1;
    }
    return this.#lines.splice(0, count).join('');
  }

  /** Writes all of it, in several writes if needed: half a line would spoil the next one. */
  async #writeWhole(bytes: Buffer): Promise<void> {
    let [written, retryMs] = [0, firstRetryMs];
    this.#startedAt = performance.now();
    while (written < bytes.length) {
      const count = await this.#writeSome(bytes.subarray(written));
      if (count > 0) {
        written += count;
        retryMs = firstRetryMs;
        this.#startedAt = performance.now();
      } else {
        // A log that cannot be written must not keep a process from ending.
        await delay(retryMs, undefined, { ref: false });
        retryMs = Math.min(retryMs * 2, longestRetryMs);
      }
    }
    this.#startedAt = undefined;
  }

  /** Resolves with the number of bytes written; 0 if the write failed. */
  #writeSome(bytes: Buffer): Promise<number> {
    return new Promise((resolve) => {
      write(this.fd, bytes, 0, bytes.length, null, (error, count) => resolve(error === null ? count : 0));
    });
  }
}

/**
 * The process's standard output, for its log.
 *
 * A reader that hangs must not hang a thread, or the process cannot exit. Node makes a pipe or a socket non-blocking when
 * `process.stdout` is first used. A file at the process's size limit counts as a full disk.
 */
export function standardOutput(report: (dropped: number) => void): LogOutput {
  process.on('SIGXFSZ', () => undefined);
  return new LogOutput(process.stdout.fd, report);
}
