/** The facts that a JPEG file states about itself, over files of a few bytes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readJpeg } from '../../src/decoder/jpeg.ts';
import { checkShape, InvalidImage, readFrame, readSegments } from '../../src/decoder/jpeg-segments.ts';
import { isInvalidImage } from '../support/invalid-image.ts';

const start = Buffer.from([0xff, 0xd8]);
const end = Buffer.from([0xff, 0xd9]);

function segment(code: number, body: readonly number[], stated = body.length + 2): Buffer {
  return Buffer.from([0xff, code, stated >> 8, stated & 255, ...body]);
}

/** A frame's header. Each component has its samples across and down. */
function frameBody(
  width: number,
  height: number,
  samplings: readonly number[] = [0x22, 0x11, 0x11],
  bits = 8,
): number[] {
  const components = samplings.flatMap((sampling, at) => [at + 1, sampling, 0]);
  return [bits, height >> 8, height & 255, width >> 8, width & 255, samplings.length, ...components];
}

const frame = (width = 16, height = 16, code = 0xc0) => segment(code, frameBody(width, height));
/** A scan of so many components, and some pixels. */
const scan = (components = 3) => Buffer.concat([segment(0xda, [components, 0, 0]), Buffer.from([1, 2, 0xff, 0, 3])]);
const jpeg = (...parts: readonly Buffer[]) => Buffer.concat([start, ...parts, end]);
const scans = (count: number) => Array.from({ length: count }, () => scan());

const isRefused = (file: Buffer) => {
  return isInvalidImage(() => readJpeg(file));
};

describe('a JPEG file', () => {
  it('a JPEG file has one frame, then at least one scan, then its end, and at most three stray bytes', () => {
    const whole = jpeg(frame(), scan());
    const cases: readonly [Buffer, boolean][] = [
      [whole, false],
      [Buffer.concat([whole, Buffer.from([1, 2, 3])]), false],
      [Buffer.concat([whole, Buffer.from([1, 2, 3, 4])]), true],
      [Buffer.concat([whole, Buffer.from([0, 0xff, 0x0d, 0x0a, 0, 0, 0])]), false],
      [Buffer.concat([whole, whole]), false],
      [Buffer.concat([whole, whole.subarray(0, -2)]), true],
      [jpeg(frame()), true],
      [jpeg(scan()), true],
      [jpeg(scan(), frame()), true],
      [jpeg(frame(), frame(), scan()), true],
      [jpeg(frame(), scan(), frame()), true],
      [whole.subarray(0, -2), true],
      [whole.subarray(1), true],
      [Buffer.alloc(0), true],
    ];
    for (const [at, [file, expected]] of cases.entries()) assert.equal(isRefused(file), expected, `case ${at}`);
  });

  it('a JPEG file has at most 8,000 pixels across and down, in each of its pictures', () => {
    for (const [width, height, expected] of [
      [8_000, 8_000, false],
      [8_001, 1, true],
      [1, 8_001, true],
      [0, 8, true],
      [8, 0, true],
    ] as const) {
      assert.equal(isRefused(jpeg(frame(width, height), scan())), expected, `${width} by ${height}`);
      const second = Buffer.concat([jpeg(frame(), scan()), jpeg(frame(width, height), scan())]);
      assert.equal(isRefused(second), expected, `a second one of ${width} by ${height}`);
    }
  });

  it('a JPEG file has at most 100 scans, and pixels of ten of the largest images in all of them', () => {
    assert.equal(isRefused(jpeg(frame(), ...scans(100))), false);
    assert.equal(isRefused(jpeg(frame(), ...scans(101))), true);
    assert.equal(isRefused(jpeg(frame(8_000, 8_000), ...scans(10))), false);
    assert.equal(isRefused(jpeg(frame(8_000, 8_000), ...scans(11))), true);
  });

  it('a JPEG file needs the memory of all its coefficients if it comes in passes, or if its first scan lacks a colour', () => {
    const [large, small] = [8_000, 4_000];
    const full = (side: number, code: number) => segment(code, frameBody(side, side, [0x11, 0x11, 0x11, 0x11]));
    assert.equal(isRefused(jpeg(full(large, 0xc0), scan(4))), false, 'line by line');
    assert.equal(isRefused(jpeg(full(large, 0xc0), scan(3))), true, 'a colour comes later');
    assert.equal(isRefused(jpeg(full(small, 0xc0), scan(3))), false);
    assert.equal(isRefused(jpeg(full(large, 0xc0), scan(4), scan(1))), false, 'the first scan decides');
    for (const code of [0xc2, 0xca]) {
      assert.equal(isRefused(jpeg(full(large, code), scan(4))), true);
      assert.equal(isRefused(jpeg(full(small, code), scan(4))), false);
    }
    assert.equal(readJpeg(jpeg(full(small, 0xc2), scan(4))).decodingBytes, 4 * 2 * small * small);
    assert.equal(readJpeg(jpeg(frame(16, 16), scan(2))).decodingBytes, 2 * 256 * 1.5);
    assert.equal(readJpeg(jpeg(frame(16, 16), scan(3))).decodingBytes, 0);
  });

  it('a JPEG file is measured exactly at the bounds of a decoder', () => {
    const shape = { width: 8_000, height: 8_000, decodingBytes: 400_000_000 };
    checkShape(shape);
    for (const more of [{ width: 8_001 }, { height: 8_001 }, { decodingBytes: 400_000_001 }]) {
      assert.throws(() => checkShape({ ...shape, ...more }), InvalidImage);
    }
  });
});

