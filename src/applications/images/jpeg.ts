import { checkShape, type ImageShape, invalidImage } from './shape.ts';

const marker = {
  start: 0xd8,
  end: 0xd9,
  scan: 0xda,
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
} as const;

/** Kinds of frames that decoders know; the rest are lossless, or in layers of several sizes. */
const sequentialFrames: ReadonlySet<number> = new Set([marker.baseline, marker.extended, marker.arithmetic]);
const progressiveFrames: ReadonlySet<number> = new Set([marker.progressive, marker.progressiveArithmetic]);
/** How many scans an image may come in. Programs write about ten; thousands would decode it thousands of times. */
const mostScans = 100;
/** How many pixels all scans together may go over: ten times the largest image there may be. */
const mostScannedPixels = 640_000_000;

/**
 * Reads a JPEG's segments from its start to its end: one picture that can be decoded, in scans that can be counted,
 * and nothing behind it. Throws `invalid_document`.
 */
export function readJpeg(file: Buffer): ImageShape {
  if (file.length < 4 || file[0] !== 0xff || file[1] !== marker.start) throw invalidImage();
  let frame: Frame | undefined;
  let scans = 0;
  for (let at = 2; ; ) {
    at = skipFill(file, at);
    const code = file[at] ?? 0;
    at += 1;
    if (code === marker.end) {
      if (frame === undefined || scans === 0 || at !== file.length) throw damaged();
      return frame;
    }
    // Markers without a length stand inside scans only.
    if (code < 0xc0 || (code >= 0xd0 && code <= marker.start)) throw damaged();
    const end = segmentEnd(file, at);
    if (isFrame(code)) {
      if (frame !== undefined) throw damaged();
      frame = readFrame(code, file.subarray(at + 2, end));
      checkShape(frame);
    }
    if (code === marker.scan) {
      if (frame === undefined) throw damaged();
      // The first scan decides whether a decoder holds all until the last.
      if (scans === 0) frame = readFirstScan(frame, file.subarray(at + 2, end));
      scans += 1;
      if (scans > mostScans || scans * frame.width * frame.height > mostScannedPixels) {
        throw invalidImage('The image comes in too many scans. Save it as an ordinary JPEG.');
      }
      at = skipScan(file, end);
    } else at = end;
  }
}

/** A marker may stand behind any number of its own first byte. Answers where its second one is. */
function skipFill(file: Buffer, from: number): number {
  if (file[from] !== 0xff) throw damaged();
  let at = from + 1;
  while (file[at] === 0xff) at += 1;
  if (at >= file.length) throw damaged();
  return at;
}

function segmentEnd(file: Buffer, at: number): number {
  if (at + 2 > file.length) throw damaged();
  const length = file.readUInt16BE(at);
  if (length < 2 || at + length > file.length) throw damaged();
  return at + length;
}

/** Compressed pixels go on until a marker that is neither a stuffed byte nor one that only restarts the decoder. */
function skipScan(file: Buffer, from: number): number {
  for (let at = from; ; at += 1) {
    at = file.indexOf(0xff, at);
    const next = file[at + 1];
    if (at === -1 || next === undefined) throw damaged();
    if (next === 0xff) continue;
    if (next !== 0 && (next < 0xd0 || next > 0xd7)) return at;
    at += 1;
  }
}

function isFrame(code: number): boolean {
  const isTable = code === marker.huffmanTables || code === marker.reserved || code === marker.arithmeticTables;
  return code >= marker.firstFrame && code <= marker.lastFrame && !isTable;
}

interface Frame extends ImageShape {
  readonly components: number;
  /** What the decoder holds where it must hold all coefficients until the last scan. */
  readonly coefficientBytes: number;
}

function readFrame(code: number, segment: Buffer): Frame {
  const isProgressive = progressiveFrames.has(code);
  if (!sequentialFrames.has(code) && !isProgressive) throw unusual();
  const components = segment[5] ?? 0;
  if (segment.length !== 6 + 3 * components) throw damaged();
  if (segment[0] !== 8 || ![1, 3, 4].includes(components)) throw unusual();
  const height = segment.readUInt16BE(1);
  const width = segment.readUInt16BE(3);
  if (height === 0 || width === 0) throw damaged();
  const coefficientBytes = coefficientBytesOf(segment, width * height);
  return { width, height, components, coefficientBytes, decodingBytes: isProgressive ? coefficientBytes : 0 };
}

/** A first scan that has not all colours leaves the rest to others, also where the image is not progressive. */
function readFirstScan(frame: Frame, segment: Buffer): Frame {
  if ((segment[0] ?? 0) >= frame.components) return frame;
  const layered = { ...frame, decodingBytes: frame.coefficientBytes };
  checkShape(layered);
  return layered;
}

/** What an image's coefficients take, two bytes each. */
function coefficientBytesOf(segment: Buffer, pixels: number): number {
  const areas = [];
  for (let at = 7; at < segment.length; at += 3) {
    const sampling = segment[at] ?? 0;
    const [across, down] = [sampling >> 4, sampling & 15];
    if (across < 1 || across > 4 || down < 1 || down > 4) throw damaged();
    areas.push({ across, down });
  }
  const widest = Math.max(...areas.map(({ across }) => across));
  const highest = Math.max(...areas.map(({ down }) => down));
  return areas.reduce((sum, { across, down }) => sum + (2 * pixels * across * down) / (widest * highest), 0);
}

function unusual() {
  return invalidImage('The JPEG file is of a kind that is not generally shown. Save it as an ordinary JPEG.');
}

function damaged() {
  return invalidImage('The JPEG file is damaged, not whole, or has something behind its end.');
}
