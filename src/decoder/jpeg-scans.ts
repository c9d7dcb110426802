import {
  damagedJpeg,
  isFrame,
  isMetadata,
  isRestart,
  type JpegFrame,
  marker,
  readFrame,
  readSegments,
  type Segment,
} from './jpeg-segments.ts';

/** A scan of a JPEG, with everything that its decoder must have read before. */
export interface Scan {
  /** The segments before the scan's compressed pixels, from the end of the scan before. */
  readonly head: Buffer;
  /** The compressed pixels, and what may follow them. */
  readonly data: Buffer;
}

/** The parts of a JPEG that a decoder needs. */
export interface JpegScans {
  readonly frame: JpegFrame;
  /** If the first scan has all pixels of a picture that is not progressive, a decoder reads that one only. */
  readonly scans: readonly Scan[];
}

/**
 * Reads a JPEG's scans. Throws `InvalidImage` if they do not have all bits of all coefficients, because a decoder shows such
 * a picture without a warning.
 */
export function readScans(file: Buffer): JpegScans {
  let frame: JpegFrame | undefined;
  let restartInterval = 0;
  let head: Buffer[] = [];
  const scans: Scan[] = [];
  let isLayered = false;
  const received = new ReceivedBits();
  for (const segment of readSegments(file)) {
    const { code, body, data } = segment;
    if (isFrame(code)) frame = readFrame(code, body);
    if (code === marker.restartInterval && body.length === 2) restartInterval = body.readUInt16BE();
    if (!isMetadata(code)) head.push(toBytes(segment, frame));
    if (code !== marker.scan) continue;
    if (frame === undefined) throw damagedJpeg();
    received.add(frame, body);
    if (scans.length === 0) isLayered = frame.isProgressive || (body[0] ?? 0) < frame.components.length;
    scans.push({ head: Buffer.concat(head), data: restartInterval > 0 ? data : beforeRestart(data) });
    head = [];
  }
  if (frame === undefined || !received.hasAll(frame)) throw damagedJpeg();
  // A decoder of several scans looks for another one up to the end marker, and must understand all that stands there.
  const tail = Buffer.concat(head);
  if (tail.length > 0) scans.push({ head: tail, data: Buffer.alloc(0) });
  return { frame, scans: isLayered ? scans : scans.slice(0, 1) };
}

/** A JPEG of these scans, without metadata and bytes between segments. */
export function toJpeg(scans: readonly Scan[]): Buffer {
  const parts = scans.flatMap(({ head, data }) => [head, data]);
  return Buffer.concat([Buffer.from([0xff, marker.start]), ...parts, Buffer.from([0xff, marker.end])]);
}

/** Removes bytes that a decoder found behind the compressed pixels of a scan. It does not count fill bytes. */
export function withoutLast(scan: Scan, bytes: number): Scan {
  let end = scan.data.length;
  while (end > 0 && scan.data[end - 1] === 0xff) end -= 1;
  return { ...scan, data: scan.data.subarray(0, Math.max(0, end - bytes)) };
}

/** Removes zeros before restart markers and at the end of a scan, at most so many each time. */
export function withoutZeros(scan: Scan, mostBeforeRestart: number, mostAtEnd: number): Scan {
  const { data } = scan;
  const kept = Buffer.allocUnsafe(data.length);
  let bytes = 0;
  for (const { begin, end, next, zeros } of readIntervals(data)) {
    const most = next > end ? mostBeforeRestart : mostAtEnd;
    bytes += data.copy(kept, bytes, begin, end - Math.min(zeros, most));
    bytes += data.copy(kept, bytes, end, next);
  }
  return { ...scan, data: kept.subarray(0, bytes) };
}

/** The least number of zeros before any restart marker; `Infinity` if there are no restart markers. */
export function leastZeros(scans: readonly Scan[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { data } of scans) {
    for (const { end, next, zeros } of readIntervals(data)) {
      if (next > end) least = Math.min(least, zeros);
    }
  }
  return least;
}

/** Compressed pixels up to a restart marker, or to the end. */
interface Interval {
  readonly begin: number;
  readonly end: number;
  /** Behind the restart marker; equal to `end` if there is none. */
  readonly next: number;
  /** The zeros before `end`. */
  readonly zeros: number;
}

function* readIntervals(data: Buffer): Generator<Interval, void, undefined> {
  for (let begin = 0; begin < data.length; ) {
    const end = findRestart(data, begin);
    const next = Math.min(end + 2, data.length);
    let pixelsEnd = end;
    // The zero byte of 0xff 0x00 belongs to the compressed pixels.
    while (pixelsEnd - 1 > begin && data[pixelsEnd - 1] === 0 && data[pixelsEnd - 2] !== 0xff) pixelsEnd -= 1;
    yield { begin, end, next, zeros: end - pixelsEnd };
    begin = next;
  }
}

function toBytes({ code, body }: Segment, frame: JpegFrame | undefined): Buffer {
  if (code === marker.end) return Buffer.alloc(0);
  const bytes = Buffer.concat([Buffer.from([0xff, code, 0, 0]), body]);
  bytes.writeUInt16BE(2 + body.length, 2);
  // Samsung's cameras write 0 as the last coefficient of scans that have all of them. A decoder ignores and warns of it.
  if (code === marker.scan && frame?.isProgressive === false) bytes.set([0, 63, 0], bytes.length - 3);
  return bytes;
}

/** Without restarts, a restart marker ends the compressed pixels. */
function beforeRestart(data: Buffer): Buffer {
  return data.subarray(0, findRestart(data, 0));
}

/** The position of the next restart marker, or the end. A scan's data has no other markers. */
function findRestart(data: Buffer, from: number): number {
  for (let at = data.indexOf(0xff, from); at !== -1; at = data.indexOf(0xff, at + 1)) {
    if (isRestart(data[at + 1] ?? 0)) return at;
  }
  return data.length;
}

/** Which bits of an image's coefficients its scans have brought, by what the scans' headers say. */
class ReceivedBits {
  /** By component: for each coefficient, how many of its low bits are missing; undefined if all are. */
  readonly #missing = new Map<number, (number | undefined)[]>();

  add({ components, isProgressive }: JpegFrame, body: Buffer): void {
    const count = body[0] ?? 0;
    if (count < 1 || count > 4 || body.length !== 4 + 2 * count) throw damagedJpeg();
    const [first = 0, last = 0, precision = 0] = body.subarray(1 + 2 * count);
    const [begin, end, missingBits] = isProgressive ? [first, last + 1, precision & 15] : [0, 64, 0];
    for (let index = 0; index < count; index += 1) {
      const id = body[1 + 2 * index] ?? 0;
      // Libjpeg takes the first component of this id that is not before the position in the scan.
      const component = components.findIndex((each, at) => at >= index && each.id === id);
      if (component === -1) throw damagedJpeg();
      const missing = this.#missing.get(component) ?? new Array<number | undefined>(64).fill(undefined);
      this.#missing.set(component, missing.fill(missingBits, begin, end));
    }
  }

  hasAll({ components }: JpegFrame): boolean {
    return components.every((_, component) => this.#missing.get(component)?.every((missing) => missing === 0));
  }
}
