export const marker = {
  start: 0xd8,
  end: 0xd9,
  scan: 0xda,
  numberOfLines: 0xdc,
  restartInterval: 0xdd,
  baseline: 0xc0,
  extended: 0xc1,
  progressive: 0xc2,
  arithmetic: 0xc9,
  progressiveArithmetic: 0xca,
  firstFrame: 0xc0,
  lastFrame: 0xcf,
  huffmanTables: 0xc4,
  reserved: 0xc8,
  arithmeticTables: 0xcc,
  firstRestart: 0xd0,
  lastRestart: 0xd7,
  firstApplication: 0xe0,
  application1: 0xe1,
  lastApplication: 0xef,
  comment: 0xfe,
  temporary: 0x01,
} as const;

export interface Segment {
  /** The second byte of its marker. */
  readonly code: number;
  /** The bytes after its length. */
  readonly body: Buffer;
  /** The bytes between the header of a scan and the next marker; empty for any other segment. */
  readonly data: Buffer;
  readonly end: number;
}

const nothing = Buffer.alloc(0);

/** Encoders write some dozens. */
const maxSegments = 4_096;

/**
 * Reads the segments of the picture at `from`, to its end marker. As decoders do, it skips all bytes before a marker, and
 * markers without content. Throws `InvalidImage` if the file ends first.
 */
export function* readSegments(file: Buffer, from = 0): Generator<Segment, void, undefined> {
  if (file[from] !== 0xff || file[from + 1] !== marker.start) throw new InvalidImage('The file is not a JPEG image.');
  let at = from + 2;
  for (let count = 0; count < maxSegments; count += 1) {
    at = findMarker(file, at) + 1;
    const code = file[at - 1] ?? 0;
    if (code === marker.end) return yield { code, body: nothing, data: nothing, end: at };
    if (isRestart(code) || code === marker.temporary) continue;
    // Decoders end at a code below the first frame, which is reserved, and at a second start.
    if (code < marker.firstFrame || code === marker.start) throw damagedJpeg();
    const bodyEnd = segmentEnd(file, at, code);
    const end = code === marker.scan ? scanEnd(file, bodyEnd) : bodyEnd;
    yield { code, body: file.subarray(at + 2, bodyEnd), data: file.subarray(bodyEnd, end), end };
    at = end;
  }
  throw new InvalidImage('The JPEG file has too many segments. Save it as an ordinary JPEG.');
}

export function isFrame(code: number): boolean {
  const isTable = code === marker.huffmanTables || code === marker.reserved || code === marker.arithmeticTables;
  return code >= marker.firstFrame && code <= marker.lastFrame && !isTable;
}

/** Metadata changes no pixel. Its damage would only add warnings. */
export function isMetadata(code: number): boolean {
  return code === marker.comment || (code >= marker.firstApplication && code <= marker.lastApplication);
}

export function isRestart(code: number): boolean {
  return code >= marker.firstRestart && code <= marker.lastRestart;
}

export function damagedJpeg(): InvalidImage {
  return new InvalidImage('The JPEG file is damaged, not whole, or has something behind its end.');
}

/** The position of the next marker's code. 0xff 0x00 is no marker, and further 0xff bytes may precede a code. */
function findMarker(file: Buffer, from: number): number {
  for (let at = from; ; at += 1) {
    at = file.indexOf(0xff, at);
    if (at === -1) throw damagedJpeg();
    while (file[at] === 0xff) at += 1;
    if (at >= file.length) throw damagedJpeg();
    if (file[at] !== 0) return at;
  }
}

/** Of a segment that they skip, decoders skip at least the two bytes of its length, whatever it states. */
function segmentEnd(file: Buffer, at: number, code: number): number {
  if (at + 2 > file.length) throw damagedJpeg();
  const stated = file.readUInt16BE(at);
  const length = isSkipped(code) ? Math.max(2, stated) : stated;
  if (length < 2 || at + length > file.length) throw damagedJpeg();
  return at + length;
}

/** Whether decoders skip a segment that they do not use. */
function isSkipped(code: number): boolean {
  return isMetadata(code) || code === marker.numberOfLines;
}

/** Compressed pixels, and stray bytes behind them, end at a marker that is neither a restart nor reserved. */
function scanEnd(file: Buffer, from: number): number {
  for (let at = from; ; at += 1) {
    at = findMarker(file, at);
    const code = file[at] ?? 0;
    if (code >= marker.firstFrame && !isRestart(code)) return at - 1;
  }
}

