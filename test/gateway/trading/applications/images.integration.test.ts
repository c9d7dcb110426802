import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { PngOptions } from 'sharp';
import { readJpeg } from '../../../../src/decoder/jpeg.ts';
import { isWholeJpeg } from '../../../../src/decoder/jpeg-pixels.ts';
import { InvalidImage } from '../../../../src/decoder/jpeg-segments.ts';
import { readPng } from '../../../../src/decoder/png.ts';
import { ApiError } from '../../../../src/gateway/edge/errors.ts';
import { ImageChecker } from '../../../../src/gateway/trading/applications/image-checker.ts';
import { createLogger } from '../../../../src/kit/log.ts';
import { badJpegs, badPngs } from '../../../support/bad-images.ts';
import { eventually } from '../../../support/eventually.ts';
import { goodJpegs, goodPngs, largePng } from '../../../support/good-images.ts';
import { chunk, handmadePng, layeredJpeg, noise, noiseJpeg, noisePng, plain } from '../../../support/images.ts';
import { endOfImage, makeJpeg } from '../../../support/jpeg-maker.ts';
import { makeManyScans } from '../../../support/many-scans.ts';
import { patient } from '../../../support/patience.ts';

const log = createLogger({ name: 'test', level: 'silent' });
const png = await noisePng(64, 48);
const corpus = [
  { mediaType: 'image/jpeg', good: goodJpegs, bad: badJpegs },
  { mediaType: 'image/png', good: goodPngs, bad: badPngs },
];

const jpegOf = (make: () => Promise<Buffer> | Buffer) => ({ make, mediaType: 'image/jpeg' });
const pngOf = (options: PngOptions) => ({
  make: () => noise(48, 36).png(options).toBuffer(),
  mediaType: 'image/png',
});

/** Pictures as encoders write them in their different ways. */
const encoded = {
  'a JPEG of 4:2:0': jpegOf(() => noiseJpeg(48, 36)),
  'a JPEG of 4:4:4': jpegOf(() => noiseJpeg(48, 36, { chromaSubsampling: '4:4:4', quality: 100 })),
  'a progressive JPEG': jpegOf(() => noiseJpeg(48, 36, { progressive: true })),
  'a progressive JPEG of mozjpeg': jpegOf(() => noiseJpeg(48, 36, { mozjpeg: true, quality: 70 })),
  'a progressive JPEG with long runs of empty blocks': jpegOf(() => plain(200, 160).jpeg({ mozjpeg: true }).toBuffer()),
  'a grey JPEG': jpegOf(() => noise(48, 36).greyscale().jpeg().toBuffer()),
  'a JPEG of four colours': jpegOf(() => noise(48, 36).toColourspace('cmyk').jpeg().toBuffer()),
  'a JPEG with restart markers': jpegOf(() => makeJpeg({ width: 80, height: 80, restartInterval: 3 })),
  'a JPEG whose colours come one after another': jpegOf(() => makeJpeg({ layered: true, width: 35, height: 19 })),
  'a PNG of 8 bits': pngOf({}),
  'an interlaced PNG': pngOf({ progressive: true }),
  'a PNG with a palette': pngOf({ palette: true, colours: 16 }),
  'a PNG of 16 bits': {
    make: () => noise(48, 36).toColourspace('rgb16').png().toBuffer(),
    mediaType: 'image/png',
  },
};

/** Checks a file as a partner's upload is checked. */
async function check(checker: ImageChecker, file: Buffer, mediaType: string, partnerId = 'partner'): Promise<void> {
  await checker.decode(checker.readHeaders(file, mediaType), partnerId);
}

