/** The scans of a JPEG, over files of a few bytes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { leastZeros, readScans, type Scan, toJpeg, withoutLast, withoutZeros } from '../../src/decoder/jpeg-scans.ts';
import { isInvalidImage } from '../support/invalid-image.ts';

const [baseline, progressive] = [0xc0, 0xc2];
const frameOf = (code: number, ids: readonly number[] = [1, 2, 3]) =>
  segment(code, [8, 0, 16, 0, 16, ids.length, ...ids.flatMap((id) => [id, 0x11, 0])]);

function segment(code: number, body: readonly number[]): Buffer {
  return Buffer.from([0xff, code, 0, body.length + 2, ...body]);
}

/** A scan of components, with its spectral range and its low bits that are missing. */
function scan(ids: readonly number[], [first, last, missing] = [0, 63, 0], data: readonly number[] = [1, 2]): Buffer {
  const body = [ids.length, ...ids.flatMap((id) => [id, 0]), first ?? 0, last ?? 0, missing ?? 0];
  return Buffer.concat([segment(0xda, body), Buffer.from(data)]);
}

const jpeg = (...parts: readonly Buffer[]) =>
  Buffer.concat([Buffer.from([0xff, 0xd8]), ...parts, Buffer.from([0xff, 0xd9])]);
const scanOf = (...data: readonly number[]): Scan => ({ head: Buffer.from([9]), data: Buffer.from(data) });

function isRefused(...parts: readonly Buffer[]): boolean {
  return isInvalidImage(() => readScans(jpeg(...parts)));
}

describe('the scans of a JPEG', () => {
  it('a picture has all bits of all coefficients of all components', () => {
    const all = [1, 2, 3];
    const cases: readonly [string, boolean, readonly Buffer[]][] = [
      ['one scan of all', false, [frameOf(baseline), scan(all)]],
      ['a scan of each', false, [frameOf(baseline), scan([1]), scan([2]), scan([3])]],
      ['a component missing', true, [frameOf(baseline), scan([1]), scan([2])]],
      ['another component', true, [frameOf(baseline), scan([1, 2, 4])]],
      ['no frame', true, [scan(all)]],
      ['no scan', true, [frameOf(baseline)]],
      ['a frame behind the scan', true, [scan(all), frameOf(baseline)]],
      ['the last coefficient written as 0', false, [frameOf(baseline), scan(all, [0, 0, 0])]],
      ['progressive in one', false, [frameOf(progressive), scan(all, [0, 63, 0])]],
      ['progressive to 62', true, [frameOf(progressive), scan(all, [0, 62, 0])]],
      ['progressive from 1', true, [frameOf(progressive), scan(all, [1, 63, 0])]],
      ['in two ranges', false, [frameOf(progressive), scan(all, [0, 0, 0]), scan(all, [1, 63, 0])]],
      ['a gap between ranges', true, [frameOf(progressive), scan(all, [0, 0, 0]), scan(all, [2, 63, 0])]],
      ['a low bit missing', true, [frameOf(progressive), scan(all, [0, 63, 1])]],
      ['the low bit in a later scan', false, [frameOf(progressive), scan(all, [0, 63, 1]), scan(all, [0, 63, 0x10])]],
      ['a low bit of one range', true, [frameOf(progressive), scan(all, [0, 63, 1]), scan(all, [0, 5, 0x10])]],
      ['a low bit of one component', true, [frameOf(progressive), scan(all, [0, 63, 1]), scan([1, 2], [0, 63, 0x10])]],
      ['no component in the scan', true, [frameOf(baseline), scan([]), scan(all)]],
      ['four components', false, [frameOf(baseline, [1, 2, 3, 4]), scan([1, 2, 3, 4])]],
      ['five components', true, [frameOf(baseline, [1, 2, 3, 4]), scan([1, 2, 3, 4, 4])]],
    ];
    for (const [name, expected, parts] of cases) assert.equal(isRefused(...parts), expected, name);
  });

  it('components with one id are each brought by the position in the scan', () => {
    const same = frameOf(baseline, [1, 1, 2]);
    assert.equal(isRefused(same, scan([1, 1, 2])), false);
    assert.equal(isRefused(same, scan([1, 2])), true);
    assert.equal(isRefused(frameOf(baseline), scan([2, 1, 3])), true);
  });

  it('a scan’s header has just the bytes of its components', () => {
    const header = [3, 1, 0, 2, 0, 3, 0, 0, 63, 0];
    assert.equal(isRefused(frameOf(baseline), segment(0xda, header), Buffer.from([1])), false);
    assert.equal(isRefused(frameOf(baseline), segment(0xda, [...header, 0]), Buffer.from([1])), true);
    assert.equal(isRefused(frameOf(baseline), segment(0xda, header.slice(0, -1)), Buffer.from([1])), true);
  });

  it('each scan has the segments before it, without metadata, and a picture in layers has all of its scans', () => {
    const tables = segment(0xdb, [7]);
    const later = segment(0xc4, [8]);
    const comment = segment(0xfe, [9]);
    const first = scan([1, 2, 3], [0, 0, 0], [5, 6]);
    const second = scan([1, 2, 3], [1, 63, 0], [7]);
    const frame = frameOf(progressive);
    const { scans, frame: read } = readScans(jpeg(tables, comment, frame, first, later, second));
    assert.equal(read.isProgressive, true);
    assert.deepEqual(
      scans.map(({ head, data }) => [head, data]),
      [
        [Buffer.concat([tables, frame, first.subarray(0, -2)]), Buffer.from([5, 6])],
        [Buffer.concat([later, second.subarray(0, -1)]), Buffer.from([7])],
      ],
    );
    const layers = [frameOf(baseline), scan([1]), scan([2, 3])];
    assert.equal(readScans(jpeg(...layers)).scans.length, 2);
  });

  it('a picture whose first scan has everything has that scan alone', () => {
    assert.equal(readScans(jpeg(frameOf(baseline), scan([1, 2, 3]), scan([1, 2, 3]))).scans.length, 1);
    assert.equal(readScans(jpeg(frameOf(baseline), scan([1, 2, 3]), segment(0xc4, [8]))).scans.length, 1);
  });

  it('segments behind the last scan of a picture in layers are a scan without pixels', () => {
    const { scans } = readScans(jpeg(frameOf(progressive), scan([1, 2, 3]), segment(0xc4, [8])));
    assert.deepEqual(scans.slice(1), [{ head: segment(0xc4, [8]), data: Buffer.alloc(0) }]);
    const without = readScans(jpeg(frameOf(progressive), scan([1, 2, 3]), segment(0xe5, [8])));
    assert.equal(without.scans.length, 1);
  });

  it('a restart marker ends the pixels of a scan unless restarts are announced', () => {
    const data = [1, 2, 0xff, 0, 0xff, 0xd0, 3];
    const parts = (interval: Buffer[]) => jpeg(...interval, frameOf(baseline), scan([1, 2, 3], [0, 63, 0], data));
    const dataOf = (...interval: Buffer[]) => [...(readScans(parts(interval)).scans[0]?.data ?? [])];
    assert.deepEqual(dataOf(segment(0xdd, [0, 5])), data);
    assert.deepEqual(dataOf(), [1, 2, 0xff, 0]);
    assert.deepEqual(dataOf(segment(0xdd, [0, 0])), [1, 2, 0xff, 0]);
    assert.deepEqual(dataOf(segment(0xdd, [0, 5, 0])), [1, 2, 0xff, 0]);
    assert.deepEqual(dataOf(segment(0xc4, [0, 5])), [1, 2, 0xff, 0]);
    assert.deepEqual(dataOf(segment(0xdd, [0, 5]), segment(0xdd, [0, 0])), [1, 2, 0xff, 0]);
  });

  it('the header of a scan that is not progressive says that it has all coefficients', () => {
    const [wrong, right] = [scan([1, 2, 3], [0, 0, 0]), scan([1, 2, 3])];
    assert.deepEqual(readScans(jpeg(frameOf(baseline), wrong)).scans, readScans(jpeg(frameOf(baseline), right)).scans);
  });

  it('scans make a JPEG again, in their order', () => {
    const file = toJpeg([scanOf(1, 2), { head: Buffer.from([8]), data: Buffer.from([3]) }]);
    assert.deepEqual([...file], [0xff, 0xd8, 9, 1, 2, 8, 3, 0xff, 0xd9]);
  });
});

