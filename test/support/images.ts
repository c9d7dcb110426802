import { randomBytes } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import sharp, { type JpegOptions, type Sharp } from 'sharp';

/** A picture of noise, so that its file is about as large as its pixels. */
export async function noisePng(width = 64, height = 64): Promise<Buffer> {
  return noise(width, height).png({ compressionLevel: 0 }).toBuffer();
}

export async function noiseJpeg(width = 64, height = 64, options: JpegOptions = {}): Promise<Buffer> {
  return noise(width, height)
    .jpeg({ quality: 95, ...options })
    .toBuffer();
}

/** Noise, to be encoded in some way. */
export function noise(width: number, height: number): Sharp {
  return sharp(randomBytes(width * height * 3), { raw: { width, height, channels: 3 } });
}

/** A picture of one colour: a small file, however many pixels. */
export function plain(width: number, height: number): Sharp {
  return sharp({ create: { width, height, channels: 3, background: 'green' } });
}

/** A JPEG that is not progressive and whose colours come one after another, each in a scan of its own. */
export async function layeredJpeg(width: number, height: number, colours: number): Promise<Buffer> {
  const grey = await plain(width, height).toColourspace('b-w').jpeg({ optimiseCoding: false }).toBuffer();
  const frame = grey.indexOf(Buffer.from([0xff, 0xc0]));
  const scan = grey.indexOf(Buffer.from([0xff, 0xda]));
  const ids = Array.from({ length: colours }, (_, index) => index + 1);
  const size = grey.subarray(frame + 4, frame + 9);
  const tables = grey.subarray(frame + 2 + grey.readUInt16BE(frame + 2), scan);
  const pixels = grey.subarray(scan + 2 + grey.readUInt16BE(scan + 2), -2);
  return Buffer.concat([
    grey.subarray(0, frame),
    Buffer.from([0xff, 0xc0, 0, 8 + 3 * colours]),
    size,
    Buffer.from([colours, ...ids.flatMap((id) => [id, 0x11, 0])]),
    tables,
    ...ids.flatMap((id) => [Buffer.from([0xff, 0xda, 0, 8, 1, id, 0, 0, 63, 0]), pixels]),
    grey.subarray(-2),
  ]);
}

export const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** A PNG chunk with its checksum. */
export function chunk(type: string, data: Uint8Array = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length);
  bytes.write(type, 4, 'latin1');
  bytes.set(data, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

export interface PngParts {
  width: number;
  height: number;
  depth?: number;
  color?: number;
  interlace?: number;
  /** The decompressed form of the pixels; by default black rows. */
  rows?: Buffer;
  /** The compressed pixels as they are, in place of `rows`. */
  data?: Buffer;
  before?: Buffer[];
  after?: Buffer[];
}

/** A PNG made by hand, right or wrong. */
export function handmadePng(parts: PngParts): Buffer {
  const { width, height, depth = 8, color = 2, interlace = 0, before = [], after = [] } = parts;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = depth;
  header[9] = color;
  header[12] = interlace;
  const data = parts.data ?? deflateSync(parts.rows ?? Buffer.alloc(height * (1 + width * 3)));
  return Buffer.concat([pngSignature, chunk('IHDR', header), ...before, chunk('IDAT', data), ...after, chunk('IEND')]);
}