describe('the check of images', () => {
  const checker = new ImageChecker({ log });
  after(() => checker.close());

  for (const { mediaType, good, bad } of corpus) {
    for (const [name, make] of Object.entries(good)) {
      it(`takes ${name} (${mediaType})`, async () => check(checker, await make(), mediaType));
    }
    for (const [name, make] of Object.entries(bad)) {
      it(`refuses ${name} (${mediaType})`, async () => {
        const file = await make();
        await assert.rejects(check(checker, file, mediaType), isInvalid);
      });
    }
  }

  it('is shown at least 40 files of each kind', () => {
    const count = (files: readonly object[]) => files.reduce<number>((sum, each) => sum + Object.keys(each).length, 0);
    assert.ok(count([goodJpegs, goodPngs]) >= 80);
    assert.ok(count([badJpegs, badPngs]) >= 80);
  });

  it('decodes a large JPEG alone if its colours come one after another: all of it is held at once', async () => {
    assert.equal(readJpeg(await layeredJpeg(8_000, 8_000, 3)).decodingBytes, 2 * 3 * 8_000 * 8_000);
    assert.equal(readJpeg(await plain(8_000, 8_000).jpeg().toBuffer()).decodingBytes, 0);
  });

  for (const [name, { make, mediaType }] of Object.entries(encoded)) {
    it(`accepts ${name} whole, and refuses it cut at any place`, async () => {
      const file = await make();
      await check(checker, file, mediaType);
      const end = mediaType === 'image/png' ? chunk('IEND') : endOfImage;
      // The last cut leaves out the last byte of the pixels.
      const cuts = Array.from({ length: 16 }, (_, at) => Math.floor((at * (file.length - end.length - 1)) / 15));
      for (const at of cuts) {
        const cut = file.subarray(0, at);
        await assert.rejects(async () => check(checker, cut, mediaType), isInvalid, `${at} of ${file.length} bytes`);
        // The same with an end, as a program that repairs files would write it.
        const ended = Buffer.concat([cut, end]);
        await assert.rejects(async () => check(checker, ended, mediaType), isInvalid, `${at} bytes and an end`);
      }
    });
  }

  it('refuses a PNG whose compressed pixels are cut, with correct checksums around them', async () => {
    const file = await noisePng(40, 30);
    const { chunks } = readPng(file);
    const data = Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map((each) => each.data));
    for (let at = 0; at < data.length; at += 97) {
      const cut = handmadePng({ width: 40, height: 30, data: data.subarray(0, at) });
      await assert.rejects(async () => check(checker, cut, 'image/png'), isInvalid, `${at} of ${data.length} bytes`);
    }
  });

  it('refuses a JPEG of whose pixels some bytes are missing', async () => {
    const file = makeJpeg({ width: 320, height: 240 });
    const pixels = file.indexOf(Buffer.from([0xff, 0xda])) + 14;
    for (let at = pixels; at < file.length - 200; at += 41) {
      const cut = Buffer.concat([file.subarray(0, at), file.subarray(at + 61)]);
      await assert.rejects(async () => check(checker, cut, 'image/jpeg'), isInvalid, `without the bytes from ${at} on`);
    }
  });

  it('gives up what waits for too long, and takes the next', async () => {
    const slow = new ImageChecker({ log, workers: 1, waitMs: 1 });
    const large = await plain(4_000, 4_000).png().toBuffer();
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => check(slow, large, 'image/png')));
    assert.equal(outcomes[0]?.status, 'fulfilled');
    const refused = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
    assert.equal(refused.length, 2);
    for (const { reason } of refused) assert.equal((reason as ApiError).code, 'service_unavailable');
    await eventually(() => check(slow, png, 'image/png'));
    slow.close();
  });

  it('a good image is not refused for ever because its decoder ends with the gateway', async () => {
    const stopping = new ImageChecker({ log, workers: 1 });
    const large = await plain(8_000, 8_000).png().toBuffer();
    await check(stopping, png, 'image/png');
    const checks = [1, 2].map(() => check(stopping, large, 'image/png'));
    await eventually(() => assert.deepEqual([stopping.decoding, stopping.waiting], [1, 1]));
    stopping.close();
    for (const outcome of await Promise.allSettled(checks)) {
      assert.equal(outcome.status, 'rejected');
      assert.equal((outcome.reason as ApiError).code, 'service_unavailable');
    }
  });

  it('ends a decoding that takes too long, and decodes the next file in a new process', async () => {
    const hasty = new ImageChecker({ log, workers: 1, decodeMs: 1 });
    await assert.rejects(
      check(hasty, png, 'image/png'),
      (error) => error instanceof ApiError && error.code === 'service_unavailable',
    );
    hasty.close();
  });

  it('gives a decoder that the machine does not let work more time', async () => {
    // A machine with much else to do may not let it work in that time either: then it is tried with a new one.
    await eventually(async () => {
      const decodeMs = patient(500);
      const starved = new ImageChecker({ log, workers: 1, decodeMs });
      const others = new Set(decoders());
      try {
        await check(starved, png, 'image/png');
        const [decoder, ...more] = decoders().filter((pid) => !others.has(pid));
        assert.ok(decoder !== undefined && more.length === 0, 'one decoder was started');
        process.kill(decoder, 'SIGSTOP');
        const checked = check(starved, png, 'image/png');
        await Promise.race([checked, delay(1.3 * decodeMs)]);
        process.kill(decoder, 'SIGCONT');
        await checked;
        process.kill(decoder, 'SIGSTOP');
        await assert.rejects(
          check(starved, png, 'image/png'),
          (error: ApiError) => error.code === 'service_unavailable',
        );
        await check(starved, png, 'image/png');
      } finally {
        starved.close();
      }
    }, 30_000);
  });

  it('the check of images keeps its decoder for the next file, however much memory the gateway itself has', async () => {
    const much = Buffer.alloc(400_000_000, 1);
    const roomy = new ImageChecker({ log, workers: 1 });
    const others = new Set(decoders());
    const own = () => decoders().filter((pid) => !others.has(pid));
    await check(roomy, png, 'image/png');
    const [first, ...more] = own();
    assert.ok(first !== undefined && more.length === 0, 'one decoder was started');
    for (let files = 0; files < 2; files += 1) {
      await check(roomy, png, 'image/png');
      assert.deepEqual(own(), [first]);
    }
    roomy.close();
    assert.equal(much.length, 400_000_000);
  });

  it('leaves its decoder free for a while after each file, for the work that comes behind it', async () => {
    const unhurried = new ImageChecker({ log, workers: 1 });
    await check(unhurried, png, 'image/png');
    assert.equal(unhurried.decoding, 1);
    await eventually(() => assert.equal(unhurried.decoding, 0));
    unhurried.close();
  });

  it('decodes the file of a partner with one before the many of another', async () => {
    const busy = new ImageChecker({ log, workers: 1, waitMs: 100_000 });
    const ended: string[] = [];
    const decode = (name: string, file: Buffer) =>
      check(busy, file, 'image/png', name).then(() => void ended.push(name));
    const many = Array.from({ length: 6 }, () => decode('greedy', largePng()));
    await decode('modest', png);
    assert.ok(ended.length <= 2, `it came after ${ended.length - 1} of the others`);
    await Promise.all(many);
    busy.close();
  });

  it('leaves a decoder free for other partners, however many files of one wait', async () => {
    const two = new ImageChecker({ log, workers: 2, waitMs: 100_000 });
    const many = [1, 2, 3].map(() => check(two, largePng(), 'image/png', 'greedy'));
    assert.deepEqual([two.decoding, two.waiting], [1, 2]);
    const other = check(two, png, 'image/png', 'modest');
    assert.deepEqual([two.decoding, two.waiting], [2, 2]);
    await Promise.all([...many, other]);
    two.close();
  });

  for (const [name, behindScan] of Object.entries({
    'of one length': () => Buffer.from('stray'),
    'of different lengths': (scan: number) => Buffer.alloc(5 + (scan % 2), 'x'),
  })) {
    it(`takes a bounded time for a JPEG of many scans with stray bytes ${name} behind each`, async () => {
      const clean = makeManyScans();
      await isWholeJpeg(clean);
      const usual = await processorTime(clean);
      const took = await processorTime(makeManyScans(behindScan));
      assert.ok(took < 12 * usual, `${took} µs, and ${usual} µs without stray bytes`);
    });
  }

  it('lets so many of a partner wait, and tells it to try again beyond that', async () => {
    const busy = new ImageChecker({ log, workers: 1 });
    const outcomes = await Promise.allSettled(Array.from({ length: 40 }, () => check(busy, png, 'image/png')));
    const refused = outcomes.filter((each) => each.status === 'rejected');
    assert.equal(refused.length, 40 - 16 - 1);
    for (const { reason } of refused) {
      assert.ok(reason instanceof ApiError);
      assert.deepEqual([reason.code, reason.limit, reason.retryAfterSeconds], ['rate_limited', 'files', 1]);
    }
    busy.close();
  });
});

/** The processor time that the check of a JPEG's pixels takes, whatever its answer, in microseconds. */
async function processorTime(file: Buffer): Promise<number> {
  const before = process.cpuUsage();
  await isWholeJpeg(file).catch((error: unknown) => assert.ok(error instanceof InvalidImage));
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** The decoders of this process, which has other children too. */
function decoders(): number[] {
  const { pid } = process;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  return children.filter((child) => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('--input-type=module');
    } catch {
      return false; // It has just ended.
    }
  });
}

function isInvalid(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'invalid_document' && error.status === 422;
}
