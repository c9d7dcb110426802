/** The widest and highest an image may be, in pixels. */
export const mostPixels = 8_000;

/** The most memory that the decoding of one image may take. */
const mostDecodingBytes = 400_000_000;

/** What an image's headers say about it, before any pixel is decoded. */
export interface ImageShape {
  readonly width: number;
  readonly height: number;
  /** How many bytes a decoder must hold at once: the whole image if it comes in several passes, else close to nothing. */
  readonly decodingBytes: number;
}

/** A file is not the image it should be. The message is written for the partner. */
export class InvalidImage extends Error {
  override readonly name = 'InvalidImage';
}

/** Refuses an image that is too wide, too high, or takes too much memory to decode. Throws `InvalidImage`. */
export function checkShape({ width, height, decodingBytes }: ImageShape): void {
  if (width > mostPixels || height > mostPixels) {
    throw new InvalidImage('The image is more than 8,000 pixels wide or high.');
  }
  if (decodingBytes > mostDecodingBytes) {
    throw new InvalidImage('The image takes too much memory to show. Save it as an ordinary JPEG.');
  }
}
