import {
  checkShape,
  damagedJpeg,
  InvalidImage,
  isFrame,
  type JpegFrame,
  marker,
  readFrame,
  readSegments,
} from './jpeg-segments.ts';

/** The most scans of an image. Encoders write about ten; thousands would mean decoding it thousands of times. */
const maxScans = 100;
/** The most pixels in all scans together: ten times the largest image allowed. */
const maxScannedPixels = 640_000_000;

/** Some cameras and programs write up to three bytes more than there are, which are nothing. */
const maxStrayBytes = 3;

/** Reads a whole JPEG of one picture and a bounded number of scans, and what follows it. Throws `InvalidImage`. */
export function readJpeg(file: Buffer): JpegFrame {
  const { frame, end } = readPicture(file, 0);
  for (let strayBytes = 0; strayBytes <= maxStrayBytes && end + strayBytes <= file.length; strayBytes += 1) {
    const rest = file.subarray(0, file.length - strayBytes);
    if (isKnownTrailer(rest, end, maxStrayBytes - strayBytes)) return frame;
  }
  throw damagedJpeg();
}

/** Reads the picture that begins at `from`. Returns its frame and its end. */
function readPicture(file: Buffer, from: number): { readonly frame: JpegFrame; readonly end: number } {
  let frame: JpegFrame | undefined;
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
      if (scans > maxScans || scans * frame.width * frame.height > maxScannedPixels) {
        throw new InvalidImage('The image comes in too many scans. Save it as an ordinary JPEG.');
      }
    }
  }
  throw damagedJpeg();
}

/** If the first scan lacks a colour, later scans have the rest, even in an image that is not progressive. */
function readFirstScan(frame: JpegFrame, body: Buffer): JpegFrame {
  if ((body[0] ?? 0) >= frame.components.length) return frame;
  const layered = { ...frame, decodingBytes: frame.coefficientBytes };
  checkShape(layered);
  return layered;
}

/** Finds the start of a trailer that ends at `end`; undefined if there is none of this kind. */
type FindTrailer = (file: Buffer, from: number, end: number) => number | undefined;

/** Trailers that can be found from their ends. A file may have several, one after the other. */
const trailers: readonly FindTrailer[] = [findSamsung, findVivo, findOnePlus, findCanon, findHuawei];

/** The most pictures and trailers after a picture. */
const maxParts = 100;

/**
 * Whether everything after the end of a JPEG is what cameras, phones and galleries write there: padding, further whole
 * pictures (multi-picture files, gain maps, previews), and trailers of makers whose form is publicly described. So many stray
 * bytes may be between them.
 */
function isKnownTrailer(file: Buffer, pictureEnd: number, strayBytes: number): boolean {
  let trailersBegin = file.length;
  let end = dropPadding(file, pictureEnd, trailersBegin);
  for (let part = 0; part < maxParts; part += 1) {
    const begin = trailers.map((find) => find(file, pictureEnd, end)).find((each) => each !== undefined);
    if (begin === undefined) break;
    trailersBegin = begin;
    end = dropPadding(file, pictureEnd, begin);
  }
  let from = skipPadding(file, pictureEnd, end);
  let straysLeft = strayBytes;
  for (let part = 0; part < maxParts && from < end; part += 1) {
    if (isMotionPhoto(file, from, trailersBegin)) return true;
    const isPicture = file[from] === 0xff && file[from + 1] === marker.start;
    if (!isPicture && straysLeft === 0) return false;
    if (!isPicture) straysLeft -= 1;
    from = skipPadding(file, isPicture ? readPicture(file, from).end : from + 1, end);
  }
  return from >= end;
}

function isPadding(byte: number | undefined): boolean {
  return byte === 0 || byte === 0xff || byte === 0x0d || byte === 0x0a;
}

function skipPadding(file: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && isPadding(file[at])) {
    // The last fill byte may be the first byte of another picture.
    if (file[at] === 0xff && file[at + 1] === marker.start) break;
    at += 1;
  }
  return at;
}

function dropPadding(file: Buffer, from: number, end: number): number {
  let at = end;
  while (at > from && isPadding(file[at - 1])) at -= 1;
  return at;
}

/** Samsung: blocks of data, then `SEFH` with a directory of them, its length, and `SEFT`. */
function findSamsung(file: Buffer, from: number, end: number): number | undefined {
  if (end - from < 20 || file.toString('latin1', end - 4, end) !== 'SEFT') return undefined;
  const directory = end - 8 - file.readUInt32LE(end - 8);
  if (directory < from || file.toString('latin1', directory, directory + 4) !== 'SEFH') return undefined;
  const count = file.readUInt32LE(directory + 8);
  if (directory + 12 + 12 * count !== end - 8) return undefined;
  const begins = Array.from({ length: count }, (_, index) => {
    const entry = directory + 12 + 12 * index;
    const begin = directory - file.readUInt32LE(entry + 4);
    return begin + file.readUInt32LE(entry + 8) <= directory ? begin : -1;
  });
  const begin = Math.min(directory, ...begins);
  return begin >= from ? begin : undefined;
}

