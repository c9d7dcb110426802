import { crc32, createInflate } from 'node:zlib';
import { decode, decodeRed } from './libvips.ts';
import { type Chunk, damagedPng, type Png, paletteColor, readPng, signature } from './png.ts';

/** Large pieces, because many calls for small ones take longer than the decompression. */
const pixelPieceBytes = 1_048_576;
const usualPieceBytes = 16_384;

/**
 * The bytes that all metadata together may inflate to: libpng's default for one chunk. Colour profiles have some
 * megabytes.
 */
const maxMetadataBytes = 8_000_000;

/** Whether all pixels of a PNG are in the file, and nothing in it inflates beyond bounds. Throws `InvalidImage` if not. */
export async function isWholePng(file: Buffer): Promise<boolean> {
  const png = readPng(file);
  await checkMetadata(png.chunks);
  const warnings = await decode(file, png);
  // libpng reads on to the end of the zlib stream, and only warns of what it finds behind the last row.
  if (warnings.some((warning) => warning.startsWith('IDAT: '))) await checkPixelData(png);
  await checkColors(png);
  return true;
}

/**
 * Checks that the compressed pixels end with their checksum, and do not inflate to much more than their rows. They are in the
 * first IDAT chunks that have no others between them.
 */
async function checkPixelData(png: Png): Promise<void> {
  const inflated = await inflateUpTo(2 * png.rowBytes + pixelPieceBytes, pixelParts(png), pixelPieceBytes);
  if (!inflated.isWhole) throw damagedPng();
}

function pixelParts({ chunks }: Png): Buffer[] {
  const first = chunks.findIndex(({ type }) => type === 'IDAT');
  const length = chunks.slice(first).findIndex(({ type }) => type !== 'IDAT');
  return chunks.slice(first, first + length).map(({ data }) => data);
}

/**
 * Checks that a palette has the colours of all pixels. libpng makes up the others, and does not warn of it if it returns colours.
 * So the pixels are decoded again with a full palette, in which only the missing colours are white.
 */
async function checkColors(png: Png): Promise<void> {
  const header = png.chunks[0]?.data ?? Buffer.alloc(0);
  const [depth = 0, color = 0] = header.subarray(8);
  const known = png.chunks.find(({ type }) => type === 'PLTE')?.data.length ?? 0;
  const full = 3 * 2 ** depth;
  if (color !== paletteColor || known >= full) return;
  const palette = Buffer.alloc(full).fill(white, known);
  const parts = pixelParts(png).map((data) => toChunk('IDAT', data));
  const file = [
    signature,
    toChunk('IHDR', header),
    toChunk('PLTE', palette),
    ...parts,
    toChunk('IEND', Buffer.alloc(0)),
  ];
  const red = await decodeRed(Buffer.concat(file));
  if (red.includes(white)) throw damagedPng();
}

const white = 0xff;

function toChunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.concat([Buffer.alloc(4), Buffer.from(type, 'latin1'), data, Buffer.alloc(4)]);
  bytes.writeUInt32BE(data.length);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), bytes.length - 4);
  return bytes;
}

/** Checks that compressed texts and profiles do not inflate beyond a bound. Damage in them does not matter. */
async function checkMetadata(chunks: readonly Chunk[]): Promise<void> {
  let left = maxMetadataBytes;
  for (const chunk of chunks) {
    const compressed = compressedPart(chunk);
    if (compressed !== undefined) left -= (await inflateUpTo(left, [compressed])).bytes;
  }
}

/** The compressed part of a text or profile: behind the name, and for `iTXt` behind a language and a translated name. */
function compressedPart({ type, data }: Chunk): Buffer | undefined {
  if (type !== 'iCCP' && type !== 'zTXt' && type !== 'iTXt') return undefined;
  const nameEnd = data.indexOf(0);
  if (nameEnd === -1) return undefined;
  if (type !== 'iTXt') return data.subarray(nameEnd + 2);
  const isCompressed = data[nameEnd + 1] === 1;
  const languageEnd = data.indexOf(0, nameEnd + 3);
  const translationEnd = languageEnd === -1 ? -1 : data.indexOf(0, languageEnd + 1);
  return isCompressed && translationEnd !== -1 ? data.subarray(translationEnd + 1) : undefined;
}

interface Inflated {
  readonly bytes: number;
  /** Whether the stream has its end, and the right checksum. */
  readonly isWhole: boolean;
}

/** Inflates a zlib stream, and keeps nothing. Throws `InvalidImage` if it inflates to more than `maxBytes`. */
async function inflateUpTo(maxBytes: number, parts: readonly Buffer[], chunkSize = usualPieceBytes): Promise<Inflated> {
  const inflate = createInflate({ chunkSize });
  for (const part of parts) inflate.write(part);
  inflate.end();
  let bytes = 0;
  try {
    for await (const piece of inflate as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > maxBytes) break;
    }
  } catch {
    return { bytes, isWhole: false };
  }
  if (bytes > maxBytes) throw damagedPng();
  return { bytes, isWhole: true };
}
