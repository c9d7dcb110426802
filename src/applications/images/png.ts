import { crc32, createInflate } from 'node:zlib';
import { checkShape, type ImageShape, InvalidImage } from './jpeg-segments.ts';

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const headerBytes = 13;
/** Length, type and checksum around a chunk's data. */
const aroundBytes = 12;

/** The samples of a pixel and their allowed depths, by color type. */
const colorTypes: Readonly<Record<number, { readonly samples: number; readonly depths: readonly number[] }>> = {
  0: { samples: 1, depths: [1, 2, 4, 8, 16] },
  2: { samples: 3, depths: [8, 16] },
  3: { samples: 1, depths: [1, 2, 4, 8] },
  4: { samples: 2, depths: [8, 16] },
  6: { samples: 4, depths: [8, 16] },
};
const paletteColor = 3;

/** The first column and row of each pass of an interlaced image, and the steps from there. */
const passes = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
] as const;

interface Rows {
  readonly count: number;
  /** The length of a row, with the filter byte before it. */
  readonly bytes: number;
}

/** A PNG file whose chunks are whole. */
export interface Png extends ImageShape {
  /** The compressed pixels. */
  readonly data: readonly Buffer[];
  /** The decompressed rows of each pass. An image that is not interlaced has one pass. */
  readonly rows: readonly Rows[];
}

/** Reads a PNG of one picture: whole chunks with correct checksums, up to IEND. Throws `invalid_document`. */
export function readPng(file: Buffer): Png {
  if (!file.subarray(0, signature.length).equals(signature)) throw new InvalidImage('The file is not a PNG image.');
  const chunks = [...readChunks(file)];
  const header = readHeader(chunks[0]);
  checkShape(header);
  checkOrder(chunks, header.isPalette);
  const data = chunks.filter(({ type }) => type === 'IDAT').map((chunk) => chunk.data);
  return { ...header, data };
}

interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

/** Encoders write some hundreds. */
const mostChunks = 4_096;

function* readChunks(file: Buffer): Generator<Chunk> {
  let at = signature.length;
  for (let count = 0; at < file.length; count += 1) {
    if (count === mostChunks) throw new InvalidImage('The PNG file has too many chunks. Save it as an ordinary PNG.');
    if (file.length - at < aroundBytes) throw damaged();
    const end = at + aroundBytes + file.readUInt32BE(at);
    if (end > file.length) throw damaged();
    if (crc32(file.subarray(at + 4, end - 4)) !== file.readUInt32BE(end - 4)) throw damaged();
    yield { type: file.toString('latin1', at + 4, at + 8), data: file.subarray(at + 8, end - 4) };
    at = end;
  }
}

function readHeader(chunk: Chunk | undefined): Omit<Png, 'data'> & { readonly isPalette: boolean } {
  if (chunk?.type !== 'IHDR' || chunk.data.length !== headerBytes) throw damaged();
  const width = chunk.data.readUInt32BE(0);
  const height = chunk.data.readUInt32BE(4);
  const [depth = 0, color = 0, compression, filter, interlace] = chunk.data.subarray(8);
  const pixel = colorTypes[color];
  if (pixel === undefined || !pixel.depths.includes(depth)) throw damaged();
  if (width === 0 || height === 0 || compression !== 0 || filter !== 0) throw damaged();
  if (interlace !== 0 && interlace !== 1) throw damaged();
  const bits = pixel.samples * depth;
  const isPalette = color === paletteColor;
  // Its rows are decompressed and checked in pieces, and none is kept.
  return { width, height, decodingBytes: 0, rows: rowsOf(width, height, bits, interlace === 1), isPalette };
}

function rowsOf(width: number, height: number, bits: number, isInterlaced: boolean): Rows[] {
  const sizes = isInterlaced
    ? passes.map(([left, top, right, down]) => [Math.ceil((width - left) / right), Math.ceil((height - top) / down)])
    : [[width, height]];
  return sizes
    .filter((size) => size.every((side) => side > 0))
    .map(([across = 0, count = 0]) => ({ count, bytes: 1 + Math.ceil((across * bits) / 8) }));
}

const knownCritical = new Set(['IHDR', 'PLTE', 'IDAT', 'IEND']);
/** The chunks of an animation, of which only the first picture would be checked. */
const animated = new Set(['acTL', 'fcTL', 'fdAT']);

function checkOrder(chunks: readonly Chunk[], isPalette: boolean): void {
  const types = chunks.map(({ type }) => type);
  if (types.some((type) => animated.has(type))) throw new InvalidImage('The image is animated.');
  if (types.some((type) => !/^[A-Za-z]{4}$/.test(type) || (isCritical(type) && !knownCritical.has(type)))) {
    throw damaged();
  }
  const first = types.indexOf('IDAT');
  const last = types.lastIndexOf('IDAT');
  const isOneRun = first !== -1 && types.slice(first, last + 1).every((type) => type === 'IDAT');
  const isOneEach = types.indexOf('IHDR', 1) === -1 && types.indexOf('PLTE') === types.lastIndexOf('PLTE');
  const palette = types.indexOf('PLTE');
  const paletteBytes = chunks[palette]?.data.length ?? 0;
  const isPaletteSized = paletteBytes > 0 && paletteBytes <= 768 && paletteBytes % 3 === 0;
  const hasPalette = palette === -1 ? !isPalette : palette < first && isPaletteSized;
  // Nothing may follow the end: no program writes there, and it could be another file.
  const isEnded = types.indexOf('IEND') === types.length - 1 && chunks.at(-1)?.data.length === 0;
  if (!isOneRun || !isOneEach || !hasPalette || !isEnded) throw damaged();
}

function isCritical(type: string): boolean {
  return type.charAt(0) <= 'Z';
}

function damaged() {
  return new InvalidImage('The PNG file is damaged, not whole, or has something behind its end.');
}

/** Large pieces, because many calls for small ones take longer than the decompression. */
const pieceBytes = 1_048_576;
/** The first byte of a row names its filter, 0 to 4. */
const lastFilter = 4;

/** Whether a PNG's compressed pixels are exactly the expected rows. Any value of a pixel is some colour. */
export async function arePixelsWhole({ data, rows }: Png): Promise<boolean> {
  const inflate = createInflate({ chunkSize: pieceBytes });
  for (const part of data) inflate.write(part);
  inflate.end();
  const lengths = rowLengths(rows);
  /** Bytes of the present row that are still to come; 0: its filter byte comes next. */
  let left = 0;
  try {
    for await (const piece of inflate as AsyncIterable<Buffer>) {
      for (let at = 0; at < piece.length; ) {
        if (left === 0) {
          const next = lengths.next();
          if (next.done || (piece[at] ?? 0) > lastFilter) return false;
          left = next.value;
        }
        const here = Math.min(left, piece.length - at);
        left -= here;
        at += here;
      }
    }
  } catch {
    return false;
  }
  // The decompressor ignores bytes after the end of the compressed stream.
  const given = data.reduce((sum, part) => sum + part.length, 0);
  return left === 0 && lengths.next().done === true && inflate.bytesWritten === given;
}

function* rowLengths(rows: Png['rows']): Generator<number, void> {
  for (const { count, bytes } of rows) for (let row = 0; row < count; row += 1) yield bytes;
}
