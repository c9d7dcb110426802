import { buildTable, type HuffmanTable, readTables, ScanBits, standardTables } from './huffman.ts';
import {
  type Component,
  damagedJpeg,
  type Frame,
  isFrame,
  largestSampling,
  marker,
  readFrame,
  readSegments,
  type Segment,
} from './jpeg-segments.ts';

/**
 * Checks that the compressed pixels of a JPEG are complete: every scan has the codes of all its blocks, and nothing else.
 * Returns false for arithmetic coding, which this does not check. Throws `InvalidImage`.
 */
export function checkEntropy(file: Buffer): boolean {
  let picture: Picture | undefined;
  const tables = new Map(standardTables);
  let restartInterval = 0;
  for (const segment of readSegments(file)) {
    const { code, body } = segment;
    if (isFrame(code)) {
      const frame = readFrame(code, body);
      if (frame.isArithmetic) return false;
      picture = new Picture(frame);
    } else if (code === marker.huffmanTables) {
      for (const { key, table } of readTables(body)) tables.set(key, table);
    } else if (code === marker.restartInterval) {
      if (body.length !== 2) throw damagedJpeg();
      restartInterval = body.readUInt16BE();
    } else if (code === marker.scan) {
      if (picture === undefined) throw damagedJpeg();
      picture.checkScan(segment, tables, restartInterval);
    }
  }
  if (picture?.isComplete !== true) throw damagedJpeg();
  return true;
}

/** A component, and how much of it was sent so far. */
interface Plane extends Component {
  /** Blocks in a row of the image's units. The last unit is padded. */
  readonly paddedWidth: number;
  /** Blocks across and down in a scan of this component alone. */
  readonly width: number;
  readonly height: number;
  /** In a progressive image: a bit for each coefficient that is not zero, two words a block. */
  readonly coefficients: Uint32Array;
  /** By coefficient: how many of its low bits are still missing; undefined before its first scan. */
  readonly missingBits: (number | undefined)[];
}

interface PlaneScan {
  readonly plane: Plane;
  readonly blocks: BlockReader;
}

class Picture {
  readonly #isProgressive: boolean;
  readonly #planes: readonly Plane[];
  readonly #unitsAcross: number;
  readonly #unitsDown: number;

