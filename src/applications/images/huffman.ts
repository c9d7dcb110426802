import { damagedJpeg, marker } from './jpeg-segments.ts';

/** For each next 16 bits: the length of the code they begin with, times 256, plus its symbol; 0 for none. */
export type HuffmanTable = Uint16Array;

/** The tables of a DHT segment as in the file. `key` is the kind (0 for DC, 1 for AC) times 16 plus the slot. */
export function* readTables(body: Buffer): Generator<{ readonly key: number; readonly table: Buffer }> {
  for (let at = 0; at < body.length; ) {
    const counts = body.subarray(at + 1, at + 17);
    const end = at + 17 + counts.reduce((sum, count) => sum + count, 0);
    if (counts.length < 16 || end > body.length) throw damagedJpeg();
    yield { key: body[at] ?? 0, table: body.subarray(at + 1, end) };
    at = end;
  }
}

/** Makes a look-up table. `table` is 16 counts of codes by length, then the symbols. */
export function buildTable(table: Buffer): HuffmanTable {
  const lookup = new Uint16Array(65_536);
  let code = 0;
  let symbol = 16;
  for (let length = 1; length <= 16; length += 1) {
    const count = table[length - 1] ?? 0;
    const width = 1 << (16 - length);
    if (code + count * width > 65_536) throw damagedJpeg();
    for (let index = 0; index < count; index += 1) {
      lookup.fill((length << 8) | (table[symbol] ?? 0), code, code + width);
      code += width;
      symbol += 1;
    }
  }
  return lookup;
}

/** How much padding an encoder may write after the last pixel. More of it shows that pixels were lost. */
const mostPaddingBytes = 32;

/** The bits of a scan's compressed pixels, up to a marker. */
export class ScanBits {
  readonly #data: Buffer;
  #at = 0;
  #bits = 0;
  #count = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  /** The next symbol. Throws `InvalidImage` if there is none. */
  symbol(table: HuffmanTable): number {
    if (this.#count < 16) this.#fill();
    const count = this.#count;
    const next = count >= 16 ? (this.#bits >>> (count - 16)) & 0xffff : (this.#bits << (16 - count)) & 0xffff;
    const found = table[next] ?? 0;
    const length = found >> 8;
    if (length === 0 || length > count) throw damagedJpeg();
    this.#count = count - length;
    return found & 0xff;
  }

  /** The next bits, at most 16. Throws `InvalidImage` if there are fewer. */
  take(bits: number): number {
    if (this.#count < bits) this.#fill();
    if (this.#count < bits) throw damagedJpeg();
    this.#count -= bits;
    return (this.#bits >>> this.#count) & ((1 << bits) - 1);
  }

  /** Skips the rest of the byte, padding, and a restart marker that must come next. */
  restart(number: number): void {
    this.#skipPadding();
    if (this.#data[this.#at] !== 0xff || this.#data[this.#at + 1] !== marker.firstRestart + (number & 7)) {
      throw damagedJpeg();
    }
    this.#at += 2;
  }

  /** Throws if the scan does not end here. Some encoders write one more restart marker. */
  end(restarts: number): void {
    this.#skipPadding();
    if (this.#at < this.#data.length) this.restart(restarts);
    this.#skipPadding();
    if (this.#at < this.#data.length) throw damagedJpeg();
  }

  #fill(): void {
    const data = this.#data;
    while (this.#count <= 16) {
      const byte = data[this.#at];
      if (byte === undefined) return;
      if (byte === 0xff) {
        // Anything but a stuffed zero byte is a marker, or fill bytes before one.
        if (data[this.#at + 1] !== 0) return;
        this.#at += 1;
      }
      this.#at += 1;
      this.#bits = (this.#bits << 8) | byte;
      this.#count += 8;
    }
  }

  /** Some encoders write padding before a marker. Any other bytes would be coefficients. */
  #skipPadding(): void {
    this.#count -= this.#count % 8;
    for (let skipped = 0; ; skipped += 1) {
      this.#fill();
      if (this.#count === 0) break;
      if (skipped === mostPaddingBytes) throw damagedJpeg();
      this.#count -= 8;
      const byte = (this.#bits >>> this.#count) & 0xff;
      if (byte !== 0 && byte !== 0xff) throw damagedJpeg();
    }
    // Fill bytes before the marker.
    while (this.#data[this.#at] === 0xff && [0xff, undefined].includes(this.#data[this.#at + 1])) this.#at += 1;
  }
}

/**
 * The tables of the JPEG standard, annex K.3, for files without their own: 16 counts of codes by length, then symbols.
 */
const dcLuminance = '00010501010101010100000000000000000102030405060708090a0b';
const dcChrominance = '00030101010101010101010000000000000102030405060708090a0b';
const acLuminance =
  '0002010303020403050504040000017d' +
  '01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a' +
  '434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5a6a7a8a9' +
  'aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa';
const acChrominance =
  '00020102040403040705040400010277' +
  '000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a3536373839' +
  '3a434445464748494a535455565758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3a4a5a6a7' +
  'a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa';

/** By the kind (0 for DC, 1 for AC) times 16 and the slot. */
export const standardTables: ReadonlyMap<number, Buffer> = new Map(
  [
    [0x00, dcLuminance] as const,
    [0x01, dcChrominance] as const,
    [0x10, acLuminance] as const,
    [0x11, acChrominance] as const,
  ].map(([key, hex]) => [key, Buffer.from(hex, 'hex')]),
);
