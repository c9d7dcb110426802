import { availableParallelism } from 'node:os';
import {
  canBuildWalls,
  Decoder,
  DecoderFailure,
  neededWalls,
  tryWalls,
  type Wall,
  wallNames,
} from '../../../decoder/decoder.ts';
import { readJpeg } from '../../../decoder/jpeg.ts';
import { type ImageShape, InvalidImage } from '../../../decoder/jpeg-segments.ts';
import { readPng } from '../../../decoder/png.ts';
import type { Logger } from '../../../kit/log.ts';
import { ApiError } from '../../edge/errors.ts';

export interface ImageCheckerOptions {
  readonly log: Logger;
  /** How many images are decoded at once, each in its own process. The default is two, or one on a small machine. */
  readonly workers?: number;
  /** How long an image may wait for its turn. */
  readonly waitMs?: number;
  /** How long decoding one image may take. On a busy machine it may take up to three times as long. */
  readonly decodeMs?: number;
  /** Whether decoders run behind the available walls, behind all of them or not at all, or without walls. */
  readonly walls?: WallsWanted;
}

/** A file with the headers of an image. */
export interface ImageFile {
  readonly content: Buffer;
  readonly mediaType: string;
  readonly shape: ImageShape;
}

type WallsWanted = 'auto' | 'required' | 'off';

interface Waiting {
  readonly partnerId: string;
  readonly image: ImageFile;
  readonly timer: NodeJS.Timeout;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** An image that needs more memory than this is decoded alone. */
const heavyBytes = 64_000_000;
const usualWaitMs = 50_000;
/** How many images may wait: of one partner, and in all. */
const maxWaiting = { ofPartner: 16, ofAll: 200 };
/** A whole JPEG of one pixel. */
const smallestJpeg = Buffer.from(
  '/9j/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/wAALCAABAAEBAREA/8QA' +
    'FAABAAAAAAAAAAAAAAAAAAAAB//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AP3//2Q==',
  'base64',
);
/** The same without the byte of its pixel. A decoder that only warns of it would pass cut files. */
const cutJpeg = Buffer.concat([smallestJpeg.subarray(0, -3), smallestJpeg.subarray(-2)]);
/** After each file a decoder rests this many times as long as it worked, because orders come first. */
const restFactor = 2;
const maxRestMs = 50;

/**
 * Checks whether files are whole images of their media type. It reads headers here, and decodes pixels in a few
 * low-priority processes behind walls, so a crafted file can harm only its decoder. Files never touch a disk. Waiting
 * partners share the decoders by time, and each has at most one file in a decoder.
 */
export class ImageChecker {
  readonly #turns = new Turns<Waiting>();
  readonly #workers: readonly Decoder[];
  readonly #tryDecoder: () => Promise<void>;
  /** Settles when the decoder was tried at the start, whether it works or not. */
  tried = Promise.resolve();
  /** Decoders that neither work nor rest. */
  readonly #free: Decoder[];
  /** The walls this machine offers; undefined until that is known. */
  #walls: ReadonlySet<Wall> | undefined;
  #isAlone = false;
  /** The partners whose file is in a decoder. */
  readonly #decodingOf = new Set<string>();
  #isClosed = false;