const vivoEnd = Buffer.from('ffffffff1b2a39485766758493a2b1', 'hex');

/** vivo: begins with the name of its first part and ends with fixed bytes. It does not state its length. */
function findVivo(file: Buffer, from: number, end: number): number | undefined {
  if (!file.subarray(Math.max(from, end - vivoEnd.length), end).equals(vivoEnd)) return undefined;
  const begins = ['streamdata', 'vivo{"'].map((text) => file.indexOf(text, from, 'latin1'));
  return begins.filter((begin) => begin >= from && begin < end).sort((one, other) => one - other)[0];
}

const maxListBytes = 65_536;

/** OnePlus and OPPO: parts, a list of them in JSON, then `jxrs` and the length of the list with these eight bytes. */
function findOnePlus(file: Buffer, from: number, end: number): number | undefined {
  // The length ends with a zero byte, which looks like padding and was dropped.
  for (const last of [end, end + 1, end + 2, end + 3]) {
    if (last - 8 < from || last > file.length || file.toString('latin1', last - 8, last - 4) !== 'jxrs') continue;
    const list = last - file.readUInt32LE(last - 4);
    if (list < from || list > last - 8 || last - list > maxListBytes) return undefined;
    return beginOfParts(file.toString('utf8', list, last - 8), from, list);
  }
  return undefined;
}

function beginOfParts(json: string, from: number, list: number): number | undefined {
  try {
    const parts: unknown = JSON.parse(json.replace(/\0+$/, ''));
    if (!Array.isArray(parts)) return undefined;
    const offsets = parts.map((part: { offset?: unknown } | null) => Number(part?.offset ?? 0));
    const begin = list - Math.max(0, ...offsets);
    // The offset comes from the file and may not be a whole number.
    return Number.isInteger(begin) && begin >= from ? begin : undefined;
  } catch {
    return undefined;
  }
}

const canonName = 'CANON OPTIONAL DATA\0';
const canonHeadBytes = 28;
const canonFootBytes = 64;

/** Canon: the same name in a header and a footer, each with the length of the content between them. */
function findCanon(file: Buffer, from: number, end: number): number | undefined {
  // The footer ends with zero bytes, which look like padding and were dropped.
  const foot = file.lastIndexOf(canonName, end, 'latin1');
  if (foot < from || foot + canonFootBytes < end || foot + canonFootBytes > file.length) return undefined;
  const begin = foot - file.readUInt32BE(foot + canonName.length) - canonHeadBytes;
  if (begin < from || file.toString('latin1', begin, begin + canonName.length) !== canonName) return undefined;
  return file.readUInt32BE(begin + canonHeadBytes - 4) === foot - begin - canonHeadBytes ? begin : undefined;
}

const huaweiEnd = /^[ -~]{20}LIVE_[0-9]{1,15} *$/;
const huaweiEndBytes = 40;

/** Huawei and Honor: a film, then two texts of 20 characters. The second is `LIVE_` and the length of all before it. */
function findHuawei(file: Buffer, from: number, end: number): number | undefined {
  const filmEnd = end - huaweiEndBytes;
  if (filmEnd < from || !huaweiEnd.test(file.toString('latin1', filmEnd, end))) return undefined;
  const begin = file.indexOf('ftyp', from, 'latin1') - 4;
  return begin >= from && isFilm(file, begin, filmEnd) ? begin : undefined;
}

/** Android's motion photo: the picture's XMP says that a film follows, and the rest is one. */
function isMotionPhoto(file: Buffer, from: number, end: number): boolean {
  // A film begins with its first box's length, whose zero bytes look like padding and were skipped.
  const begin = file.indexOf('ftyp', from, 'latin1') - 4;
  if (begin < from - 3 || begin > from || !isFilm(file, begin, end)) return false;
  return [...readSegments(file)].some(
    ({ code, body }) => code === marker.application1 && /:(MotionPhoto|MicroVideo)(=|>)/.test(body.toString('latin1')),
  );
}

/** Whether a film in boxes (ISO/IEC 14496-12) begins and ends at these offsets. */
function isFilm(file: Buffer, begin: number, end: number): boolean {
  for (let at = begin; at < end; ) {
    if (end - at < 8 || !/^[ -~]{4}$/.test(file.toString('latin1', at + 4, at + 8))) return false;
    const bytes = boxBytes(file, at, end);
    if (bytes < 8 || at + bytes > end) return false;
    at += bytes;
  }
  return true;
}

/** The length a box states. 1 means that the true length follows in eight bytes, and 0 means the rest of the film. */
function boxBytes(file: Buffer, at: number, end: number): number {
  const bytes = file.readUInt32BE(at);
  if (bytes === 0) return end - at;
  if (bytes !== 1) return bytes;
  const longBytes = end - at < 16 ? 0 : Number(file.readBigUInt64BE(at + 8));
  return longBytes < 16 ? 0 : longBytes;
}
