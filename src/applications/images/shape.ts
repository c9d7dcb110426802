import { ApiError } from '../../lib/errors.ts';

/** The widest and highest an image may be, in pixels. */
export const mostPixels = 8_000;

/** How much memory the decoding of one image may take, so that what is decoded at once stays bounded. */
const mostDecodingBytes = 400_000_000;

/** What an image's own headers say of it, before any pixel is decoded. */
export interface ImageShape {
  readonly width: number;
  readonly height: number;
  /** How many bytes a decoder holds at once: all of an image that comes in several passes, else a few of its rows. */
  readonly decodingBytes: number;
}

/** Refuses what is wider or higher than images may be, or needs more memory than is given to one. */
export function checkShape({ width, height, decodingBytes }: ImageShape): void {
  if (width > mostPixels || height > mostPixels) {
    throw invalidImage('The image is more than 8,000 pixels wide or high.');
  }
  if (decodingBytes > mostDecodingBytes) {
    throw invalidImage('The image is too large to show in several passes. Save it without interlacing.');
  }
}

/** Why a file is not the image it should be. */
export function invalidImage(message?: string): ApiError {
  return new ApiError('invalid_document', { message });
}