describe('the frame of a JPEG file', () => {
  it('the frame of a JPEG file is of a kind that is generally shown', () => {
    const known = [0xc0, 0xc1, 0xc2, 0xc9, 0xca];
    for (const code of [0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf]) {
      const read = () => readFrame(code, Buffer.from(frameBody(8, 8)));
      if (!known.includes(code)) assert.throws(read, InvalidImage, code.toString(16));
      else {
        const { isProgressive, isArithmetic } = read();
        assert.deepEqual([isProgressive, isArithmetic], [[0xc2, 0xca].includes(code), [0xc9, 0xca].includes(code)]);
      }
    }
  });

  it('the frame of a JPEG file has eight bits, one, three or four components of one to four samples, and no byte more or less', () => {
    const cases: readonly [readonly number[], boolean][] = [
      [frameBody(8, 8, [0x11]), true],
      [frameBody(8, 8, [0x11, 0x11]), false],
      [frameBody(8, 8, [0x44, 0x41, 0x14]), true],
      [frameBody(8, 8, [0x11, 0x11, 0x11, 0x11]), true],
      [frameBody(8, 8, [0x11, 0x11, 0x11, 0x11, 0x11]), false],
      [frameBody(8, 8, [0x51, 0x11, 0x11]), false],
      [frameBody(8, 8, [0x15, 0x11, 0x11]), false],
      [frameBody(8, 8, [0x11, 0x01, 0x11]), false],
      [frameBody(8, 8, [0x11, 0x11, 0x10]), false],
      [frameBody(8, 8, [0x11], 12), false],
      [[...frameBody(8, 8, [0x11]), 0], false],
      [[...frameBody(8, 8, [0x11]), 2, 0x11, 0], false],
      [frameBody(8, 8, [0x11]).slice(0, -1), false],
      [[], false],
    ];
    for (const [body, isTaken] of cases) {
      const read = () => readFrame(0xc0, Buffer.from(body));
      if (isTaken) read();
      else assert.throws(read, InvalidImage, String(body));
    }
  });
});

describe('the segments of a JPEG file', () => {
  const codes = (file: Buffer) => [...readSegments(file)].map(({ code }) => code.toString(16));

  it('the segments of a JPEG file end where they say, may have stray bytes between them, and restarts among their pixels', () => {
    const stray = Buffer.from([9, 9, 0xff, 0, 0xff, 0x01, 9, 0xff, 0xff]);
    const restarts = Buffer.from([0xff, 0xd0, 5, 0xff, 0xd7, 6, 0xff, 0x01]);
    assert.deepEqual(codes(jpeg(segment(0xe0, [1, 0xff, 0xd9]), stray, frame(), scan(), restarts)), [
      'e0',
      'c0',
      'da',
      'd9',
    ]);
    const [, second] = [...readSegments(jpeg(frame(), scan(), restarts))];
    assert.equal(second?.data.length, 5 + restarts.length);
  });

  it('the segments of a JPEG file are skipped by decoders with at least two bytes if they are metadata, and are damaged otherwise', () => {
    for (const code of [0xe0, 0xef, 0xfe, 0xdc])
      assert.deepEqual(codes(jpeg(segment(code, [], 0))), [code.toString(16), 'd9']);
    for (const code of [0xc4, 0xdb, 0xc0, 0xda]) assert.throws(() => codes(jpeg(segment(code, [], 1))), InvalidImage);
    assert.throws(() => codes(jpeg(segment(0xe0, [], 5))), InvalidImage, 'it ends behind the file');
    assert.throws(() => codes(jpeg(segment(0xe0, [], 4))), InvalidImage, 'it takes the end for its own');
  });

  it('the segments of a JPEG file are none that decoders do not know, and at most 4,096', () => {
    for (const code of [0x02, 0xbf, 0xd8]) assert.throws(() => codes(jpeg(segment(code, []))), InvalidImage);
    const many = (count: number) => jpeg(...Array.from({ length: count }, () => segment(0xfe, [])));
    assert.equal(codes(many(4_095)).length, 4_096);
    assert.throws(() => codes(many(4_096)), InvalidImage);
  });
});
