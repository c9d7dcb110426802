import { once } from 'node:events';
import { createDeflate, deflateSync } from 'node:zlib';
import { chunk, handmadePng, noiseJpeg, noisePng, plain } from '../images.ts';

/** A file to send, as it travels to the attacker's process. */
export interface SentFile {
  readonly type: 'image/png' | 'image/jpeg';
  readonly base64: string;
}

/** A PNG as large as may be: 8,000 × 8,000 pixels of 64 bits, 512 MB when decoded, in some 500 KB. */
export async function largePng(): Promise<SentFile> {
  const bytes = 8_000 * (1 + 8_000 * 8);
  return png(handmadePng({ width: 8_000, height: 8_000, depth: 16, color: 6, data: await deflatedZeros(bytes) }));
}

/** Pictures that are small on the wire and large, slow or strange to decode. */
export async function pictureBombs(): Promise<SentFile[]> {
  const small = await noiseJpeg(64, 64);
  const manyScans = await plain(6_000, 6_000).jpeg({ progressive: true, quality: 30 }).toBuffer();
  const scan = manyScans.subarray(manyScans.lastIndexOf(Buffer.from([0xff, 0xda])), -2);
  const text = chunk('zTXt', Buffer.concat([Buffer.from('a\0\0'), deflateSync(Buffer.alloc(50_000_000))]));
  const profile = chunk('iCCP', Buffer.concat([Buffer.from('a\0\0'), deflateSync(Buffer.alloc(50_000_000))]));
  const tiny = Buffer.concat(Array.from({ length: 30_000 }, () => chunk('tEXt', Buffer.from('a\0'))));
  const one = { width: 1, height: 1 };
  const interlaced = await deflatedZeros(40_000_000);
  return [
    png(handmadePng({ ...one, before: [text] })),
    png(handmadePng({ ...one, before: [profile] })),
    png(handmadePng({ ...one, before: [tiny] })),
    png(handmadePng({ width: 65_535, height: 65_535, rows: Buffer.alloc(1_000) })),
    png(handmadePng({ width: 2 ** 31 - 1, height: 1, rows: Buffer.alloc(1_000) })),
    png(handmadePng({ width: 3_600, height: 3_600, interlace: 1, data: interlaced })),
    // More pixels than it says it has.
    png(handmadePng({ ...one, data: await deflatedZeros(200_000_000) })),
    png((await noisePng()).subarray(0, 2_000)),
    jpeg(small.subarray(0, small.length / 2)),
    jpeg(claims(small, 65_535, 65_535)),
    jpeg(claims(small, 8_000, 8_000)),
    jpeg(
      Buffer.concat([manyScans.subarray(0, -2), ...Array.from({ length: 200 }, () => scan), manyScans.subarray(-2)]),
    ),
  ];
}

/** A JPEG that says it has another size. */
function claims(file: Buffer, width: number, height: number): Buffer {
  const changed = Buffer.from(file);
  const frame = changed.indexOf(Buffer.from([0xff, 0xc0]));
  changed.writeUInt16BE(height, frame + 5);
  changed.writeUInt16BE(width, frame + 7);
  return changed;
}

/** Zeros, compressed, without ever being whole in memory. */
async function deflatedZeros(bytes: number): Promise<Buffer> {
  const deflate = createDeflate({ level: 9 });
  const chunks: Buffer[] = [];
  deflate.on('data', (some: Buffer) => chunks.push(some));
  const zeros = Buffer.alloc(1_000_000);
  for (let left = bytes; left > 0; left -= zeros.length) {
    if (!deflate.write(zeros.subarray(0, Math.min(left, zeros.length)))) await once(deflate, 'drain');
  }
  deflate.end();
  await once(deflate, 'end');
  return Buffer.concat(chunks);
}

function png(file: Buffer): SentFile {
  return { type: 'image/png', base64: file.toString('base64') };
}

function jpeg(file: Buffer): SentFile {
  return { type: 'image/jpeg', base64: file.subarray(0, 999_999).toString('base64') };
}
