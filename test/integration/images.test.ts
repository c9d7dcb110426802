import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, describe, it } from 'node:test';
import { deflateSync } from 'node:zlib';
import { ImageChecker } from '../../src/applications/images/checker.ts';
import { readJpeg } from '../../src/applications/images/jpeg.ts';
import { ApiError } from '../../src/lib/errors.ts';
import { createLogger } from '../../src/lib/log.ts';
import { eventually } from '../support/eventually.ts';
import { chunk, handmadePng, layeredJpeg, noiseJpeg, noisePng, plain } from '../support/images.ts';

const log = createLogger({ name: 'test', level: 'silent' });
const png = await noisePng(64, 48);
const jpeg = await noiseJpeg(64, 48);
const endOfJpeg = Buffer.from([0xff, 0xd9]);

/** A file with one of its bytes changed. */
function changed(file: Buffer, at: number, to = 0xff ^ (file[at] ?? 0)): Buffer {
  const copy = Buffer.from(file);
  copy[at] = to;
  return copy;
}

/** A JPEG whose frame says another size than its pixels have. */
function resized(file: Buffer, width: number, height: number): Buffer {
  const copy = Buffer.from(file);
  const frame = copy.indexOf(Buffer.from([0xff, 0xc0]));
  copy.writeUInt16BE(height, frame + 5);
  copy.writeUInt16BE(width, frame + 7);
  return copy;
}

/** A JPEG with its last scan repeated many times. */
async function manyScans(times: number): Promise<Buffer> {
  const file = await noiseJpeg(64, 64, { progressive: true });
  const last = file.lastIndexOf(Buffer.from([0xff, 0xda]));
  const scan = file.subarray(last, -2);
  return Buffer.concat([file.subarray(0, -2), ...new Array<Buffer>(times).fill(scan), endOfJpeg]);
}

/** How many bytes the rows of a large picture have. */
const largeRows = (width: number, height: number, bytesPerPixel: number) => height * (1 + width * bytesPerPixel);

const good: Record<string, () => Promise<Buffer> | Buffer> = {
  'a PNG': () => png,
  'a JPEG': () => jpeg,
  'a progressive JPEG': () => noiseJpeg(80, 80, { progressive: true }),
  'a grey JPEG': () => plain(20, 20).greyscale().jpeg().toBuffer(),
  'a JPEG in four colours': () => plain(20, 20).toColourspace('cmyk').jpeg().toBuffer(),
  'a JPEG of one pixel, coded arithmetically': () =>
    Buffer.from(
      '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwSExIQEw8QEBD/yQALCAABAAEBAREA/8wABgAQEAX/2gAIAQEAAD8A0s8g/9k=',
      'base64',
    ),
  'a JPEG whose colours come one after another': () => layeredJpeg(64, 48, 3),
  'an interlaced PNG': () => plain(33, 17).png({ progressive: true }).toBuffer(),
  'a PNG with a palette': () => plain(33, 17).png({ palette: true }).toBuffer(),
  'a PNG of one pixel': () => handmadePng({ width: 1, height: 1 }),
  'a PNG with a text and a transparent colour': () =>
    handmadePng({
      width: 9,
      height: 9,
      before: [chunk('tEXt', Buffer.from('Title\0a scan')), chunk('tRNS', Buffer.alloc(6))],
    }),
  'a PNG 8,000 pixels wide and high': () => plain(8_000, 8_000).png().toBuffer(),
  'a JPEG 8,000 pixels wide and high': () => plain(8_000, 8_000).jpeg().toBuffer(),
  'a progressive JPEG 8,000 pixels wide and high': () =>
    plain(8_000, 8_000).jpeg({ progressive: true, chromaSubsampling: '4:2:0' }).toBuffer(),
};

