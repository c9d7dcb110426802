import { standardTables } from './jpeg-tables.ts';

/** A segment of a JPEG, with its marker and length. */
export function segment(code: number, ...parts: readonly (Uint8Array | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)));
  const head = Buffer.from([0xff, code, 0, 0]);
  head.writeUInt16BE(body.length + 2, 2);
  return Buffer.concat([head, body]);
}

export const startOfImage = Buffer.from([0xff, 0xd8]);
export const endOfImage = Buffer.from([0xff, 0xd9]);

export interface JpegParts {
  readonly width?: number;
  readonly height?: number;
  /** The height in the frame header, if it is another. */
  readonly saidHeight?: number;
  /** By component: samples across and down. */
  readonly sampling?: readonly (readonly [number, number])[];
  readonly ids?: readonly number[];
  /** Sequential frames: 0xc0 baseline, 0xc1 extended. */
  readonly frame?: number;
  readonly depth?: number;
  readonly restartInterval?: number;
  /** Colours come one after another, each in a scan of its own. */
  readonly layered?: boolean;
  /** The last coefficient as the scan's header says it. */
  readonly lastCoefficient?: number;
  /** Without Huffman tables, as frames of Motion JPEG are. */
  readonly isTableless?: boolean;
  readonly hasQuantization?: boolean;
  /** The bit that fills up the last byte of a scan. */
  readonly fillBit?: 0 | 1;
  /** Blocks left out at the end of each scan. */
  readonly missingBlocks?: number;
  /** Blocks more than there are. */
  readonly extraBlocks?: number;
  /** Bytes behind the compressed pixels of each scan. */
  readonly behindScan?: Buffer;
  /** Restart markers, by their number, in place of the right ones. */
  readonly restartNumber?: (number: number) => number | undefined;
  /** Segments before the frame. */
  readonly before?: readonly Buffer[];
  /** Segments between the frame and the scan. */
  readonly between?: readonly Buffer[];
  /** Segments behind the first scan. */
  readonly behindFirst?: readonly Buffer[];
}

/** Makes a sequential JPEG, right or wrong, of blocks that differ in their brightness and in one more coefficient. */
export function makeJpeg(parts: JpegParts = {}): Buffer {
  const {
    width = 40,
    height = 24,
    sampling = [
      [2, 2],
      [1, 1],
      [1, 1],
    ],
  } = parts;
  const { frame = 0xc0, restartInterval = 0, depth = 8 } = parts;
  const ids = parts.ids ?? sampling.map((_, index) => index + 1);
  const across = Math.max(...sampling.map(([each]) => each));
  const down = Math.max(...sampling.map(([, each]) => each));
  const size = Buffer.from([depth, 0, 0, 0, 0, sampling.length]);
  size.writeUInt16BE(parts.saidHeight ?? height, 1);
  size.writeUInt16BE(width, 3);
  const components = sampling.flatMap(([h, v], index) => [ids[index] ?? 0, (h << 4) | v, 0]);
  const tables = [0x00, 0x10].map((key) =>
    segment(0xc4, Buffer.from([key]), standardTables.get(key) ?? Buffer.alloc(0)),
  );
  const units = Math.ceil(width / (8 * across)) * Math.ceil(height / (8 * down));
  const all = sampling.map((_, index) => index);
  const scans = (parts.layered === true ? all.map((index) => [index]) : [all]).map((indexes) => {
    const [only = 0] = indexes;
    const [h, v] = sampling[only] ?? [1, 1];
    const isAlone = indexes.length === 1;
    const aloneUnits = Math.ceil((width * h) / (8 * across)) * Math.ceil((height * v) / (8 * down));
    const blocks = isAlone ? [only] : indexes.flatMap((index) => blocksOfUnit(sampling[index], index));
    const selectors = indexes.flatMap((index) => [ids[index] ?? 0, 0]);
    return Buffer.concat([
      segment(0xda, Buffer.from([indexes.length, ...selectors, 0, parts.lastCoefficient ?? 63, 0])),
      scanData(isAlone ? aloneUnits : units, blocks, parts),
      parts.behindScan ?? Buffer.alloc(0),
    ]);
  });
  const interval = Buffer.alloc(2);
  interval.writeUInt16BE(restartInterval);
  return Buffer.concat([
    startOfImage,
    ...(parts.before ?? []),
    ...(parts.hasQuantization === false ? [] : [segment(0xdb, Buffer.from([0]), Buffer.alloc(64, 8))]),
    segment(frame, size, Buffer.from(components)),
    ...(parts.isTableless === true ? [] : tables),
    ...(restartInterval > 0 ? [segment(0xdd, interval)] : []),
    ...(parts.between ?? []),
    ...scans.slice(0, 1),
    ...(parts.behindFirst ?? []),
    ...scans.slice(1),
    endOfImage,
  ]);
}

function blocksOfUnit(sampling: readonly [number, number] | undefined, index: number): number[] {
  const [h, v] = sampling ?? [1, 1];
  return new Array<number>(h * v).fill(index);
}