describe('what follows the pixels of a scan', () => {
  it('the last bytes are removed, behind the fill bytes', () => {
    const left = (bytes: number, ...data: readonly number[]) => [...withoutLast(scanOf(...data), bytes).data];
    assert.deepEqual(left(0, 1, 2, 3), [1, 2, 3]);
    assert.deepEqual(left(1, 1, 2, 3), [1, 2]);
    assert.deepEqual(left(1, 1, 2, 3, 0xff, 0xff), [1, 2]);
    assert.deepEqual(left(3, 1, 2, 3), []);
    assert.deepEqual(left(4, 1, 2, 3), []);
    assert.deepEqual(left(1, 0xff, 0xff), []);
    assert.deepEqual([...withoutLast(scanOf(1), 1).head], [9]);
  });

  it('zeros before a restart marker and at the end are removed up to a number each, and the byte behind 0xff is none', () => {
    const restart = [0xff, 0xd3];
    const data = [1, 0, 0, 0, ...restart, 2, 0, 0, 0];
    const left = (before: number, atEnd: number, given: readonly number[] = data) => [
      ...withoutZeros(scanOf(...given), before, atEnd).data,
    ];
    assert.deepEqual(left(0, 0), data);
    assert.deepEqual(left(2, 1), [1, 0, ...restart, 2, 0, 0]);
    assert.deepEqual(left(3, 3), [1, ...restart, 2]);
    assert.deepEqual(left(9, 9), [1, ...restart, 2]);
    assert.deepEqual(left(9, 9, [1, 0xff, 0, 0, 0]), [1, 0xff, 0]);
    // The first byte of an interval is never removed.
    assert.deepEqual(left(9, 9, [0, 0, ...restart, 0]), [0, ...restart, 0]);
    assert.deepEqual([...withoutZeros(scanOf(1), 9, 9).head], [9]);
  });

  it('the least number of zeros before a restart marker leaves out the end of each scan', () => {
    const restart = [0xff, 0xd0];
    assert.equal(leastZeros([scanOf(1, 0, 0)]), Number.POSITIVE_INFINITY);
    assert.equal(leastZeros([scanOf(1, 0, 0, ...restart, 2, 0, 0, 0, ...restart, 3)]), 2);
    assert.equal(leastZeros([scanOf(1, 0, 0, 0, ...restart, 2), scanOf(1, 0, ...restart, 2)]), 1);
    assert.equal(leastZeros([scanOf(1, ...restart, 2, 0)]), 0);
    assert.equal(leastZeros([]), Number.POSITIVE_INFINITY);
  });
});