const bad: Record<string, () => Promise<Buffer> | Buffer> = {
  'a text': () => Buffer.from('not an image'),
  'one byte': () => Buffer.from([0x89]),
  'random bytes': () => randomBytes(5_000),
  'a PDF that also is a JPEG': () => Buffer.concat([Buffer.from('%PDF-1.4\n'), jpeg]),
  'a PNG cut in the middle': () => png.subarray(0, png.length / 2),
  'a PNG without its end': () => png.subarray(0, -12),
  'a PNG without its last byte': () => png.subarray(0, -1),
  'a PNG with something behind its end': () => Buffer.concat([png, Buffer.from([0])]),
  'a PNG with an archive behind it': () => Buffer.concat([png, Buffer.from('PK\x03\x04 an archive')]),
  'a PNG with two ends': () => Buffer.concat([png, chunk('IEND')]),
  'a PNG with a wrong checksum': () => changed(png, png.length - 20),
  'a PNG with a wrong checksum in its header': () => changed(png, 29),
  'a PNG without pixels': () => Buffer.concat([png.subarray(0, 33), chunk('IEND')]),
  'a PNG of fewer rows than it says': () => handmadePng({ width: 30, height: 30, rows: Buffer.alloc(29 * 91) }),
  'a PNG of more rows than it says': () => handmadePng({ width: 30, height: 30, rows: Buffer.alloc(31 * 91) }),
  'a PNG with something behind its compressed pixels': () =>
    handmadePng({
      width: 30,
      height: 30,
      data: Buffer.concat([deflateSync(Buffer.alloc(30 * 91)), Buffer.from('more')]),
    }),
  'a PNG whose pixels do not decompress': () => handmadePng({ width: 30, height: 30, data: randomBytes(500) }),
  'a PNG whose pixels decompress to a flood': () =>
    handmadePng({ width: 30, height: 30, data: deflateSync(Buffer.alloc(200_000_000)) }),
  'a PNG with a filter there is not': () =>
    handmadePng({ width: 30, height: 30, rows: Buffer.alloc(30 * 91).fill(9, 91, 92) }),
  'a PNG with a palette it does not have': () =>
    handmadePng({ width: 30, height: 30, color: 3, rows: Buffer.alloc(30 * 31) }),
  'a PNG of a color type there is not': () => handmadePng({ width: 30, height: 30, color: 5 }),
  'a PNG of no width': () => handmadePng({ width: 0, height: 30 }),
  'an animated PNG': () => handmadePng({ width: 30, height: 30, before: [chunk('acTL', Buffer.alloc(8))] }),
  'a PNG with an unknown critical chunk': () => handmadePng({ width: 30, height: 30, before: [chunk('CgBI')] }),
  'a PNG 8,001 pixels wide': () => plain(8_001, 10).png().toBuffer(),
  'a PNG 8,001 pixels high': () => plain(10, 8_001).png().toBuffer(),
  'a PNG that says it is 2^31 - 1 pixels wide': () =>
    handmadePng({ width: 0x7fffffff, height: 1, rows: Buffer.alloc(9) }),
  'an interlaced PNG that would fill the memory': () =>
    handmadePng({ width: 8_000, height: 8_000, depth: 16, color: 6, interlace: 1, data: deflateSync(Buffer.alloc(9)) }),
  'a large PNG without its last bytes': () =>
    handmadePng({ width: 8_000, height: 8_000, rows: Buffer.alloc(largeRows(8_000, 8_000, 3) - 5) }),
  'a JPEG cut in the middle': () => jpeg.subarray(0, jpeg.length / 2),
  'a JPEG cut in the middle and ended': () => Buffer.concat([jpeg.subarray(0, jpeg.length / 2), endOfJpeg]),
  'a JPEG without its end': () => jpeg.subarray(0, -2),
  'a JPEG without its last byte': () => jpeg.subarray(0, -1),
  'a JPEG with something behind its end': () => Buffer.concat([jpeg, Buffer.from([0])]),
  'a JPEG with another behind it': () => Buffer.concat([jpeg, jpeg]),
  'a JPEG with an archive behind it': () => Buffer.concat([jpeg, Buffer.from('PK\x03\x04 an archive')]),
  'a JPEG of headers only': () => Buffer.concat([jpeg.subarray(0, jpeg.indexOf(Buffer.from([0xff, 0xda]))), endOfJpeg]),
  'a JPEG 8,001 pixels wide': () => plain(8_001, 10).jpeg().toBuffer(),
  'a JPEG 8,001 pixels high': () => plain(10, 8_001).jpeg().toBuffer(),
  'a JPEG that says it is larger than it is': () => resized(jpeg, 6_000, 6_000),
  'a JPEG of no height': () => resized(jpeg, 64, 0),
  'a JPEG whose colours come one after another and would fill the memory': () => layeredJpeg(8_000, 8_000, 4),
  'a JPEG in a thousand scans': () => manyScans(1_000),
};

