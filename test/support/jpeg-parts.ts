import { marker, readSegments } from '../../src/decoder/jpeg-segments.ts';

/** A JPEG with stray bytes behind each of its segments and scans. */
export function betweenSegments(file: Buffer, stray: Buffer): Buffer {
  const ends = [...readSegments(file)].slice(0, -1).map(({ end }) => end);
  const begins = [0, ...ends];
  const parts = begins.map((begin, index) => file.subarray(begin, begins[index + 1] ?? file.length));
  return Buffer.concat(parts.flatMap((part, index) => (index === 0 ? [part] : [stray, part])));
}

/** A JPEG without the last bytes of one of its scans. */
export function withoutScanEnd(file: Buffer, scan: number, bytes: number): Buffer {
  const end = [...readSegments(file)].filter(({ code }) => code === marker.scan)[scan]?.end ?? 0;
  return Buffer.concat([file.subarray(0, end - bytes), file.subarray(end)]);
}

/** A JPEG with stray bytes before each restart marker. */
export function beforeRestarts(file: Buffer, stray: Buffer): Buffer {
  const parts: Buffer[] = [];
  let begin = 0;
  for (let at = 0; at < file.length; at += 1) {
    const next = file[at + 1] ?? 0;
    if (file[at] !== 0xff || next < 0xd0 || next > 0xd7) continue;
    parts.push(file.subarray(begin, at), stray);
    begin = at;
  }
  return Buffer.concat([...parts, file.subarray(begin)]);
}
