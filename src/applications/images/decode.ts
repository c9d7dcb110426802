import { once } from 'node:events';
import { createInflate } from 'node:zlib';
import sharp from 'sharp';
import { type Png, readPng } from './png.ts';
import { mostPixels } from './shape.ts';

// One picture at a time, in one thread, with nothing kept of it.
sharp.cache(false);
sharp.concurrency(1);

/** To how many pixels a side pictures are scaled down: enough that every pixel is decoded, and too few to take memory. */
const sidePixels = 16;

/** Whether all of an image can be decoded, without a complaint from the decoder. Its headers were checked before. */
export async function canDecode(file: Buffer, mediaType: string): Promise<boolean> {
  try {
    if (mediaType === 'image/png' && !(await isWholeStream(readPng(file)))) return false;
    const picture = sharp(file, { failOn: 'warning', limitInputPixels: mostPixels * mostPixels, sequentialRead: true });
    await picture.resize(sidePixels, sidePixels, { fit: 'fill', fastShrinkOnLoad: false }).raw().toBuffer();
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether a PNG's pixels decompress to exactly the bytes they should come to, by the whole of its data: the decoder stops
 * at the last row, whatever comes after it.
 */
async function isWholeStream({ data, dataBytes }: Png): Promise<boolean> {
  const inflate = createInflate({ chunkSize: 65_536 });
  let bytes = 0;
  inflate.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > dataBytes) inflate.destroy(new Error('more than there should be'));
  });
  const ended = once(inflate, 'end');
  for (const part of data) inflate.write(part);
  inflate.end();
  await ended;
  // What follows the end of the compressed stream was given, and not read.
  const given = data.reduce((sum, part) => sum + part.length, 0);
  return bytes === dataBytes && inflate.bytesWritten === given;
}
