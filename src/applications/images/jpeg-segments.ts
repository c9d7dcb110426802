import { InvalidImage } from './shape.ts';

export const marker = {
  start: 0xd8,
  end: 0xd9,
  scan: 0xda,
  quantizationTables: 0xdb,
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
  application1: 0xe1,
} as const;

/** One segment of a JPEG file. */
export interface Segment {
  /** The second byte of its marker. */
  readonly code: number;
  /** What follows its length. */
  readonly body: Buffer;
  /** The compressed pixels behind the header of a scan; empty for every other segment. */
  readonly data: Buffer;
  /** Where the next segment begins in the file. */
  readonly end: number;
}

const nothing = Buffer.alloc(0);

/** Programs write some dozens. */
const mostSegments = 4_096;

/**
 * Reads the segments of the picture whose first byte is at `from`, up to its end marker, which comes last.
 * Throws `InvalidImage` when the file ends before.
 */
export function* readSegments(file: Buffer, from = 0): Generator<Segment, void, undefined> {
  if (file[from] !== 0xff || file[from + 1] !== marker.start) throw new InvalidImage('The file is not a JPEG image.');
  let at = from + 2;
  for (let count = 0; count < mostSegments; count += 1) {
    at = skipFill(file, at);
    const code = file[at] ?? 0;
    at += 1;
    if (code === marker.end) return yield { code, body: nothing, data: nothing, end: at };
    // Restart markers stand inside scans, and what is below the first frame is reserved.
    if (code < marker.firstFrame || (code >= marker.firstRestart && code <= marker.start)) throw damagedJpeg();
    const bodyEnd = segmentEnd(file, at);
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

export function damagedJpeg(): InvalidImage {
  return new InvalidImage('The JPEG file is damaged, not whole, or has something behind its end.');
}

/** Skips zero bytes between segments, which some cameras write, and fill bytes. Returns where the marker's code is. */
function skipFill(file: Buffer, from: number): number {
  let at = from;
  while (file[at] === 0) at += 1;
  if (file[at] !== 0xff) throw damagedJpeg();
  while (file[at] === 0xff) at += 1;
  if (at >= file.length) throw damagedJpeg();
  return at;
}

function segmentEnd(file: Buffer, at: number): number {
  if (at + 2 > file.length) throw damagedJpeg();
  const length = file.readUInt16BE(at);
  if (length < 2 || at + length > file.length) throw damagedJpeg();
  return at + length;
}

/** Compressed pixels end at a marker that is neither a stuffed byte nor a restart. */
function scanEnd(file: Buffer, from: number): number {
  for (let at = from; at + 1 < file.length; at += 1) {
    if (file[at] !== 0xff) continue;
    const next = file[at + 1] ?? 0;
    if (next === 0xff) continue;
    if (next !== 0 && (next < marker.firstRestart || next > marker.lastRestart)) return at;
    at += 1;
  }
  throw damagedJpeg();
}
