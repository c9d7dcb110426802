import { type JpegScans, readScans, type Scan, toJpeg, withoutLast, withoutZeros } from './jpeg-scans.ts';
import type { ImageShape } from './jpeg-segments.ts';
import { decode } from './libvips.ts';

/** Warnings of the JPEG decoder, which goes on and makes up what it misses. */
interface JpegWarnings {
  readonly count: number;
  /** The first of them. libvips does not report the others. */
  readonly first: string;
}

/** libvips reports how many warnings the JPEG decoder had, and then the text of the first. */
const countOfWarnings = /^read gave (\d+) warnings$/;

/** How often the bytes behind a scan may be removed. A second time is needed if fill bytes are among them. */
const maxRemovals = 4;

/**
 * Whether all pixels of a JPEG are in the file. Throws `InvalidImage` if libvips cannot decode it.
 *
 * Where compressed pixels are missing or make no sense, the JPEG decoder makes up pixels and only warns. One of its warnings is
 * harmless: bytes that it skipped before a marker change no pixel. libvips reports only the text of the first warning. So a
 * file with several warnings is decoded again in parts.
 */
export async function isWholeJpeg(file: Buffer): Promise<boolean> {
  const jpeg = readScans(file);
  const warnings = await decodeJpeg(toJpeg(jpeg.scans), jpeg.frame);
  if (warnings.count === 0) return true;
  if (skippedBytes(warnings) === undefined) return false;
  if (warnings.count === 1) return true;
  return jpeg.isLayered ? areLayersWhole(jpeg) : isWholeWithoutZeros(jpeg);
}

/** Decodes one scan more each time, and removes the bytes behind it, so that a scan's warning is always the first one. */
async function areLayersWhole({ scans, frame }: JpegScans): Promise<boolean> {
  const checked: Scan[] = [];
  for (const scan of scans) {
    let candidate = scan;
    for (let removals = 0; ; removals += 1) {
      const warnings = await decodeJpeg(toJpeg([...checked, candidate]), frame);
      if (warnings.count === 0) break;
      const bytes = skippedBytes(warnings);
      if (bytes === undefined || warnings.count > 1 || removals === maxRemovals) return false;
      candidate = withoutLast(candidate, bytes);
    }
    checked.push(candidate);
  }
  return true;
}

/** Some encoders write zeros before restart markers, which give one warning each. */
async function isWholeWithoutZeros({ scans, frame }: JpegScans): Promise<boolean> {
  const warnings = await decodeJpeg(toJpeg(scans.map(withoutZeros)), frame);
  return warnings.count === 0 || (warnings.count === 1 && skippedBytes(warnings) !== undefined);
}

/** How many bytes before a marker the first warning is about; undefined if it is about something else. */
function skippedBytes({ first }: JpegWarnings): number | undefined {
  const bytes = /^VipsJpeg: Corrupt JPEG data: (\d+) extraneous bytes before marker 0x[0-9a-f]{2}$/.exec(first)?.[1];
  return bytes === undefined ? undefined : Number(bytes);
}

async function decodeJpeg(file: Buffer, shape: ImageShape): Promise<JpegWarnings> {
  const warnings = await decode(file, shape);
  const at = warnings.findIndex((warning) => countOfWarnings.test(warning));
  const count = Number(countOfWarnings.exec(warnings[at] ?? '')?.[1] ?? 0);
  return { count, first: warnings[at + 1]?.split('\n')[0] ?? '' };
}