describe('the check of images', () => {
  const checker = new ImageChecker({ log });
  after(() => checker.close());

  for (const [name, make] of Object.entries(good)) {
    it(`takes ${name}`, async () => {
      const file = await make();
      await checker.check(file, file[0] === 0xff ? 'image/jpeg' : 'image/png');
    });
  }

  for (const [name, make] of Object.entries(bad)) {
    it(`refuses ${name}`, async () => {
      const file = await make();
      const mediaType = name.includes('JPEG') ? 'image/jpeg' : 'image/png';
      await assert.rejects(checker.check(file, mediaType), isInvalid);
    });
  }

  it('decodes a large JPEG alone where its colours come one after another: all of it is held at once', async () => {
    assert.equal(readJpeg(await layeredJpeg(8_000, 8_000, 3)).decodingBytes, 2 * 3 * 8_000 * 8_000);
    assert.equal(readJpeg(await plain(8_000, 8_000).jpeg().toBuffer()).decodingBytes, 0);
  });

  it('refuses an image of the other type', async () => {
    await assert.rejects(checker.check(png, 'image/jpeg'), isInvalid);
    await assert.rejects(checker.check(jpeg, 'image/png'), isInvalid);
  });

  it('refuses a file wherever it is cut', async () => {
    for (const [file, mediaType] of [
      [png, 'image/png'],
      [jpeg, 'image/jpeg'],
    ] as const) {
      const cuts = Array.from({ length: 40 }, (_, at) => Math.floor((at * file.length) / 40));
      await Promise.all(cuts.map((cut) => assert.rejects(checker.check(file.subarray(0, cut), mediaType), isInvalid)));
    }
  });

  it('gives what waits for too long up, and takes the next', async () => {
    const slow = new ImageChecker({ log, workers: 1, waitMs: 1 });
    const large = await plain(4_000, 4_000).png().toBuffer();
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => slow.check(large, 'image/png')));
    assert.equal(outcomes[0]?.status, 'fulfilled');
    const refused = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
    assert.equal(refused.length, 2);
    for (const { reason } of refused) assert.equal((reason as ApiError).code, 'service_unavailable');
    await eventually(() => slow.check(png, 'image/png'));
    slow.close();
  });

  it('ends a decoding that takes too long, and decodes the next file in a new process', async () => {
    const hasty = new ImageChecker({ log, workers: 1, decodeMs: 1 });
    await assert.rejects(
      hasty.check(png, 'image/png'),
      (error) => error instanceof ApiError && error.code === 'service_unavailable',
    );
    hasty.close();
  });

  it('leaves its decoder free for a while after each file, for the work that comes behind it', async () => {
    const unhurried = new ImageChecker({ log, workers: 1 });
    await unhurried.check(png, 'image/png');
    assert.equal(unhurried.decoding, 1);
    await eventually(() => assert.equal(unhurried.decoding, 0));
    unhurried.close();
  });

  it('decodes many at once, in its turn each', async () => {
    const files = await Promise.all(Array.from({ length: 30 }, () => noiseJpeg(200, 200)));
    await Promise.all(files.map((file) => checker.check(file, 'image/jpeg')));
  });
});

function isInvalid(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'invalid_document' && error.status === 422;
}
