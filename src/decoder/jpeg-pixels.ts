import { leastZeros, readScans, type Scan, toJpeg, withoutLast, withoutZeros } from './jpeg-scans.ts';
import { InvalidImage, type JpegFrame } from './jpeg-segments.ts';
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
 * Whether all pixels of a JPEG are in the file. Throws `InvalidImage` if libvips cannot decode it, or if the check would take
 * too much work.
 *
 * Where compressed pixels are missing or make no sense, the JPEG decoder makes up pixels and only warns. One of its warnings is
 * harmless: bytes that it skipped before a marker change no pixel. libvips reports only the text of the first warning. So a
 * file with several warnings is decoded again without such bytes, until there is no other warning. A wrong guess of these bytes
 * leaves out pixels, of which the decoder warns.
 */
export async function isWholeJpeg(file: Buffer): Promise<boolean> {
  const { frame, scans } = readScans(file);
  const work = new DecodingWork(frame);
  const warnings = await work.decode(scans);
  if (isHarmless(warnings)) return true;
  if (skippedBytes(warnings) === undefined) return false;
  const zeroless = await withoutAllZeros({ scans, warnings }, work);
  if (isHarmless(zeroless.warnings)) return true;
  if (!frame.isArithmetic && (await isWholeWithoutSame(zeroless, work))) return true;
  return areScansWhole(zeroless, work);
}

/** Scans, and the warnings when they were decoded. */
interface DecodedScans {
  readonly scans: readonly Scan[];
  readonly warnings: JpegWarnings;
}

/**
 * Removes zeros, which some encoders write before restart markers and behind scans. The last byte of the pixels may be a zero
 * too. Returns the same if nothing that was tried is better.
 */
async function withoutAllZeros(decoded: DecodedScans, work: DecodingWork): Promise<DecodedScans> {
  const least = leastZeros(decoded.scans);
  const all = Number.POSITIVE_INFINITY;
  let best = decoded;
  const tried = new Set([bytesOf(decoded.scans)]);
  for (const [beforeRestart, atEnd] of [
    [least, all],
    [least, 0],
    [all, all],
  ] as const) {
    const scans = decoded.scans.map((scan) => withoutZeros(scan, beforeRestart, atEnd));
    if (tried.has(bytesOf(scans))) continue;
    tried.add(bytesOf(scans));
    const warnings = await work.decode(scans);
    if (isHarmless(warnings)) return { scans, warnings };
    if (skippedBytes(warnings) !== undefined && warnings.count < best.warnings.count) best = { scans, warnings };
  }
  return best;
}

/** Most encoders that write bytes behind scans write the same number behind each. */
async function isWholeWithoutSame({ scans, warnings }: DecodedScans, work: DecodingWork): Promise<boolean> {
  const bytes = skippedBytes(warnings);
  if (bytes === undefined || scans.length < 2) return false;
  return isHarmless(await work.decode(scans.map((scan) => withoutLast(scan, bytes))));
}

/** Decodes one scan more each time, and removes the bytes behind it, so that a scan's warning is always the first one. */
async function areScansWhole({ scans, warnings }: DecodedScans, work: DecodingWork): Promise<boolean> {
  // A scan with two warnings is not whole for this check.
  if (scans.length < 2 || warnings.count > scans.length) return false;
  const prefixes = scans.map((_, index) => scans.slice(0, index + 1));
  // Each scan is decoded once, and once more without its stray bytes.
  work.check([...prefixes, ...prefixes.slice(0, warnings.count)]);
  const checked: Scan[] = [];
  for (const scan of scans) {
    const whole = await withoutStray(checked, scan, work);
    if (whole === undefined) return false;
    checked.push(whole);
  }
  return true;
}

/** Removes the stray bytes behind a scan. Returns undefined if it is not whole. The scans before it have none. */
async function withoutStray(before: readonly Scan[], scan: Scan, work: DecodingWork): Promise<Scan | undefined> {
  let candidate = scan;
  for (let removals = 0; removals <= maxRemovals; removals += 1) {
    const warnings = await work.decode([...before, candidate]);
    if (warnings.count === 0) return candidate;
    const bytes = skippedBytes(warnings);
    if (bytes === undefined || warnings.count > 1) return undefined;
    candidate = withoutLast(candidate, bytes);
  }
  return undefined;
}

function isHarmless(warnings: JpegWarnings): boolean {
  return warnings.count === 0 || (warnings.count === 1 && skippedBytes(warnings) !== undefined);
}

/** How many bytes before a marker the first warning is about; undefined if it is about something else. */
function skippedBytes({ first }: JpegWarnings): number | undefined {
  const bytes = /^VipsJpeg: Corrupt JPEG data: (\d+) extraneous bytes before marker 0x[0-9a-f]{2}$/.exec(first)?.[1];
  return bytes === undefined ? undefined : Number(bytes);
}

/**
 * The most work of checking one file, in pixels of a scan. The largest images take half of it once they are decoded, so a check
 * takes at most about twice as long as an honest file's.
 */
const maxWork = 2_700_000_000;
/** Measured: to show a pixel takes as long as to read it from so many scans, and a byte as long as so many pixels of a scan. */
const scansPerShowing = 10;
const pixelsPerByte = 50;

/** Decodes scans of one JPEG, within a bound on the work of all decodes together. */
class DecodingWork {
  #left = maxWork;

  constructor(private readonly frame: JpegFrame) {}

  /** Throws `InvalidImage` if decoding each of these takes more than the work that is left. */
  check(each: readonly (readonly Scan[])[]): void {
    const cost = each.reduce((sum, scans) => sum + this.#cost(scans), 0);
    if (cost > this.#left) throw new InvalidImage('The image takes too much work to check.');
  }

  async decode(scans: readonly Scan[]): Promise<JpegWarnings> {
    this.check([scans]);
    this.#left -= this.#cost(scans);
    const warnings = await decode(toJpeg(scans), this.frame);
    const at = warnings.findIndex((warning) => countOfWarnings.test(warning));
    const count = Number(countOfWarnings.exec(warnings[at] ?? '')?.[1] ?? 0);
    return { count, first: warnings[at + 1]?.split('\n')[0] ?? '' };
  }

  #cost(scans: readonly Scan[]): number {
    const { width, height } = this.frame;
    return width * height * (scansPerShowing + scans.length) + pixelsPerByte * bytesOf(scans);
  }
}

function bytesOf(scans: readonly Scan[]): number {
  return scans.reduce((sum, { head, data }) => sum + head.length + data.length, 0);
}