  constructor(private readonly options: ImageCheckerOptions) {
    const { workers, decodeMs = 10_000, walls } = options;
    const isWalled = walls !== 'off' && canBuildWalls();
    // On a small machine one decoder is enough, and leaves the other processor to orders.
    const decoder = { decodeMs, walls: () => (isWalled ? (this.#walls ?? new Set<Wall>()) : undefined) };
    const count = workers ?? (availableParallelism() > 2 ? 2 : 1);
    this.#workers = Array.from({ length: count }, () => new Decoder(decoder));
    this.#free = [...this.#workers];
    this.#tryDecoder = () => tryOnce(`${process.execPath} ${isWalled}`, () => new Decoder(decoder));
  }

  /** Finds the walls of this machine, which later decoders must have. Throws if all are required and some do not hold. */
  async start(): Promise<void> {
    const found = this.options.walls === 'off' ? new Set<Wall>() : await wallsOfMachine();
    this.#walls = found;
    const walls = [...found];
    const missing = neededWalls.filter((wall) => !found.has(wall));
    if (missing.length > 0 && this.options.walls === 'required') {
      throw new Error(`MARINA_DECODER_SANDBOX is "required", and this machine does not offer: ${missing.join(', ')}`);
    }
    if (missing.length === 0) this.options.log.info({ walls }, 'images are decoded behind walls');
    else this.options.log.warn({ walls, missing }, 'images are decoded without all walls');
    // Before the first document needs one.
    this.tried = this.#tryDecoder().catch((error: unknown) => {
      if (!this.#isClosed) this.options.log.error({ err: error }, 'images cannot be decoded on this machine');
    });
  }

  /** Whether each wall holds around the decoders; none before `start`. */
  get walls(): readonly (readonly [Wall, boolean])[] {
    const walls = this.#walls;
    return walls === undefined ? [] : wallNames.map((wall) => [wall, walls.has(wall)]);
  }

  /** How many images wait to be decoded. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /** How many decoders work or rest. */
  get decoding(): number {
    return this.#workers.length - this.#free.length;
  }

  /** Reads a file's headers, which is cheap. Throws `invalid_document`. */
  readHeaders(content: Buffer, mediaType: string): ImageFile {
    try {
      return { content, mediaType, shape: mediaType === 'image/png' ? readPng(content) : readJpeg(content) };
    } catch (error) {
      throw error instanceof InvalidImage ? new ApiError('invalid_document', { message: error.message }) : error;
    }
  }

  /**
   * Decodes an image when it is its partner's turn. Throws `invalid_document`, `rate_limited` if too many of the
   * partner's wait, and `service_unavailable` if it was not decoded in time.
   */
  async decode(image: ImageFile, partnerId: string): Promise<void> {
    this.checkRoom(partnerId);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(waiting), this.options.waitMs ?? usualWaitMs);
      const waiting: Waiting = { partnerId, image, timer, resolve, reject };
      this.#turns.add(partnerId, waiting);
      this.#startNext();
    });
  }

