import { type Frame, readFrame } from './jpeg-frame.ts';
import { damagedJpeg, isFrame, marker, readSegments } from './jpeg-segments.ts';
import { isKnownTrailer } from './jpeg-trailer.ts';
import { checkShape, InvalidImage } from './shape.ts';

/** How many scans an image may come in. Programs write about ten; thousands would decode it thousands of times. */
const mostScans = 100;
/** How many pixels all scans together may go over: ten times the largest image there may be. */
const mostScannedPixels = 640_000_000;

/**
 * Reads a JPEG's segments from its start to its end: one picture that can be decoded, in a bounded number of scans. Behind
 * its end may be padding, a maker's trailer or further pictures. Throws `InvalidImage`.
 */
export function readJpeg(file: Buffer): Frame {
  const { frame, end } = readPicture(file, 0);
  if (!isKnownTrailer(file, end, (from) => readPicture(file, from).end)) throw damagedJpeg();
  return frame;
}

/** Reads the picture that begins at `from`. Returns its frame and where the picture ends. */
function readPicture(file: Buffer, from: number): { readonly frame: Frame; readonly end: number } {
  let frame: Frame | undefined;
  let scans = 0;
  for (const { code, body, end } of readSegments(file, from)) {
    if (code === marker.end && frame !== undefined && scans > 0) return { frame, end };
    if (isFrame(code)) {
      if (frame !== undefined) throw damagedJpeg();
      frame = readFrame(code, body);
      checkShape(frame);
    }
    if (code === marker.scan) {
      if (frame === undefined) throw damagedJpeg();
      // The first scan decides whether a decoder must hold all coefficients until the last one.
      if (scans === 0) frame = readFirstScan(frame, body);
      scans += 1;
      if (scans > mostScans || scans * frame.width * frame.height > mostScannedPixels) {
        throw new InvalidImage('The image comes in too many scans. Save it as an ordinary JPEG.');
      }
    }
  }
  throw damagedJpeg();
}

/** A first scan without all colours leaves the rest to later scans, in an image that is not progressive too. */
function readFirstScan(frame: Frame, body: Buffer): Frame {
  if ((body[0] ?? 0) >= frame.components.length) return frame;
  const layered = { ...frame, decodingBytes: frame.coefficientBytes };
  checkShape(layered);
  return layered;
}
