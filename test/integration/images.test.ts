import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, it } from 'node:test';
import { ImageChecker } from '../../src/applications/images/checker.ts';
import { readJpeg } from '../../src/applications/images/jpeg.ts';
import { ApiError } from '../../src/lib/errors.ts';
import { createLogger } from '../../src/lib/log.ts';
import { badJpegs, badPngs } from '../support/bad-images.ts';
import { eventually } from '../support/eventually.ts';
import { goodJpegs, goodPngs, largePng } from '../support/good-images.ts';
import { layeredJpeg, noiseJpeg, noisePng, plain } from '../support/images.ts';
import { makeJpeg } from '../support/jpeg-maker.ts';
import { patient } from '../support/patience.ts';

const log = createLogger({ name: 'test', level: 'silent' });
const [png, jpeg] = await Promise.all([noisePng(64, 48), noiseJpeg(64, 48)]);
const corpus = [
  { mediaType: 'image/jpeg', good: goodJpegs, bad: badJpegs },
  { mediaType: 'image/png', good: goodPngs, bad: badPngs },
];

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

  it('refuses a file that is cut at any place', async () => {
    const progressive = await noiseJpeg(64, 48, { progressive: true });
    for (const [file, mediaType] of [
      [png, 'image/png'],
      [jpeg, 'image/jpeg'],
      [progressive, 'image/jpeg'],
    ] as const) {
      const cuts = Array.from({ length: 40 }, (_, at) => Math.floor((at * file.length) / 40));
      const refused = (cut: Buffer) => assert.rejects(async () => check(checker, cut, mediaType), isInvalid);
      for (const cut of cuts) {
        await refused(file.subarray(0, cut));
        // The same with an end, as a program that repairs files would write it.
        if (mediaType === 'image/jpeg')
          await refused(Buffer.concat([file.subarray(0, cut), Buffer.from([0xff, 0xd9])]));
      }
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

  it('ends a decoding that takes too long, and decodes the next file in a new process', async () => {
    const hasty = new ImageChecker({ log, workers: 1, decodeMs: 1 });
    await assert.rejects(
      check(hasty, png, 'image/png'),
      (error) => error instanceof ApiError && error.code === 'service_unavailable',
    );
    hasty.close();
  });

  it('gives a decoder that the machine does not let work more time', async () => {
    const decodeMs = patient(600);
    const starved = new ImageChecker({ log, workers: 1, decodeMs });
    const others = new Set(children());
    await eventually(() => check(starved, png, 'image/png'));
    const decoder = children().find((pid) => !others.has(pid));
    assert.ok(decoder !== undefined, 'no decoder was started');
    process.kill(decoder, 'SIGSTOP');
    setTimeout(() => process.kill(decoder, 'SIGCONT'), 1.3 * decodeMs);
    await check(starved, png, 'image/png');
    process.kill(decoder, 'SIGSTOP');
    await assert.rejects(check(starved, png, 'image/png'), (error: ApiError) => error.code === 'service_unavailable');
    starved.close();
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

/** The processes this one has started. */
function children(): number[] {
  const { pid } = process;
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
}

function isInvalid(error: unknown): boolean {
  return error instanceof ApiError && error.code === 'invalid_document' && error.status === 422;
}
