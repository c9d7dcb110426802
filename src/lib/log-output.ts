import { write } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { atMost } from './at-most.ts';

/** How much may wait to be written, in characters: seconds of a busy gateway's lines. Lines beyond it are dropped. */
const mostWaiting = 4 * 1024 * 1024;
const mostAtOnce = 256 * 1024;
/** After a write failed it is tried again, first this soon, then after twice the time, at most after the longest. */
const firstRetryMs = 5;
const longestRetryMs = 250;
/** A write that gets nowhere for this long means trouble. */
const stuckAfterMs = 2_000;

/**
 * Writes lines to a file descriptor without ever making the process wait or end. Lines wait in memory, in order and
 * bounded. A write that fails is tried again for as long as the process lives: the disk may get room, the reader may
 * wake up. Lines that find no room are dropped and counted, and go nowhere else.
 */
export class LogOutput {
  /** The lines that wait; those that are being written are no longer among them, but count. */
  #lines: string[] = [];
  #waiting = 0;
  #dropped = 0;
  /** Dropped lines that have been reported. */
  #reported = 0;
  /** Since when a write has been getting nowhere. */
  #startedAt: number | undefined;
  #writing: Promise<void> | undefined;

  constructor(
    private readonly fd: number,
    /** Reports, when lines can be written again, how many were dropped since the last report. */
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

  /** Takes a line with its line end. Returns at once and never throws. */
  write(line: string): void {
    if (this.#waiting + line.length > mostWaiting) {
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
    while (count < this.#lines.length && length < mostAtOnce) {
      length += this.#lines[count]?.length ?? 0;
      count += 1;
    }
    return this.#lines.splice(0, count).join('');
  }

  /** Writes all of it, however often that takes: half a line would spoil the next one. */
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
        // A log that cannot be written keeps no process from ending.
        await delay(retryMs, undefined, { ref: false });
        retryMs = Math.min(retryMs * 2, longestRetryMs);
      }
    }
    this.#startedAt = undefined;
  }

  /** Answers how many bytes could be written; none when it failed, for whatever reason. */
  #writeSome(bytes: Buffer): Promise<number> {
    return new Promise((resolve) => {
      write(this.fd, bytes, 0, bytes.length, null, (error, count) => resolve(error === null ? count : 0));
    });
  }
}

/**
 * The process's standard output, for its log.
 *
 * A reader that hangs must not hang a thread, or the process cannot even exit. So a pipe or a socket must not block, and
 * that is what Node makes of it when `process.stdout` is first used. A file that has reached the size limit of the
 * process is like a full disk, and no reason to end.
 */
export function standardOutput(report: (dropped: number) => void): LogOutput {
  process.on('SIGXFSZ', () => undefined);
  return new LogOutput(process.stdout.fd, report);
}