export interface Component {
  /** Some programs give several components the same. */
  readonly id: number;
  /** Its samples across and down in each unit of the image. */
  readonly across: number;
  readonly down: number;
}

/** The frame header of a JPEG. */
export interface JpegFrame extends ImageShape {
  readonly isProgressive: boolean;
  /** A decoder of an arithmetic JPEG does not warn of missing bytes. */
  readonly isArithmetic: boolean;
  readonly components: readonly Component[];
  /** The memory of a decoder that must keep all coefficients until the last scan. */
  readonly coefficientBytes: number;
}

/** The kinds of frames that decoders know. The others are lossless or hierarchical. */
const sequentialFrames: ReadonlySet<number> = new Set([marker.baseline, marker.extended, marker.arithmetic]);
const progressiveFrames: ReadonlySet<number> = new Set([marker.progressive, marker.progressiveArithmetic]);

/** Reads the header of a frame. Throws `InvalidImage`. */
export function readFrame(code: number, body: Buffer): JpegFrame {
  const isProgressive = progressiveFrames.has(code);
  if (!sequentialFrames.has(code) && !isProgressive) throw unusual();
  const count = body[5] ?? 0;
  if (body.length !== 6 + 3 * count) throw damagedJpeg();
  if (body[0] !== 8 || ![1, 3, 4].includes(count)) throw unusual();
  const height = body.readUInt16BE(1);
  const width = body.readUInt16BE(3);
  // A height of zero means that a DNL segment has it. Hardly any program shows such a file.
  if (height === 0) throw unusual();
  if (width === 0) throw damagedJpeg();
  const components = readComponents(body);
  const coefficientBytes = coefficientBytesOf(components, width * height);
  const decodingBytes = isProgressive ? coefficientBytes : 0;
  const isArithmetic = code === marker.arithmetic || code === marker.progressiveArithmetic;
  return { width, height, components, isProgressive, isArithmetic, coefficientBytes, decodingBytes };
}

/** An image's number of units across and down. The largest component has its stated samples in each unit. */
function largestSampling(components: readonly Component[]): { readonly across: number; readonly down: number } {
  const across = Math.max(...components.map((component) => component.across));
  const down = Math.max(...components.map((component) => component.down));
  return { across, down };
}

function readComponents(body: Buffer): Component[] {
  const components: Component[] = [];
  for (let at = 6; at < body.length; at += 3) {
    const sampling = body[at + 1] ?? 0;
    const component = { id: body[at] ?? 0, across: sampling >> 4, down: sampling & 15 };
    const isSampled = component.across >= 1 && component.across <= 4 && component.down >= 1 && component.down <= 4;
    if (!isSampled) throw damagedJpeg();
    components.push(component);
  }
  return components;
}

/** An image's coefficients take two bytes each. */
function coefficientBytesOf(components: readonly Component[], pixels: number): number {
  const largest = largestSampling(components);
  return components.reduce(
    (sum, { across, down }) => sum + (2 * pixels * across * down) / (largest.across * largest.down),
    0,
  );
}

function unusual(): InvalidImage {
  return new InvalidImage('The JPEG file is of a kind that is not generally shown. Save it as an ordinary JPEG.');
}

/** The largest width and height of an image, in pixels. */
export const maxPixels = 8_000;

/** The most memory that the decoding of one image may take. */
const maxDecodingBytes = 400_000_000;

/** The facts in an image's headers, before any pixel is decoded. */
export interface ImageShape {
  readonly width: number;
  readonly height: number;
  /** How many bytes a decoder must hold at once: the whole image if it comes in several passes, else almost none. */
  readonly decodingBytes: number;
}

/** A file is not the image it should be. The message is for the partner. */
export class InvalidImage extends Error {
  override readonly name = 'InvalidImage';
}

/** Throws `InvalidImage` if an image is too wide, too high, or needs too much memory to decode. */
export function checkShape({ width, height, decodingBytes }: ImageShape): void {
  if (width > maxPixels || height > maxPixels) {
    throw new InvalidImage('The image is more than 8,000 pixels wide or high.');
  }
  if (decodingBytes > maxDecodingBytes) {
    throw new InvalidImage('The image takes too much memory to show. Save it as an ordinary JPEG.');
  }
}