  constructor({ width, height, components, isProgressive }: Frame) {
    const largest = largestSampling(components);
    this.#isProgressive = isProgressive;
    this.#unitsAcross = Math.ceil(width / (8 * largest.across));
    this.#unitsDown = Math.ceil(height / (8 * largest.down));
    this.#planes = components.map((component) => {
      const paddedWidth = this.#unitsAcross * component.across;
      const blocks = paddedWidth * this.#unitsDown * component.down;
      return {
        ...component,
        paddedWidth,
        width: Math.ceil((width * component.across) / (8 * largest.across)),
        height: Math.ceil((height * component.down) / (8 * largest.down)),
        coefficients: new Uint32Array(isProgressive ? 2 * blocks : 0),
        missingBits: new Array<number | undefined>(64).fill(undefined),
      };
    });
  }

  get isComplete(): boolean {
    return this.#planes.every(({ missingBits }) => missingBits.every((missing) => missing === 0));
  }

  checkScan({ body, data }: Segment, tables: ReadonlyMap<number, Buffer>, restartInterval: number): void {
    const bits = new ScanBits(data);
    const scans = this.#readHeader(body, bits, tables);
    const [only] = scans;
    const isAlone = scans.length === 1 && only !== undefined;
    const across = isAlone ? only.plane.width : this.#unitsAcross;
    const units = across * (isAlone ? only.plane.height : this.#unitsDown);
    const settle = () => {
      if (!scans.every(({ blocks }) => blocks.isSettled())) throw damagedJpeg();
    };
    let restarts = 0;
    for (let unit = 0; unit < units; ) {
      if (restartInterval > 0 && unit > 0 && unit % restartInterval === 0) {
        settle();
        bits.restart(restarts);
        restarts += 1;
      }
      const column = unit % across;
      const row = (unit - column) / across;
      const untilRestart = restartInterval > 0 ? restartInterval - (unit % restartInterval) : units;
      const count = Math.min(across - column, untilRestart);
      if (isAlone) only.blocks.read(row * only.plane.paddedWidth + column, count);
      else for (let index = 0; index < count; index += 1) for (const scan of scans) readUnit(scan, column + index, row);
      unit += count;
    }
    settle();
    bits.end(restarts);
  }

  #readHeader(body: Buffer, bits: ScanBits, tables: ReadonlyMap<number, Buffer>): PlaneScan[] {
    const count = body[0] ?? 0;
    if (count < 1 || count > 4 || body.length !== 4 + 2 * count) throw damagedJpeg();
    const [first = 0, last = 0, precision = 0] = body.subarray(1 + 2 * count);
    const isProgressive = this.#isProgressive;
    // Samsung's cameras write 0 as the last coefficient of scans that have all of them.
    const band = isProgressive ? { first, last } : { first: 0, last: 63 };
    const isOneOrTheOther = first === 0 ? last === 0 : first <= last && last <= 63 && count === 1;
    if (isProgressive && !isOneOrTheOther) throw damagedJpeg();
    const [high, low] = isProgressive ? [precision >> 4, precision & 15] : [0, 0];
    const built = new Map<number, HuffmanTable>();
    const table = (key: number): HuffmanTable => {
      const found = built.get(key) ?? buildTable(tables.get(key) ?? missing());
      built.set(key, found);
      return found;
    };
    const planes = new Set<Plane>();
    return Array.from({ length: count }, (_, index) => {
      const plane = this.#planes.find(({ id }) => id === body[1 + 2 * index]);
      if (plane === undefined || planes.has(plane)) throw damagedJpeg();
      planes.add(plane);
      plane.missingBits.fill(low, band.first, band.last + 1);
      const slots = body[2 + 2 * index] ?? 0;
      const [dc, ac] = [slots >> 4, 0x10 + (slots & 15)];
      const range = { ...band, coefficients: plane.coefficients };
      if (!isProgressive) return { plane, blocks: wholeBlocks(bits, table(dc), table(ac)) };
      if (first === 0) return { plane, blocks: high === 0 ? firstDc(bits, table(dc)) : laterDc(bits) };
      return { plane, blocks: (high === 0 ? firstAc : laterAc)(bits, table(ac), range) };
    });
  }
}

/** In a scan of several components, each unit of the image holds the blocks of all of them, row by row. */
function readUnit({ plane, blocks }: PlaneScan, column: number, row: number): void {
  const { across, down, paddedWidth } = plane;
  for (let y = 0; y < down; y += 1) blocks.read((row * down + y) * paddedWidth + column * across, across);
}

function missing(): never {
  throw damagedJpeg();
}

/** Reads the codes of one component's blocks in a scan, and keeps only which coefficients are not zero. */
interface BlockReader {
  /** Reads consecutive blocks. Throws `InvalidImage` if codes are missing. */
  read(begin: number, count: number): void;
  /** Whether no run of empty blocks is open. A restart or the end of the scan requires that. */
  isSettled(): boolean;
}

/** The coefficients that a scan of a progressive image sends. */
interface Band {
  readonly first: number;
  readonly last: number;
  /** A bit for each coefficient that is not zero: two words a block. */
  readonly coefficients: Uint32Array;
}

/** Reads blocks that do not depend on each other. */
function eachBlock(readBlock: () => void): BlockReader {
  const read = (_begin: number, count: number) => {
    for (let block = 0; block < count; block += 1) readBlock();
  };
  return { read, isSettled: () => true };
}

/** All coefficients of blocks, if the image is not progressive. */
function wholeBlocks(bits: ScanBits, dc: HuffmanTable, ac: HuffmanTable): BlockReader {
  return eachBlock(() => {
    readDc(bits, dc);
    for (let at = 1; at <= 63; at += 1) {
      const symbol = bits.symbol(ac);
      const size = symbol & 15;
      if (size === 0 && symbol !== 0xf0) return;
      at += symbol >> 4;
      if (at > 63 && (size > 0 || at > 64)) throw damagedJpeg();
      bits.take(size);
    }
  });
}

/** The high bits of the first coefficient of blocks. */
function firstDc(bits: ScanBits, dc: HuffmanTable): BlockReader {
  return eachBlock(() => readDc(bits, dc));
}

