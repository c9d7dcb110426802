import type { HuffmanTable, ScanBits } from './huffman.ts';
import { damagedJpeg } from './jpeg-segments.ts';

/** Reads the codes of one component's blocks in one scan, and keeps nothing but which coefficients are not zero. */
export interface BlockReader {
  /** Reads blocks that follow one another. Throws `InvalidImage` when their codes are not all there. */
  read(begin: number, count: number): void;
  /** Whether no run of empty blocks is open. It must not be where a restart or the end of the scan comes. */
  isSettled(): boolean;
}

/** Which coefficients a scan of a progressive image sends. */
export interface Band {
  readonly first: number;
  readonly last: number;
  /** Which coefficients of each block are not zero: two words a block. */
  readonly coefficients: Uint32Array;
}

/** Reads blocks of which none depends on another. */
function eachBlock(readBlock: () => void): BlockReader {
  const read = (_begin: number, count: number) => {
    for (let block = 0; block < count; block += 1) readBlock();
  };
  return { read, isSettled: () => true };
}

/** Blocks of an image that is not progressive: all their coefficients. */
export function wholeBlocks(bits: ScanBits, dc: HuffmanTable, ac: HuffmanTable): BlockReader {
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

/** The first coefficient of blocks, in its high bits. */
export function firstDc(bits: ScanBits, dc: HuffmanTable): BlockReader {
  return eachBlock(() => readDc(bits, dc));
}

/** One more bit of the first coefficient of blocks. */
export function laterDc(bits: ScanBits): BlockReader {
  return eachBlock(() => bits.take(1));
}

/** The other coefficients of blocks, in their high bits. */
export function firstAc(bits: ScanBits, ac: HuffmanTable, { first, last, coefficients }: Band): BlockReader {
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

/** One more bit of the other coefficients of blocks: of those that were not zero, and those that begin with it. */
export function laterAc(bits: ScanBits, ac: HuffmanTable, { first, last, coefficients }: Band): BlockReader {
  const lowMask = maskOf(first, Math.min(last, 31));
  const highMask = maskOf(Math.max(first, 32) - 32, last - 32);
  let emptyBlocks = 0;
  /** Reads the codes of a block. Returns the first coefficient that has none because the block, and perhaps more, end. */
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

/** The bits from `first` to `last` of a word. */
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
