/** The facts that a PNG file states about itself, over files of a few bytes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { crc32 } from 'node:zlib';
import { InvalidImage } from '../../src/decoder/jpeg-segments.ts';
import { readPng, signature } from '../../src/decoder/png.ts';

function chunk(type: string, data: readonly number[] = [], checksum?: number): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), Buffer.from(data)]);
  const around = Buffer.alloc(8);
  around.writeUInt32BE(data.length, 0);
  around.writeUInt32BE(checksum ?? crc32(body), 4);
  return Buffer.concat([around.subarray(0, 4), body, around.subarray(4)]);
}

interface Header {
  width?: number;
  height?: number;
  depth?: number;
  color?: number;
  interlace?: number;
}

function header({ width = 10, height = 7, depth = 8, color = 2, interlace = 0 }: Header = {}): Buffer {
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32BE(width, 0);
  sizes.writeUInt32BE(height, 4);
  return chunk('IHDR', [...sizes, depth, color, 0, 0, interlace]);
}

const pixels = chunk('IDAT', [1]);
const end = chunk('IEND');
const png = (...chunks: readonly Buffer[]) => Buffer.concat([signature, ...chunks]);

/** The sentence of a refusal; undefined: the file is read. */
function refusal(file: Buffer): string | undefined {
  try {
    readPng(file);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof InvalidImage, String(error));
    return error.message;
  }
}

describe('a PNG file', () => {
  it('a PNG file begins with its header, has pixels, and ends with its end', () => {
    const other = signature.map((byte, at) => (at === 7 ? byte + 1 : byte));
    const damaged = /damaged/;
    const cases: readonly [Buffer, RegExp | undefined][] = [
      [png(header(), pixels, end), undefined],
      [png(header(), chunk('tEXt'), pixels, pixels, end), undefined],
      [Buffer.concat([Buffer.from(other), header(), pixels, end]), /not a PNG/],
      [signature.subarray(0, 7), /not a PNG/],
      [png(), damaged],
      [png(pixels, header(), end), damaged],
      [png(chunk('IHDR', [0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0]), pixels, end), damaged],
      [png(chunk('IHDR', [0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 0]), pixels, end), damaged],
      [png(header(), end), damaged],
      [png(header(), pixels), damaged],
      [png(header(), pixels, chunk('IEND', [1])), damaged],
      [png(header(), pixels, end, end), damaged],
      [png(header(), pixels, end, pixels), damaged],
      [Buffer.concat([png(header(), pixels, end), Buffer.from([0])]), damaged],
    ];
    for (const [at, [file, expected]] of cases.entries()) {
      const said = refusal(file);
      if (expected === undefined) assert.equal(said, undefined, `case ${at}`);
      else assert.match(said ?? 'none', expected, `case ${at}`);
    }
  });

  it('each chunk ends within the file, to the byte', () => {
    const whole = png(header(), pixels, end);
    for (let bytes = signature.length; bytes < whole.length; bytes += 1) {
      assert.match(refusal(whole.subarray(0, bytes)) ?? 'none', /damaged/, `${bytes} bytes`);
    }
  });

  it('the checksum of a critical chunk is correct, and that of another one does not matter', () => {
    for (const [type, isRefused] of [
      ['IDAT', true],
      ['PLTE', true],
      ['ZZZZ', true],
      ['tEXt', false],
      ['aaAA', false],
    ] as const) {
      const wrong = chunk(type, [1], 5);
      assert.equal(refusal(png(header(), wrong, pixels, end)) !== undefined, isRefused, type);
    }
  });

  it('the chunks are given in their order, with their data', () => {
    const { chunks } = readPng(png(header(), chunk('tEXt', [7, 8]), pixels, end));
    assert.deepEqual(
      chunks.map(({ type }) => type),
      ['IHDR', 'tEXt', 'IDAT', 'IEND'],
    );
    assert.deepEqual(
      chunks.slice(1).map(({ data }) => [...data]),
      [[7, 8], [1], []],
    );
  });

  it('a PNG file has at most 4,096 chunks', () => {
    const texts = (count: number) => Array.from({ length: count }, () => chunk('tEXt'));
    assert.equal(refusal(png(header(), ...texts(4_093), pixels, end)), undefined);
    assert.match(refusal(png(header(), ...texts(4_094), pixels, end)) ?? '', /too many chunks/);
  });

  it('an animation is refused, whichever of its chunks it has', () => {
    for (const type of ['acTL', 'fcTL', 'fdAT']) {
      assert.match(refusal(png(header(), chunk(type), pixels, end)) ?? '', /animated/, type);
    }
  });

  it('a header states a size, a depth and a colour type that exist', () => {
    const states = (given: Header) => refusal(png(header(given), pixels, end)) === undefined;
    for (const depth of [0, 1, 2, 3, 4, 5, 8, 9, 16, 32])
      assert.equal(states({ depth }), [1, 2, 4, 8, 16].includes(depth), `depth ${depth}`);
    for (const color of [0, 1, 2, 3, 4, 5, 6, 7])
      assert.equal(states({ color }), [0, 2, 3, 4, 6].includes(color), `colour ${color}`);
    assert.deepEqual(
      [states({ width: 0 }), states({ height: 0 }), states({ width: 1, height: 1 })],
      [false, false, true],
    );
  });

  it('an image’s rows have whole bytes, each with one of its filter', () => {
    for (const [given, rowBytes] of [
      [{ depth: 8, color: 2 }, 7 * (1 + 30)],
      [{ depth: 16, color: 6 }, 7 * (1 + 80)],
      [{ depth: 8, color: 4 }, 7 * (1 + 20)],
      [{ depth: 1, color: 0 }, 7 * (1 + 2)],
      [{ depth: 4, color: 3 }, 7 * (1 + 5)],
    ] as const) {
      const { width, height, ...image } = readPng(png(header(given), pixels, end));
      assert.deepEqual(
        [width, height, image.rowBytes, image.decodingBytes],
        [10, 7, rowBytes, 0],
        JSON.stringify(given),
      );
    }
  });

  it('an interlaced image is held whole, in whole bytes, with the palette’s colours and with transparency', () => {
    const held = (given: Header, ...more: readonly Buffer[]) =>
      readPng(png(header({ ...given, interlace: 1 }), ...more, pixels, end)).decodingBytes;
    assert.equal(held({ depth: 8, color: 2 }), 70 * 3);
    assert.equal(held({ depth: 16, color: 6 }), 70 * 4 * 2);
    assert.equal(held({ depth: 1, color: 0 }), 70);
    assert.equal(held({ depth: 4, color: 3 }), 70 * 3);
    assert.equal(held({ depth: 4, color: 3 }, chunk('tRNS')), 70 * 4);
    assert.equal(held({ depth: 16, color: 0 }, chunk('tRNS')), 70 * 2 * 2);
  });
});
