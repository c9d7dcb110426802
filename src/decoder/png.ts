import { crc32 } from 'node:zlib';
import { checkShape, type ImageShape, InvalidImage } from './jpeg-segments.ts';

export const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const headerBytes = 13;
/** Length, type and checksum around a chunk's data. */
const aroundBytes = 12;
/** Encoders write some hundreds. */
const maxChunks = 4_096;

/** The samples of a pixel, by color type. */
const samplesOf: Readonly<Record<number, number>> = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 };
export const paletteColor = 3;
const sampleDepths: readonly number[] = [1, 2, 4, 8, 16];

/** The chunks of an animation, of which only the first picture would be checked. */
const animated: ReadonlySet<string> = new Set(['acTL', 'fcTL', 'fdAT']);

export interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

/** A PNG file whose chunks are whole. */
export interface Png extends ImageShape {
  readonly chunks: readonly Chunk[];
  /** About how many bytes its rows have before compression; a few more if it is interlaced. */
  readonly rowBytes: number;
}

/**
 * Reads the chunks of a PNG, up to IEND, behind which there is nothing. The checksums of critical chunks must be correct.
 * Whether the chunks make a picture is for libvips to say. Throws `InvalidImage`.
 */
export function readPng(file: Buffer): Png {
  if (!file.subarray(0, signature.length).equals(signature)) throw new InvalidImage('The file is not a PNG image.');
  const chunks = [...readChunks(file)];
  const header = readHeader(chunks);
  checkShape(header);
  if (chunks.some(({ type }) => animated.has(type))) throw new InvalidImage('The image is animated.');
  if (!chunks.some(({ type }) => type === 'IDAT')) throw damagedPng();
  // No program writes anything behind the end, and it could be another file.
  const end = chunks.findIndex(({ type }) => type === 'IEND');
  if (end !== chunks.length - 1 || chunks[end]?.data.length !== 0) throw damagedPng();
  return { ...header, chunks };
}

function* readChunks(file: Buffer): Generator<Chunk> {
  let at = signature.length;
  for (let count = 0; at < file.length; count += 1) {
    if (count === maxChunks) throw new InvalidImage('The PNG file has too many chunks. Save it as an ordinary PNG.');
    if (file.length - at < aroundBytes) throw damagedPng();
    const end = at + aroundBytes + file.readUInt32BE(at);
    if (end > file.length) throw damagedPng();
    const type = file.toString('latin1', at + 4, at + 8);
    if (isCritical(type) && crc32(file.subarray(at + 4, end - 4)) !== file.readUInt32BE(end - 4)) throw damagedPng();
    yield { type, data: file.subarray(at + 8, end - 4) };
    at = end;
  }
}

/** The case of a type's first letter says it. Decoders must understand a critical chunk, and ignore others. */
function isCritical(type: string): boolean {
  return type.charAt(0) <= 'Z';
}

function readHeader(chunks: readonly Chunk[]): Omit<Png, 'chunks'> {
  const [chunk] = chunks;
  if (chunk?.type !== 'IHDR' || chunk.data.length !== headerBytes) throw damagedPng();
  const width = chunk.data.readUInt32BE(0);
  const height = chunk.data.readUInt32BE(4);
  const [depth = 0, color = 0, , , interlace = 0] = chunk.data.subarray(8);
  const samples = samplesOf[color];
  if (samples === undefined || !sampleDepths.includes(depth) || width === 0 || height === 0) throw damagedPng();
  const rowBytes = height * (1 + Math.ceil((width * samples * depth) / 8));
  // libvips holds all pixels of an interlaced image, in whole bytes, with the colours of the palette and with transparency.
  const alpha = chunks.some(({ type }) => type === 'tRNS') ? 1 : 0;
  const heldSamples = (color === paletteColor ? 3 : samples) + alpha;
  const decodingBytes = interlace === 0 ? 0 : width * height * heldSamples * Math.ceil(depth / 8);
  return { width, height, decodingBytes, rowBytes };
}

export function damagedPng(): InvalidImage {
  return new InvalidImage('The PNG file is damaged, not whole, or has something behind its end.');
}
