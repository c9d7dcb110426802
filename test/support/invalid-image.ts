import assert from 'node:assert/strict';
import { InvalidImage } from '../../src/decoder/jpeg-segments.ts';

/** Whether a file is refused as no image that is taken. Fails if it is refused in another way. */
export function isInvalidImage(read: () => unknown): boolean {
  try {
    read();
    return false;
  } catch (error) {
    assert.ok(error instanceof InvalidImage, String(error));
    return true;
  }
}
