import {
  type Component,
  damagedJpeg,
  type Frame,
  isFrame,
  isRestart,
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
  /** Whether the compressed pixels are divided by restart markers. */
  readonly hasRestarts: boolean;
}

/** What a decoder needs of a JPEG. */
export interface JpegScans {
  readonly frame: Frame;
  /** Whether the pixels come in more than one scan. If not, a decoder reads the first scan only. */
  readonly isLayered: boolean;
  readonly scans: readonly Scan[];
}

/**
 * Reads a JPEG's scans. Throws `InvalidImage` if they do not have all bits of all coefficients, because a decoder shows such
 * a picture without a warning.
 */
export function readScans(file: Buffer): JpegScans {
  let frame: Frame | undefined;
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
    const hasRestarts = restartInterval > 0;
    scans.push({ head: Buffer.concat(head), data: hasRestarts ? data : beforeRestart(data), hasRestarts });
    head = [];
  }
  if (frame === undefined || !received.hasAll(frame)) throw damagedJpeg();
  return { frame, isLayered, scans: isLayered ? scans : scans.slice(0, 1) };
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

/** Removes zero bytes before restart markers. */
export function withoutZeros(scan: Scan): Scan {
  const { data } = scan;
  const parts: Buffer[] = [];
  for (let begin = 0; begin < data.length; ) {
    const restart = findRestart(data, begin);
    let end = restart;
    // The zero byte of 0xff 0x00 belongs to the compressed pixels.
    const isBeforeRestart = restart < data.length;
    while (isBeforeRestart && end - 1 > begin && data[end - 1] === 0 && data[end - 2] !== 0xff) end -= 1;
    const next = Math.min(restart + 2, data.length);
    parts.push(data.subarray(begin, end), data.subarray(restart, next));
    begin = next;
  }
  return { ...scan, data: Buffer.concat(parts) };
}

/** Metadata changes no pixel. Its damage would only add warnings. */
function isMetadata(code: number): boolean {
  return code === marker.comment || (code >= marker.firstApplication && code <= marker.lastApplication);
}

function toBytes({ code, body }: Segment, frame: Frame | undefined): Buffer {
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

  add({ components, isProgressive }: Frame, body: Buffer): void {
    const count = body[0] ?? 0;
    if (count < 1 || count > 4 || body.length !== 4 + 2 * count) throw damagedJpeg();
    const [first = 0, last = 0, precision = 0] = body.subarray(1 + 2 * count);
    const [begin, end, missingBits] = isProgressive ? [first, last + 1, precision & 15] : [0, 64, 0];
    for (let index = 0; index < count; index += 1) {
      const id = body[1 + 2 * index] ?? 0;
      if (!components.some((component) => component.id === id)) throw damagedJpeg();
      const missing = this.#missing.get(id) ?? new Array<number | undefined>(64).fill(undefined);
      this.#missing.set(id, missing.fill(missingBits, begin, end));
    }
  }

  hasAll({ components }: Frame): boolean {
    return components.every(({ id }: Component) => this.#missing.get(id)?.every((missing) => missing === 0));
  }
}