function scanData(units: number, blocks: readonly number[], parts: JpegParts): Buffer {
  const { restartInterval = 0, missingBlocks = 0, extraBlocks = 0, fillBit = 1 } = parts;
  const { restartNumber = (number: number) => number } = parts;
  const bytes: number[] = [];
  const bits = new BitWriter(bytes);
  const total = units * blocks.length - missingBlocks + extraBlocks;
  let last = new Map<number, number>();
  for (let block = 0; block < total; block += 1) {
    const unit = Math.floor(block / blocks.length);
    if (restartInterval > 0 && block > 0 && block % blocks.length === 0 && unit % restartInterval === 0) {
      bits.finish(fillBit);
      const number = restartNumber(unit / restartInterval - 1);
      if (number !== undefined) bytes.push(0xff, 0xd0 + (number & 7));
      last = new Map();
    }
    const component = blocks[block % blocks.length] ?? 0;
    const brightness = ((block * 37) % 61) - 30;
    const difference = brightness - (last.get(component) ?? 0);
    last.set(component, brightness);
    const size = 32 - Math.clz32(Math.abs(difference));
    bits.code(0x00, size);
    bits.bits(difference < 0 ? difference + (1 << size) - 1 : difference, size);
    // A run of two zeros and a coefficient of 1; then the end of the block.
    if (block % 3 === 0) {
      bits.code(0x10, 0x21);
      bits.bits(1, 1);
    }
    bits.code(0x10, 0x00);
  }
  bits.finish(fillBit);
  return Buffer.from(bytes);
}

class BitWriter {
  readonly #bytes: number[];
  #byte = 0;
  #count = 0;

  constructor(bytes: number[]) {
    this.#bytes = bytes;
  }

  code(table: number, symbol: number): void {
    const [code, length] = codeOf(table, symbol);
    this.bits(code, length);
  }

  bits(value: number, count: number): void {
    for (let bit = count - 1; bit >= 0; bit -= 1) {
      this.#byte = (this.#byte << 1) | ((value >> bit) & 1);
      this.#count += 1;
      if (this.#count < 8) continue;
      this.#bytes.push(this.#byte, ...(this.#byte === 0xff ? [0] : []));
      this.#byte = 0;
      this.#count = 0;
    }
  }

  finish(fillBit: 0 | 1): void {
    while (this.#count > 0) this.bits(fillBit, 1);
  }
}

function codeOf(key: number, symbol: number): readonly [code: number, length: number] {
  const table = standardTables.get(key) ?? Buffer.alloc(0);
  let code = 0;
  let at = 16;
  for (let length = 1; length <= 16; length += 1) {
    for (let index = 0; index < (table[length - 1] ?? 0); index += 1) {
      if (table[at] === symbol) return [code, length];
      code += 1;
      at += 1;
    }
    code <<= 1;
  }
  throw new Error(`the table has no code for ${symbol}`);
}

/** A JPEG with segments behind its first marker. */
export function withSegments(file: Buffer, ...segments: readonly Buffer[]): Buffer {
  return Buffer.concat([startOfImage, ...segments, file.subarray(2)]);
}

/** The index of a multi-picture file (CIPA DC-007), without its entries. */
export function multiPictureIndex(pictures: number): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32BE(pictures);
  return segment(
    0xe2,
    'MPF\0',
    'MM\0*\0\0\0\b',
    Buffer.from([0, 2]),
    'version0100\0',
    count,
    Buffer.alloc(16 * pictures),
  );
}

export function exif(thumbnail: Buffer = Buffer.alloc(0)): Buffer {
  return segment(0xe1, 'Exif\0\0', 'II*\0\b\0\0\0\0\0\0\0\0\0', thumbnail);
}

export const jfif = segment(0xe0, 'JFIF\0', Buffer.from([1, 1, 0, 0, 1, 0, 1, 0, 0]));

export function xmp(text: string): Buffer {
  return segment(0xe1, 'http://ns.adobe.com/xap/1.0/\0', `<x:xmpmeta xmlns:x="adobe:ns:meta/">${text}</x:xmpmeta>`);
}

/** Samsung's trailer: blocks of data, a directory of them, its length. */
export function samsungTrailer(...blocks: readonly (readonly [name: string, data: string])[]): Buffer {
  const parts = blocks.map(([name, data]) => {
    const head = Buffer.from([0, 0, 0x30, 0x0c, name.length, 0, 0, 0]);
    return Buffer.concat([head, Buffer.from(name + data, 'latin1')]);
  });
  const directory = Buffer.alloc(12 + 12 * parts.length);
  directory.write('SEFH', 'latin1');
  directory.writeUInt32LE(107, 4);
  directory.writeUInt32LE(parts.length, 8);
  parts.forEach((part, index) => {
    const left = parts.slice(index).reduce((sum, each) => sum + each.length, 0);
    directory.writeUInt32LE(0x0c300000, 12 + 12 * index);
    directory.writeUInt32LE(left, 16 + 12 * index);
    directory.writeUInt32LE(part.length, 20 + 12 * index);
  });
  const length = Buffer.alloc(4);
  length.writeUInt32LE(directory.length);
  return Buffer.concat([...parts, directory, length, Buffer.from('SEFT')]);
}

/** How a film says how long its pixels are: in 4 bytes, in 8 bytes, or that they are the rest of it. */
export type FilmLength = 'short' | 'long' | 'rest';

/** A film in boxes, as a motion photo has it behind its picture. */
export function film(length: FilmLength = 'short'): Buffer {
  const box = (type: string, data: string | Buffer) => {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(8 + data.length);
    head.write(type, 4, 'latin1');
    return Buffer.concat([head, Buffer.from(data as string, 'latin1')]);
  };
  const start = box('ftyp', 'mp42\0\0\0\0isommp42');
  const frames = box('moov', 'frames\0\0');
  const pixels = box('mdat', Buffer.alloc(300));
  if (length === 'short') return Buffer.concat([start, pixels, frames]);
  pixels.writeUInt32BE(length === 'long' ? 1 : 0);
  if (length === 'rest') return Buffer.concat([start, frames, pixels]);
  pixels.writeBigUInt64BE(BigInt(pixels.length), 8);
  return Buffer.concat([start, pixels, frames]);
}

/** The bytes that Huawei's phones write behind the film of a moving picture. */
export function huaweiEnd(filmBytes: number): Buffer {
  return Buffer.from(`${'0:1477'.padEnd(20)}${`LIVE_${filmBytes}`.padEnd(20)}`, 'latin1');
}
