import sharp, { type SharpOptions } from 'sharp';
import { type ImageShape, InvalidImage, maxPixels } from './jpeg-segments.ts';

// With its cache, libvips does not report the warnings of a JPEG.
sharp.cache(false);
sharp.concurrency(1);

const reading: SharpOptions = {
  failOn: 'error',
  limitInputPixels: maxPixels * maxPixels,
  sequentialRead: true,
  ignoreIcc: true,
  // Else the hundredth warning of a JPEG is an error. Sizes and scans are bounded before.
  unlimited: true,
};

/** Decodes all pixels of an image. Returns what libvips warns of. Throws `InvalidImage` if it cannot decode the image. */
export async function decode(file: Buffer, { height }: ImageShape): Promise<readonly string[]> {
  const warnings: string[] = [];
  const picture = sharp(file, reading);
  picture.on('warning', (warning: string) => warnings.push(warning));
  try {
    // libvips decodes all rows before the last one, and the result takes little memory.
    await picture
      .extract({ left: 0, top: height - 1, width: 1, height: 1 })
      .raw()
      .toBuffer();
  } catch {
    throw new InvalidImage('The image cannot be decoded.');
  }
  return warnings;
}

/** Decodes an image. Returns a byte for each pixel: its value of red. Throws `InvalidImage` if libvips cannot decode it. */
export async function decodeRed(file: Buffer): Promise<Buffer> {
  try {
    return await sharp(file, reading).extractChannel(0).raw().toBuffer();
  } catch {
    throw new InvalidImage('The image cannot be decoded.');
  }
}