  close(): void {
    this.#isClosed = true;
    for (let next = this.#turns.peek(); next !== undefined; next = this.#turns.peek()) this.#giveUp(next);
    for (const worker of this.#workers) worker.end();
  }

  /** Throws `rate_limited` as `decode` would. A partner may have as many waiting as there is room left for others. */
  checkRoom(partnerId: string): void {
    const own = this.#turns.waitingOf(partnerId);
    const room = maxWaiting.ofAll - this.#turns.waiting;
    if (this.#isClosed || room <= 0) throw new ApiError('service_unavailable');
    const most = Math.min(maxWaiting.ofPartner, room);
    if (own < most) return;
    throw new ApiError('rate_limited', {
      limit: 'files',
      message: `The limit of ${most} files that wait to be checked is used up: ${own} wait. Nothing was done; send this one again in a second.`,
    });
  }

  #startNext(): void {
    for (;;) {
      // One partner's files must not occupy all decoders.
      const next = this.#turns.peek((partnerId) => !this.#decodingOf.has(partnerId));
      const worker = this.#free.at(-1);
      if (next === undefined || worker === undefined || this.#isAlone) return;
      const isHeavy = next.image.shape.decodingBytes > heavyBytes;
      if (isHeavy && this.decoding > 0) return;
      this.#isAlone = isHeavy;
      this.#turns.remove(next.partnerId, next);
      this.#free.pop();
      clearTimeout(next.timer);
      void this.#decode(worker, next);
    }
  }

  async #decode(worker: Decoder, { partnerId, image, resolve, reject }: Waiting): Promise<void> {
    const beganAt = performance.now();
    this.#decodingOf.add(partnerId);
    try {
      if (await worker.check({ file: image.content, mediaType: image.mediaType })) resolve();
      else reject(new ApiError('invalid_document', { message: 'The image cannot be decoded whole.' }));
    } catch (error) {
      reject(this.#refusal(error));
    } finally {
      this.#isAlone = false;
      this.#decodingOf.delete(partnerId);
      const tookMs = performance.now() - beganAt;
      this.#turns.charge(partnerId, tookMs);
      const giveBack = () => {
        this.#free.push(worker);
        this.#startNext();
      };
      setTimeout(giveBack, Math.min(restFactor * tookMs, maxRestMs)).unref();
    }
  }

  #refusal(error: unknown): ApiError {
    const failure = error instanceof DecoderFailure ? error.failure : undefined;
    if (failure === 'late') this.options.log.warn({ err: error }, 'a file took too long to decode');
    if (failure === 'not started' && !this.#isClosed) {
      this.options.log.error({ err: error }, 'the process that decodes images does not start');
    }
    if (failure !== 'died' || this.#isClosed) return new ApiError('service_unavailable', { cause: error });
    this.options.log.warn({ err: error }, 'a file ended the process that decodes');
    return new ApiError('invalid_document', { message: 'The image cannot be decoded.' });
  }

  #giveUp(waiting: Waiting): void {
    if (!this.#turns.remove(waiting.partnerId, waiting)) return;
    clearTimeout(waiting.timer);
    waiting.reject(new ApiError('service_unavailable', { cause: new Error('no decoder became free') }));
  }
}

let foundWalls: Promise<ReadonlySet<Wall>> | undefined;

/** The walls that this machine offers, looked for once in a process. */
function wallsOfMachine(): Promise<ReadonlySet<Wall>> {
  foundWalls ??= tryWalls();
  return foundWalls;
}

/** The trials of this process, by the program and whether it has walls: each gateway in a process would find the same. */
const trials = new Map<string, Promise<void>>();

/** Decodes images in a decoder that ends then, unless this process has done so before. Throws if the decoder does not work. */
function tryOnce(way: string, start: () => Decoder): Promise<void> {
  const trial = trials.get(way) ?? tryDecoder(start());
  trials.set(way, trial);
  return trial;
}

async function tryDecoder(decoder: Decoder): Promise<void> {
  const isWhole = (file: Buffer) => decoder.check({ file, mediaType: 'image/jpeg' });
  try {
    if (!(await isWhole(smallestJpeg))) throw new Error('the decoder does not decode an image of one pixel');
    if (await isWhole(cutJpeg)) throw new Error('the decoder takes a cut image for a whole one');
  } finally {
    decoder.end();
  }
}

interface Line<Item> {
  readonly items: Item[];
  /** The use of this partner, counted as if nobody had waited while it used nothing. */
  used: number;
}

/**
 * Items of many partners that wait for one resource. The partner with the least use comes next, so each gets the same
 * share while it waits, however many items it has and however long each takes.
 */
export class Turns<Item> {
  readonly #lines = new Map<string, Line<Item>>();
  #waiting = 0;
  /** The use of the partner that came last. A new partner starts here, so nobody saves up turns. */
  #usedByLast = 0;

  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(partnerId: string): number {
    return this.#lines.get(partnerId)?.items.length ?? 0;
  }

  add(partnerId: string, item: Item): void {
    const line = this.#lines.get(partnerId) ?? { items: [], used: 0 };
    if (line.items.length === 0) line.used = Math.max(line.used, this.#usedByLast);
    line.items.push(item);
    this.#lines.set(partnerId, line);
    this.#waiting += 1;
  }

  /** The next item, of the partners that may come. It stays until it is removed. */
  peek(mayCome: (partnerId: string) => boolean = () => true): Item | undefined {
    let next: Line<Item> | undefined;
    for (const [partnerId, line] of this.#lines) {
      if (line.items.length > 0 && mayCome(partnerId) && (next === undefined || line.used < next.used)) next = line;
    }
    return next?.items[0];
  }

  /** Removes an item. Returns false if it was removed before. */
  remove(partnerId: string, item: Item): boolean {
    const line = this.#lines.get(partnerId);
    const at = line?.items.indexOf(item) ?? -1;
    if (line === undefined || at === -1) return false;
    line.items.splice(at, 1);
    this.#usedByLast = Math.max(this.#usedByLast, line.used);
    this.#waiting -= 1;
    return true;
  }

  /** Adds the use of a removed item. */
  charge(partnerId: string, amount: number): void {
    const charged = this.#lines.get(partnerId);
    if (charged !== undefined) charged.used += amount;
    for (const [id, line] of this.#lines) {
      const isForgotten = line.items.length === 0 && (line.used <= this.#usedByLast || this.#waiting === 0);
      if (isForgotten) this.#lines.delete(id);
    }
  }
}
