import { availableParallelism } from 'node:os';
import { ApiError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { readJpeg } from './jpeg.ts';
import { readPng } from './png.ts';
import { type ImageShape, invalidImage } from './shape.ts';
import { CheckerWorker, DecoderDied, DecoderLate } from './worker.ts';

export interface ImageCheckerOptions {
  readonly log: Logger;
  /** How many images are decoded at once, each in a process of its own; by default two, or one on a small machine. */
  readonly workers?: number;
  /** How long an image may wait for its turn. */
  readonly waitMs?: number;
  /** How long the decoding of one image may take. */
  readonly decodeMs?: number;
  /** How many images may wait. */
  readonly mostWaiting?: number;
}

interface Waiting {
  readonly file: Buffer;
  readonly mediaType: string;
  readonly shape: ImageShape;
  readonly timer: NodeJS.Timeout;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** What needs more memory than this is decoded while nothing else is. */
const heavyBytes = 64_000_000;
/** A process that has grown beyond this is replaced by a new one, which gives the memory back. */
const mostResidentBytes = 250_000_000;
/**
 * After each file a decoder rests this many times as long as it worked, and no longer than that: what comes behind the
 * decoding, the way to the broker, is work of this process, and orders come first.
 */
const restFactor = 2;
const mostRestMs = 100;

/**
 * Tells whether files are the images they are said to be, whole and with nothing behind them. Headers are read here;
 * pixels are decoded in a few processes of their own, of lower priority: what a decoder takes of memory and time, and
 * what becomes of it over a crafted file, is not the gateway's. Files pass from memory to memory and never to a disk.
 */
export class ImageChecker {
  readonly #waiting: Waiting[] = [];
  readonly #workers: readonly CheckerWorker[];
  /** Those that neither work nor rest. */
  readonly #free: CheckerWorker[];
  readonly #waitMs: number;
  readonly #mostWaiting: number;
  #isAlone = false;
  #isClosed = false;

  constructor(private readonly options: ImageCheckerOptions) {
    // On a small machine one is enough, and leaves the other processor to orders.
    const { workers = availableParallelism() > 2 ? 2 : 1, decodeMs = 15_000 } = options;
    this.#waitMs = options.waitMs ?? 25_000;
    this.#mostWaiting = options.mostWaiting ?? 200;
    this.#workers = Array.from({ length: workers }, () => new CheckerWorker(decodeMs, mostResidentBytes));
    this.#free = [...this.#workers];
  }

  /** How many images wait to be decoded. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** How many decoders are taken. */
  get decoding(): number {
    return this.#workers.length - this.#free.length;
  }

  /** Throws `invalid_document`, or `service_unavailable` where it could not be found out. */
  async check(file: Buffer, mediaType: string): Promise<void> {
    const shape = mediaType === 'image/png' ? readPng(file) : readJpeg(file);
    if (this.#isClosed || this.#waiting.length >= this.#mostWaiting) throw new ApiError('service_unavailable');
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(waiting), this.#waitMs);
      const waiting: Waiting = { file, mediaType, shape, timer, resolve, reject };
      this.#waiting.push(waiting);
      this.#startNext();
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const waiting of [...this.#waiting]) this.#giveUp(waiting);
    for (const worker of this.#workers) worker.end();
  }

  #startNext(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (next === undefined || this.#free.length === 0 || this.#isAlone) return;
      const isHeavy = next.shape.decodingBytes > heavyBytes;
      if (isHeavy && this.decoding > 0) return;
      this.#isAlone = isHeavy;
      this.#waiting.shift();
      clearTimeout(next.timer);
      void this.#decode(this.#free.pop() as CheckerWorker, next);
    }
  }

  async #decode(worker: CheckerWorker, { file, mediaType, resolve, reject }: Waiting): Promise<void> {
    const beganAt = performance.now();
    try {
      if (await worker.check({ file, mediaType })) resolve();
      else reject(invalidImage('The image cannot be decoded whole.'));
    } catch (error) {
      if (error instanceof DecoderDied && !this.#isClosed) {
        this.options.log.warn({ err: error }, 'a file ended the process that decodes');
        reject(invalidImage('The image cannot be decoded.'));
      } else {
        if (error instanceof DecoderLate) this.options.log.warn({ err: error }, 'a file took too long to decode');
        reject(new ApiError('service_unavailable', { cause: error }));
      }
    } finally {
      this.#isAlone = false;
      const restMs = Math.min(restFactor * (performance.now() - beganAt), mostRestMs);
      setTimeout(() => this.#giveBack(worker), restMs).unref();
    }
  }

  #giveBack(worker: CheckerWorker): void {
    this.#free.push(worker);
    this.#startNext();
  }

  #giveUp(waiting: Waiting): void {
    const at = this.#waiting.indexOf(waiting);
    if (at === -1) return;
    this.#waiting.splice(at, 1);
    clearTimeout(waiting.timer);
    waiting.reject(new ApiError('service_unavailable', { cause: new Error('no decoder became free') }));
  }
}