/** One more bit of the first coefficient of blocks. */
function laterDc(bits: ScanBits): BlockReader {
  return eachBlock(() => bits.take(1));
}

/** The high bits of the other coefficients of blocks. */
function firstAc(bits: ScanBits, ac: HuffmanTable, { first, last, coefficients }: Band): BlockReader {
  let emptyBlocks = 0;
  const readBlock = (block: number) => {
    for (let at = first; at <= last; at += 1) {
      const symbol = bits.symbol(ac);
      const [run, size] = [symbol >> 4, symbol & 15];
      if (size === 0 && run < 15) {
        emptyBlocks = (1 << run) - 1 + bits.take(run);
        return;
      }
      at += run;
      if (at > last && (size > 0 || at > last + 1)) throw damagedJpeg();
      if (size === 0) continue;
      bits.take(size);
      mark(coefficients, block, at);
    }
  };
  const read = (begin: number, count: number) => {
    const end = begin + count;
    for (let block = begin; block < end; ) {
      const skipped = Math.min(emptyBlocks, end - block);
      emptyBlocks -= skipped;
      block += skipped;
      if (block < end) readBlock(block);
      block += 1;
    }
  };
  return { read, isSettled: () => emptyBlocks === 0 };
}

/** One more bit of the other coefficients: of those that were not zero, and of new ones. */
function laterAc(bits: ScanBits, ac: HuffmanTable, { first, last, coefficients }: Band): BlockReader {
  const lowMask = maskOf(first, Math.min(last, 31));
  const highMask = maskOf(Math.max(first, 32) - 32, last - 32);
  let emptyBlocks = 0;
  /** Reads a block's codes. Returns the first coefficient without a code because a run of ended blocks begins. */
  const readCodes = (block: number): number => {
    const [before = 0, beforeHigh = 0] = [coefficients[2 * block], coefficients[2 * block + 1]];
    for (let at = first; at <= last; at += 1) {
      const symbol = bits.symbol(ac);
      let run = symbol >> 4;
      const size = symbol & 15;
      if (size > 1) throw damagedJpeg();
      if (size === 0 && run < 15) {
        emptyBlocks = (1 << run) + bits.take(run);
        return at;
      }
      // The sign of a coefficient that begins here.
      bits.take(size);
      for (; at <= last; at += 1) {
        if (!isZero(before, beforeHigh, at)) bits.take(1);
        else if (run === 0) break;
        else run -= 1;
      }
      if (at > last && (size > 0 || run > 0)) throw damagedJpeg();
      if (size > 0) mark(coefficients, block, at);
    }
    return last + 1;
  };
  const read = (begin: number, count: number) => {
    for (let block = begin; block < begin + count; block += 1) {
      const word = coefficients[2 * block] ?? 0;
      const high = coefficients[2 * block + 1] ?? 0;
      if (emptyBlocks > 0) {
        emptyBlocks -= 1;
        if (((word & lowMask) | (high & highMask)) !== 0) {
          takeMany(bits, countOnes(word & lowMask) + countOnes(high & highMask));
        }
        continue;
      }
      let at = readCodes(block);
      if (emptyBlocks === 0) continue;
      emptyBlocks -= 1;
      for (; at <= last; at += 1) if (!isZero(word, high, at)) bits.take(1);
    }
  };
  return { read, isSettled: () => emptyBlocks === 0 };
}

function isZero(low: number, high: number, at: number): boolean {
  return (((at < 32 ? low : high) >>> (at & 31)) & 1) === 0;
}

function takeMany(bits: ScanBits, count: number): void {
  let left = count;
  for (; left > 16; left -= 16) bits.take(16);
  bits.take(left);
}

function readDc(bits: ScanBits, dc: HuffmanTable): void {
  const size = bits.symbol(dc);
  if (size > 15) throw damagedJpeg();
  bits.take(size);
}

function mark(coefficients: Uint32Array, block: number, at: number): void {
  const word = 2 * block + (at >> 5);
  coefficients[word] = (coefficients[word] ?? 0) | (1 << (at & 31));
}

/** A word with the bits from `first` to `last` set. */
function maskOf(first: number, last: number): number {
  let mask = 0;
  for (let at = first; at <= last; at += 1) mask |= 1 << at;
  return mask;
}

function countOnes(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return (((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}
